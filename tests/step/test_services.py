"""The service step, on simulated hosts: state, restarts by digest, undo."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.step.places import MemoryLedger, SimPlace

from kubexm.errors import CommandFailed, StepFailed
from kubexm.sim import Machine, ServiceSettings, WorldSettings
from kubexm.step.files import FilePresent
from kubexm.step.services import Service

UNIT = "/etc/systemd/system/app.service"
CONFIG = "/etc/app.conf"


@pytest.fixture
def place(tmp_path: Path) -> Iterator[SimPlace]:
    services = {
        "ssh": ServiceSettings(active=True, enabled=True, ports=(22,)),
        "idle": ServiceSettings(),
        "web": ServiceSettings(ports=(8080,)),
    }
    made = SimPlace(tmp_path, WorldSettings(machine=Machine(services=services)))
    yield made
    made.close()


def write_unit(place: SimPlace, text: str = "[Service]\nExecStart=/bin/app\n") -> None:
    place.run(FilePresent(UNIT, content=text))


def started(place: SimPlace, unit: str) -> int:
    return place.world.host("there").starts(unit)


def test_is_satisfied_by_what_runs_and_is_enabled(place: SimPlace) -> None:
    assert place.verdict(Service("ssh")).satisfied


def test_names_what_is_wrong(place: SimPlace) -> None:
    assert (
        place.verdict(Service("idle")).reason
        == "is inactive, want active; is disabled, want enabled"
    )
    assert place.verdict(Service("ssh", running=False, enabled=None)).reason == (
        "is active, want inactive"
    )


@pytest.mark.parametrize(
    "step",
    [
        Service("idle"),
        Service("idle", enabled=None),
        Service("idle", running=None),
        Service("ssh", running=False, enabled=False),
        Service("ssh", running=False, enabled=None),
    ],
    ids=lambda step: step.summary(),
)
def test_changes_and_restores_a_unit(place: SimPlace, step: Service) -> None:
    before = place.state()

    place.run(step)
    assert place.state() != before
    assert place.verdict(step).satisfied

    place.undo(step)
    place.undo(step)
    assert place.state() == before


def test_starts_a_unit_from_a_file_written_before(place: SimPlace) -> None:
    before = place.state()
    file = FilePresent(UNIT, content="[Service]\n")
    step = Service("app")
    place.run(file)

    place.run(step)

    assert place.world.host("there").runs("app")
    place.undo(step)
    place.undo(file)
    assert place.state() == before


def test_does_not_know_what_was_never_installed(place: SimPlace) -> None:
    with pytest.raises(StepFailed, match="knows no unit `app`"):
        place.verdict(Service("app"))

    assert place.verdict(Service("app", running=False, enabled=False)).satisfied


def test_says_that_a_unit_is_masked(place: SimPlace) -> None:
    place.ask("systemctl", "mask", "idle")

    with pytest.raises(StepFailed, match="is masked"):
        place.verdict(Service("idle"))


def test_reads_a_changed_unit_file_anew_and_restarts(place: SimPlace) -> None:
    write_unit(place)
    place.run(Service("app"))
    write_unit(place, "[Service]\nExecStart=/bin/app --new\n")

    verdict = place.verdict(Service("app"))
    place.run(Service("app"))

    assert verdict.reason == "its unit file was changed since systemd read it"
    assert place.verdict(Service("app")).satisfied
    assert started(place, "app") == 2


def test_restarts_once_when_files_differ_from_those_of_the_last_start(place: SimPlace) -> None:
    write_unit(place)
    place.run(FilePresent(CONFIG, content="a"))
    step = Service("app", restarts_on=(CONFIG,))
    place.run(step)
    assert place.verdict(step).satisfied
    place.run(FilePresent(CONFIG, content="b"))

    verdict = place.verdict(step)
    place.run(step)

    assert verdict.reason == "files it restarts on were changed since its last start"
    assert place.verdict(step).satisfied
    assert started(place, "app") == 2


def test_another_step_restarts_what_is_only_started_here(place: SimPlace) -> None:
    write_unit(place)
    place.run(FilePresent(CONFIG, content="a"))
    start = Service("app", restarts_on=(CONFIG,), restarts=False)
    anew = Service("app", restarts_on=(CONFIG,))
    place.run(start)
    assert place.verdict(anew).satisfied
    place.run(FilePresent(CONFIG, content="b"))

    assert place.verdict(start).satisfied
    place.run(start)

    assert started(place, "app") == 1
    assert not place.verdict(anew).satisfied
    place.run(anew)
    assert started(place, "app") == 2
    assert start.follows() == ()


def test_a_start_is_through_when_the_port_is_open(place: SimPlace) -> None:
    web, mute = (
        Service(unit, port=8080, restarts_on=("/etc/hostname",)) for unit in ("web", "idle")
    )
    with pytest.raises(
        StepFailed, match="60 s after its start port 8080 is closed; the unit is active"
    ):
        place.run(mute)
    # What never got through its start is tried again.
    assert not place.verdict(mute).satisfied

    place.run(web)

    assert place.verdict(web).satisfied


def test_a_start_is_through_when_the_unit_answers(place: SimPlace) -> None:
    place.write("well", b"")
    well, ill = (
        Service("idle", restarts_on=("/etc/hostname",), answers=("test", "-e", path))
        for path in (f"{place.root}/well", f"{place.root}/not-there")
    )
    with pytest.raises(StepFailed, match="not-there` exits with 1; the unit is active"):
        place.run(ill)
    assert not place.verdict(ill).satisfied

    place.run(well)

    assert place.verdict(well).satisfied


def test_a_port_wants_something_that_runs() -> None:
    with pytest.raises(ValueError, match="`port` is 0"):
        Service("web", port=0)
    with pytest.raises(ValueError, match="and `running: true`"):
        Service("web", running=False, port=80)


def test_restarts_what_ran_before_we_came_since_nobody_knows_with_which_files(
    place: SimPlace,
) -> None:
    step = Service("ssh", restarts_on=("/etc/hostname",))

    assert place.verdict(step).reason == "files it restarts on have no record"
    place.run(step)

    assert place.verdict(step).satisfied
    assert started(place, "ssh") == 1


def test_a_file_that_vanished_counts_as_changed(place: SimPlace) -> None:
    place.write("conf", b"a")
    step = Service("ssh", restarts_on=(f"{place.root}/conf",))
    place.run(step)

    place.ask("rm", f"{place.root}/conf")

    assert not place.verdict(step).satisfied


def test_a_service_that_was_undone_is_started_anew_by_the_next_run(place: SimPlace) -> None:
    write_unit(place)
    place.write("conf", b"a")
    step = Service("app", restarts_on=(f"{place.root}/conf",))
    place.run(step)

    place.undo(step)

    assert not place.world.host("there").runs("app")
    place.run(step)
    assert place.verdict(step).satisfied


def test_a_unit_that_ran_before_runs_with_the_files_that_were_put_back(place: SimPlace) -> None:
    place.write("conf", b"before")
    step = Service("ssh", restarts_on=(f"{place.root}/conf",))
    place.run(step)
    place.write("conf", b"after")
    place.ledger = MemoryLedger()
    place.run(step)

    place.undo(step)
    place.write("conf", b"before")

    assert place.wait(step.settle(place.context()))
    assert started(place, "ssh") == 3
    assert place.verdict(step).satisfied
    assert not place.wait(step.settle(place.context()))


def test_a_unit_that_ran_before_and_was_not_known_is_not_known_afterwards(place: SimPlace) -> None:
    place.write("conf", b"before")
    before = place.state()
    step = Service("ssh", restarts_on=(f"{place.root}/conf",))
    place.run(step)

    place.undo(step)

    assert not place.wait(step.settle(place.context()))
    assert place.state() == before
    assert "have no record" in place.verdict(step).reason


def test_systemd_forgets_a_unit_file_that_was_taken_away(place: SimPlace) -> None:
    file, step = FilePresent(UNIT, content="[Service]\n"), Service("app")
    place.run(file)
    place.run(step)

    place.undo(step)
    place.undo(file)
    place.wait(step.settle(place.context()))

    assert place.ask("systemctl", "show", "--property=LoadState", "--", "app") == (
        "LoadState=not-found"
    )


def test_systemd_forgets_that_a_unit_of_ours_failed(place: SimPlace) -> None:
    write_unit(place, "[Service]\nType=notify\nExecStart=/usr/local/bin/containerd\n")
    with pytest.raises(CommandFailed):
        place.run(Service("app"))
    assert place.ask("systemctl", "show", "--property=ActiveState", "--", "app").endswith("failed")

    place.undo(Service("app"))

    assert place.ask("systemctl", "show", "--property=ActiveState", "--", "app") == (
        "ActiveState=inactive"
    )


def test_a_unit_that_had_failed_before_is_left_so(place: SimPlace) -> None:
    write_unit(place, "[Service]\nType=notify\nExecStart=/usr/local/bin/containerd\n")
    with pytest.raises(CommandFailed):
        place.ask("systemctl", "start", "app")

    place.run(Service("app", running=False))
    place.undo(Service("app", running=False))

    assert place.ask("systemctl", "show", "--property=ActiveState", "--", "app").endswith("failed")


def test_shows_the_state_of_a_unit_that_fails(place: SimPlace) -> None:
    said = place.wait(Service("idle").diagnose(place.context()))

    assert said == "status:\n  idle.service - inactive"
