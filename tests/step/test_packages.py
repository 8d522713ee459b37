"""The package step, on simulated hosts with apt."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.step.places import SimPlace

from kubexm.errors import StepFailed
from kubexm.runner import facts
from kubexm.runner.host import Host
from kubexm.sim import (
    Machine,
    PackageSettings,
    Script,
    ServiceSettings,
    WorldSettings,
)
from kubexm.step.contract import Step
from kubexm.step.packages import Package

NGINX = PackageSettings(
    version="1.22",
    files={"/etc/nginx/nginx.conf": "worker_processes auto;\n"},
    services={"nginx": ServiceSettings(active=True, enabled=True, ports=(80,))},
)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[SimPlace]:
    settings = WorldSettings(
        machine=Machine(packages={"curl": "7.88"}, files={"/etc/nginx/keep": ""}),
        packages={"nginx": NGINX},
    )
    made = SimPlace(tmp_path, settings)
    yield made
    made.close()


@pytest.mark.parametrize(
    ("step", "sign", "reason"),
    [
        (Package(("nginx",)), "+", "nginx is not installed"),
        (Package(("nginx", "curl", "jq=1.6")), "~", "nginx is not installed; jq is not installed"),
        (Package(("curl=8.0",)), "~", "curl 7.88, want 8.0"),
        (Package(("curl", "jq"), present=False), "-", "curl 7.88 is installed"),
    ],
    ids=lambda value: value.summary() if isinstance(value, Step) else None,
)
def test_installs_or_removes_and_restores(
    place: SimPlace, step: Package, sign: str, reason: str
) -> None:
    before = place.state()

    verdict = place.verdict(step)

    assert (verdict.sign, verdict.reason) == (sign, reason)
    assert place.state() == before
    place.run(step)
    assert place.verdict(step).satisfied
    place.undo(step)
    place.undo(step)
    assert place.state() == before


def test_brings_files_and_services_along(place: SimPlace) -> None:
    place.run(Package(("nginx",)))

    assert place.world.host("there").runs("nginx")
    assert place.ask("cat", "/etc/nginx/nginx.conf") == "worker_processes auto;"


def test_leaves_what_was_installed_before(place: SimPlace) -> None:
    step = Package(("curl", "jq"))
    place.run(step)

    place.undo(step)

    assert place.verdict(Package(("curl",))).satisfied
    assert not place.verdict(Package(("jq",))).satisfied


def test_fetches_the_lists_if_a_package_is_not_found(tmp_path: Path) -> None:
    missing = Script(
        argv=("apt-get", "**"), exit=100, stderr="E: Unable to locate package jq\n", times=1
    )
    place = SimPlace(tmp_path, WorldSettings(scripts=(missing,)))

    place.run(Package(("jq",)))

    assert place.verdict(Package(("jq",))).satisfied
    place.close()


def test_is_not_interrupted() -> None:
    assert Package(("x",)).uninterruptible


def test_refuses_an_operating_system_it_cannot_handle(place: SimPlace) -> None:
    alpine = {"os": {"id": "alpine", "name": "Alpine Linux 3"}}
    host = Host("there", place.world.connector("there"), facts=alpine)

    with pytest.raises(StepFailed, match="can't handle packages of `Alpine Linux 3`"):
        place.run(Package(("jq",)), host=host)


@pytest.mark.parametrize("system", ["rocky", "opensuse-leap"])
def test_installs_and_restores_by_dnf_and_zypper(tmp_path: Path, system: str) -> None:
    settings = WorldSettings(
        machine=Machine(
            os_id=system, packages={"curl": "7.76.1-26"}, files={"/etc/nginx/keep": ""}
        ),
        packages={"nginx": NGINX},
    )
    place = SimPlace(tmp_path, settings)
    place.host.facts = place.wait(facts.gather(place.host))
    before, step = place.state(), Package(("nginx", "jq", "curl=8.0-1"))

    verdict = place.verdict(step)
    place.run(step)

    wanted = "nginx is not installed; jq is not installed; curl 7.76.1-26, want 8.0-1"
    assert verdict.reason == wanted
    assert place.verdict(step).satisfied
    assert place.world.host("there").executed["rpm"]
    place.undo(step)
    assert place.state() == before
    place.close()
