"""Names of hosts and users: on simulated hosts, and on a machine set apart."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.runner import apart
from tests.step.places import ApartPlace, MemoryLedger, Place, SimPlace

from kubexm.errors import StepFailed
from kubexm.sim import Machine, WorldSettings
from kubexm.step.contract import Step
from kubexm.step.identity import Hostname, UserPresent

CASES: dict[str, tuple[Step, str, str]] = {
    "hostname": (Hostname("web1.example.org"), "~", "is called "),
    "new user": (UserPresent("shop", uid=4711, shell="/bin/sh", groups=("adm",)), "+", "does not"),
    "new user of the system": (UserPresent("shop", system=True), "+", "does not exist"),
    "user that changes": (
        UserPresent("games", home="/srv", shell="/bin/sh", groups=("adm", "www-data")),
        "~",
        "home is ",
    ),
    "user with another number": (UserPresent("games", uid=4711), "~", "uid is 5, want 4711"),
    "user in a group": (UserPresent("games", groups=("adm",)), "~", "is not in adm"),
}


@pytest.fixture(params=["sim", "apart"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    if request.param == "sim":
        made: Place = SimPlace(tmp_path, WorldSettings(machine=Machine(users={"ops": 1200})))
        yield made
        made.close()
        return
    if why := apart.missing():
        pytest.skip(why)
    with apart.set_apart(tmp_path / "apart") as pid:
        made = ApartPlace(pid)
        yield made
        made.close()


@pytest.mark.parametrize("name", CASES)
def test_is_needed_then_satisfied_then_undone(name: str, place: Place) -> None:
    step, sign, reason = CASES[name]
    before, called = place.state(), place.ask("hostname")

    verdict = place.verdict(step)

    assert verdict.sign == sign
    assert verdict.reason.startswith(reason)
    assert place.state() == before, "a precheck changes nothing"
    place.run(step)
    assert place.verdict(step).satisfied
    done = place.state()
    assert done != before
    place.run(step)
    assert place.state() == done
    for _ in range(2):
        place.undo(step)
        assert place.state() == before
        assert place.ask("hostname") == called


@pytest.mark.parametrize("name", CASES)
def test_what_the_ledger_does_not_know_stays(name: str, place: Place) -> None:
    step, _, _ = CASES[name]
    place.run(step)
    after = place.state()

    place.undo(step, ledger=MemoryLedger())

    assert place.state() == after


def test_a_user_joins_a_group_of_its_name(place: Place) -> None:
    step = UserPresent("staff", shell="/bin/sh")

    place.run(step)

    assert place.verdict(step).satisfied
    assert place.ask("id", "-Gn", "staff") == "staff"


def test_a_home_that_was_there_stays(place: Place) -> None:
    place.ask("mkdir", f"{apart.HOME}/shop")
    before, step = place.state(), UserPresent("shop")
    place.run(step)

    place.undo(step)

    assert place.state() == before


def test_a_group_that_is_missing_is_named(place: Place) -> None:
    with pytest.raises(StepFailed, match="group 'no-such' does not exist"):
        place.run(UserPresent("shop", groups=("no-such",)))


def test_a_host_is_told_how_it_would_be_called(tmp_path: Path) -> None:
    place = SimPlace(tmp_path)

    reason = place.verdict(Hostname("web1")).reason

    assert reason == "is called there, want web1; would be called there after a boot"
    place.close()


REFUSED: list[tuple[Callable[[], Step], str]] = [
    (lambda: Hostname("no blank"), "want the name of a host"),
    (lambda: Hostname("x" * 65), "want the name of a host"),
    (lambda: Hostname("-x"), "want the name of a host"),
    (lambda: UserPresent("a:b"), "can't have a `:`"),
    (lambda: UserPresent("-x"), "no name of a user or group"),
    (lambda: UserPresent("x", home="here"), "want an absolute path"),
    (lambda: UserPresent("x", groups=("a,b",)), "one group in each entry"),
]


@pytest.mark.parametrize(("make", "match"), REFUSED)
def test_refuses_what_is_no_name(make: Callable[[], Step], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        make()
