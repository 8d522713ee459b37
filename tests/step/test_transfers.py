"""Steps about files that are sent and fetched: what they remember, refuse and tell."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest
from tests.step.places import LocalPlace, Place, SimPlace
from tests.step.test_lifecycle import SENT, mirrored

from kubexm.errors import InvalidInput, StepFailed
from kubexm.runner.host import Command, Completed
from kubexm.step import registry, transfers
from kubexm.step.contract import Step
from kubexm.step.edits import LineInFile
from kubexm.step.files import Absent, Directory, FilePresent
from kubexm.step.transfers import Fetched
from kubexm.step.trees import Mirrored


def sent(path: str, directory: Path, data: bytes, **settings: object) -> FilePresent:
    source = directory / "source"
    source.write_bytes(data)
    digest = sha256(data).hexdigest()
    return registry.load(  # type: ignore[return-value]  # it is a step of this kind
        "file", {"path": path, "source": str(source), "sha256": digest, **settings}
    )


def test_what_was_there_before_a_large_file_stays_on_the_host(place: Place, tmp_path: Path) -> None:
    path = place.write("f", os.urandom(1 << 20))
    before = place.state()

    place.run(sent(path, tmp_path, os.urandom(1 << 20)))

    assert sum(map(len, place.ledger.entries.values())) < 1000
    place.undo(sent(path, tmp_path, b""))
    assert place.state() == before


def test_how_far_it_has_come_is_told_a_few_times_in_a_second(
    sim: SimPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter([10.0, 10.1, 10.24, 10.26, 10.3])
    monkeypatch.setattr(transfers, "time", type("Clock", (), {"monotonic": lambda: next(clock)}))
    said: list[tuple[float, float, str]] = []
    tell = transfers.progress_of(sim.context(progress=lambda *all: said.append(all)))

    for done in range(1, 6):
        tell(done << 20, 5 << 20)

    assert [text for _, _, text in said] == ["1 of 5 MiB", "4 of 5 MiB", "5 of 5 MiB"]


def test_a_file_that_is_sent_tells_how_far_it_has_come(place: Place, tmp_path: Path) -> None:
    said: list[tuple[float, float, str]] = []
    data = os.urandom(3 << 20)

    place.run(sent(f"{place.root}/f", tmp_path, data), progress=lambda *all: said.append(all))
    place.run(Fetched(f"{place.root}/f", f"{tmp_path}/here/f"))

    assert said[-1] == (3 << 20, 3 << 20, "3 of 3 MiB")


def test_a_source_that_changed_since_it_was_planned_is_not_sent(
    place: Place, tmp_path: Path
) -> None:
    step = sent(f"{place.root}/f", tmp_path, b"planned")
    (tmp_path / "source").write_bytes(b"another")

    with pytest.raises(StepFailed, match="has changed since it was planned"):
        place.run(step)

    assert place.verdict(step).reason == "does not exist"


def test_a_source_comes_with_its_digest() -> None:
    with pytest.raises(InvalidInput, match="`source` needs `sha256`"):
        registry.load("file", {"path": "/f", "source": "/g"})


@pytest.mark.timeout(20)
@pytest.mark.parametrize("name", ["text", "large", "line", "sent", "fetched", "absent", "tree"])
def test_a_pipe_is_refused_and_keeps_nobody_waiting(tmp_path: Path, name: str) -> None:
    place = LocalPlace(tmp_path)
    pipe = f"{place.root}/pipe"
    os.mkfifo(pipe)
    steps: dict[str, Step] = {
        "text": FilePresent(pipe, content="x"),
        "large": FilePresent(pipe, content="x" * 100_000),
        "line": LineInFile(pipe, "x"),
        "sent": sent(pipe, tmp_path, b"x"),
        "fetched": Fetched(pipe, f"{tmp_path}/here"),
        "absent": Absent(pipe),
        "tree": Mirrored(place.root, "/x", contents={"pipe": f"0644 {'0' * 64}"}),
    }

    with pytest.raises(StepFailed, match="neither a file nor a directory nor a link") as caught:
        place.verdict(steps[name])

    assert "`command` step" in caught.value.hint
    place.close()


def test_many_files_are_looked_at_in_one_round_trip(sim: SimPlace) -> None:
    files = {f"{number:04}-{'x' * 100}": f"0644 {'0' * 64}" for number in range(2000)}
    step = Mirrored("/srv/root", "/x", contents=files, directories={".": "0755"})

    commands = step.probe(sim.host)

    assert sum(len(command.argv) for command in commands) > 4000
    assert all(sum(map(len, command.argv)) < 100_000 for command in commands)
    assert step.judge([gone(command) for command in commands]).reason == "does not exist"


def gone(command: Command) -> Completed:
    return Completed(1, stderr=b"stat: cannot stat 'x': No such file or directory\n")


def test_only_files_that_differ_are_sent(place: Place) -> None:
    step = mirrored(place.root)
    place.run(step)
    place.write("site/index.html", b"another")

    assert place.verdict(step).reason == "1 of 4 files: `index.html` content differs"
    place.run(step)

    assert place.verdict(step).satisfied
    assert place.read("site/index.html") == (SENT / "index.html").read_bytes()


def test_a_directory_that_is_missing_is_made(place: Place) -> None:
    step = mirrored(place.root)
    place.run(step)
    extended = Mirrored(
        step.path,
        step.source,
        contents=step.contents,
        directories={**step.directories, "new": "0750"},
    )

    assert place.verdict(extended).reason == "`new` missing"
    place.run(extended)

    assert place.verdict(extended).satisfied
    assert place.verdict(Directory(f"{step.path}/new", mode="0750")).satisfied


def test_a_slash_at_the_end_of_a_path_means_nothing(place: Place) -> None:
    step = replace(mirrored(place.root), path=f"{place.root}/site/")
    before = place.state()

    place.run(step)

    assert place.verdict(step).satisfied
    assert place.verdict(mirrored(place.root)).satisfied
    place.undo(step)
    assert place.state() == before


def test_what_others_have_put_into_a_tree_stays(place: Place) -> None:
    step = mirrored(place.root)
    place.run(step)
    other = place.write("site/css/other", b"theirs")

    said = place.wait(step.rollback(place.context()))

    assert said == f"`{place.root}/site/css` is not empty"
    assert place.verdict(FilePresent(other, content="theirs")).satisfied


def test_a_directory_in_the_place_of_a_file_is_refused(place: Place) -> None:
    place.ask("mkdir", "-p", f"{place.root}/site/index.html")

    with pytest.raises(StepFailed, match=r"index.html` is a directory, want a file"):
        place.verdict(mirrored(place.root))


def test_a_file_below_the_source_that_changed_since_is_not_sent(
    place: Place, tmp_path: Path
) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "f").write_bytes(b"another")
    planned = {"f": f"0644 {sha256(b'planned').hexdigest()}"}
    step = Mirrored(
        f"{place.root}/t", f"{tmp_path}/tree", contents=planned, directories={".": "0755"}
    )

    with pytest.raises(StepFailed, match="tree/f` has changed since it was planned"):
        place.run(step)

    assert place.verdict(step).reason == "does not exist"


def test_what_was_here_before_a_fetch_comes_back(tmp_path: Path) -> None:
    place = LocalPlace(tmp_path)
    path, to = place.write("f", b"new"), tmp_path / "here" / "f"
    to.parent.mkdir()
    to.write_bytes(b"old")
    to.chmod(0o604)
    step = Fetched(path, str(to))

    place.run(step)
    assert to.read_bytes() == b"new"
    place.undo(step)

    assert to.read_bytes() == b"old"
    assert to.stat().st_mode & 0o777 == 0o604
    place.close()


def test_nothing_of_a_simulation_lands_on_the_real_machine(sim: SimPlace, tmp_path: Path) -> None:
    path, to = sim.write("f", b"new"), tmp_path / "here" / "f"
    step = Fetched(path, str(to))

    sim.run(step)

    assert not to.parent.exists()
    assert sim.verdict(step).satisfied


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda place: None, "there is no file"),
        (lambda place: place.ask("mkdir", f"{place.root}/f"), "is a directory, want a file"),
        (lambda place: place.ask("ln", "-s", "no", f"{place.root}/f"), "there is no file"),
    ],
)
def test_what_is_no_file_is_not_fetched(
    place: Place, tmp_path: Path, made: Callable[[Place], object], said: str
) -> None:
    made(place)

    with pytest.raises(StepFailed, match=said):
        place.verdict(Fetched(f"{place.root}/f", f"{tmp_path}/here"))
