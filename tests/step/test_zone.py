"""The time zone of a host: set, and as it was again."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.step.places import SimPlace

from kubexm.errors import InvalidInput, StepFailed
from kubexm.sim import Effects, Script, WorldSettings
from kubexm.step import registry
from kubexm.step.zone import TimeZone

BERLIN = TimeZone("Europe/Berlin")


def test_a_zone_is_set_once(sim: SimPlace) -> None:
    before = sim.verdict(BERLIN)

    sim.run(BERLIN)

    assert (before.satisfied, before.reason) == (False, "is Etc/UTC, want Europe/Berlin")
    assert sim.verdict(BERLIN).satisfied


def test_a_rollback_brings_the_old_zone_back(sim: SimPlace) -> None:
    before = sim.state()
    sim.run(BERLIN)

    sim.undo(BERLIN)

    assert sim.state() == before


def test_files_are_put_back_as_they_were(tmp_path: Path) -> None:
    files = {"/etc/localtime": "a link to Berlin", "/etc/timezone": "Europe/Berlin\n"}
    sets = Script(("timedatectl", "set-timezone", "**"), effects=Effects(files=files))
    place = SimPlace(tmp_path, WorldSettings(scripts=(sets,)))
    place.wait(place.host.put("/etc/timezone", b"Etc/UTC\n"))
    place.run(BERLIN)

    place.undo(BERLIN)

    assert place.ask("cat", "/etc/timezone") == "Etc/UTC"
    assert "localtime" not in place.ask("ls", "/etc").split()
    place.close()


def test_a_zone_that_the_host_does_not_know_is_told(sim: SimPlace) -> None:
    with pytest.raises(StepFailed, match="knows no time zone `Mars/Olympus`"):
        sim.run(TimeZone("Mars/Olympus"))


def test_what_is_no_name_of_a_zone_is_refused() -> None:
    for zone in ("", "/etc/passwd", "--help", "Europe/../Berlin", "Europe/"):
        with pytest.raises(InvalidInput, match="want the name of a time zone"):
            registry.load("timezone", {"zone": zone})
