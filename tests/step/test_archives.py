"""What an archive step refuses, and when it has nothing to do any more."""

from __future__ import annotations

from hashlib import sha256

import pytest
from tests.step.places import Place, SimPlace
from tests.step.test_lifecycle import ARCHIVE, packed

from kubexm.errors import StepFailed
from kubexm.step.archives import Unpacked


def test_an_archive_that_is_gone_by_now_needs_a_checksum_to_be_known(place: Place) -> None:
    path, into = place.write("app.tgz", ARCHIVE), f"{place.root}/app"
    known = Unpacked(path, into, sha256=sha256(ARCHIVE).hexdigest())
    place.run(known)

    place.ask("rm", path)

    assert place.verdict(known).satisfied
    assert not place.verdict(Unpacked(path, into)).satisfied
    with pytest.raises(StepFailed, match="there is no archive"):
        place.run(Unpacked(path, into))


def test_another_archive_of_the_same_name_is_unpacked_anew(place: Place) -> None:
    path, into = place.write("app.tgz", ARCHIVE), f"{place.root}/app"
    place.run(Unpacked(path, into, strip=1))
    place.write("app.tgz", packed(b"newer"))

    place.run(Unpacked(path, into, strip=1))

    assert place.read("app/bin/app") == b"newer"
    assert not place.verdict(Unpacked(path, into)).satisfied, "the names would be others"


def test_a_wrong_checksum_changes_nothing(place: Place) -> None:
    path = place.write("app.tgz", ARCHIVE)
    before = place.state()

    with pytest.raises(StepFailed, match="want 0000"):
        place.run(Unpacked(path, f"{place.root}/app", sha256="0" * 64))

    assert place.state() == before


def test_a_damaged_archive_leaves_what_was_there(place: Place) -> None:
    path, into = place.write("app.tgz", ARCHIVE), f"{place.root}/app"
    place.run(Unpacked(path, into))
    place.write("app.tgz", b"no archive")
    before = place.state()

    with pytest.raises(StepFailed):
        place.run(Unpacked(path, into))

    assert place.state() == before


def test_a_file_in_its_place_is_refused(place: Place) -> None:
    path, into = place.write("app.tgz", ARCHIVE), place.write("app", b"")

    with pytest.raises(StepFailed, match="is a file, want a directory"):
        place.verdict(Unpacked(path, into))


def test_a_simulated_host_lists_what_is_in_an_archive(sim: SimPlace) -> None:
    sim.write("app.tgz", ARCHIVE)

    listed = sim.ask("tar", "-tf", "/srv/root/app.tgz").splitlines()

    assert listed == ["app-1/", "app-1/bin/", "app-1/bin/app", "app-1/app"]


@pytest.mark.parametrize(
    ("params", "match"),
    [
        ({"path": "x", "into": "/y"}, "want an absolute path"),
        ({"path": "/x", "into": "/y", "strip": -1}, "want 0 or more"),
        ({"path": "/x", "into": "/y", "sha256": "abc"}, "want 64 hexadecimal digits"),
    ],
)
def test_refuses_what_can_not_be(params: dict[str, object], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        Unpacked(**params)  # type: ignore[arg-type]
