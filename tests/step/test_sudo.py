"""What a step says of `sudo` holds for all it does on its host, whatever the host's habit is."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.step.places import SimPlace
from tests.step.test_lifecycle import CASES, Case, writes
from tests.step.test_sudo_in_clusters import STEPS as IN_CLUSTERS
from tests.step.test_sudo_of_assets import STEPS as OF_ASSETS
from tests.step.watched import Watched

from kubexm.runner.host import Host
from kubexm.sim import Machine, Script, ServiceSettings, WorldSettings
from kubexm.step import registry
from kubexm.step.checks import Assert
from kubexm.step.commands import Command
from kubexm.step.contract import Step
from kubexm.step.data import DataDirectory
from kubexm.step.edits import ManagedBlock
from kubexm.step.files import FilePresent
from kubexm.step.forgetting import Forgotten
from kubexm.step.identity import Hostname, UserPresent
from kubexm.step.kernel import KernelModule, KernelSettings, NoSwap
from kubexm.step.packages import Package
from kubexm.step.services import Service
from kubexm.step.values import FetchValue, Minted
from kubexm.step.waits import WaitFor

UNIT = "/etc/systemd/system/ssh.service"
MACHINE = Machine(
    packages={"curl": "7.88"},
    swap_mib=1024,
    files={UNIT: "[Service]\n"},
    services={
        "ssh": ServiceSettings(active=True, enabled=True),
        "idle": ServiceSettings(),
    },
)


def case(step: Step, before: Any = lambda place: None) -> Case:
    return Case(lambda root: step, "", "", before)


def reads_its_unit_anew(place: SimPlace) -> None:
    place.run(FilePresent(UNIT, content="[Service]\nNice=5\n"))


STEPS: Mapping[str, Case] = {
    **CASES,
    "secret block": Case(
        lambda root: ManagedBlock(f"{root}/f", "new", secret=True), "", "", writes("f")
    ),
    "command with guards": case(
        Command(("true",), creates="/no/such", unless=("false",), only_if=("true",), undo=("true",))
    ),
    "new package": case(Package(("jq",))),
    "package that can't be had at first": case(Package(("late",))),
    "package that goes": case(Package(("curl",), present=False)),
    "service that starts": case(Service("idle", restarts_on=("/etc/passwd",))),
    "service that stops": case(Service("ssh", running=False, enabled=False)),
    "service that restarts": case(Service("ssh"), reads_its_unit_anew),
    "sysctl": case(KernelSettings("90-x", {"vm.swappiness": 10})),
    "kernel-module": case(KernelModule("br_netfilter")),
    "data-directory": case(DataDirectory("/srv/data/deep", mode="0700")),
    "forgotten": case(Forgotten()),
    "no-swap": case(NoSwap()),
    "hostname": case(Hostname("web1")),
    "user that comes": case(UserPresent("shop", groups=("adm",))),
    "user that changes": case(UserPresent("www-data", shell="/bin/sh")),
    "value": case(FetchValue("v", ("echo", "v"))),
    "mint": case(Minted("v", ("echo", "v"))),
    "wait": case(WaitFor(command=("true",))),
    "assert": case(Assert(argv=("true",))),
}


@pytest.fixture
def place(tmp_path: Path) -> Iterator[SimPlace]:
    options = ["*"] * 10
    fails_once = Script(argv=("apt-get", *options, "install", "--", "late"), exit=100, times=1)
    made = SimPlace(tmp_path, WorldSettings(machine=MACHINE, scripts=(fails_once,)))
    made.secrets["env://TOKEN"] = "s3cret"
    yield made
    made.close()


@pytest.mark.parametrize("sudo", [True, False])
@pytest.mark.parametrize("name", STEPS)
def test_a_step_does_everything_with_sudo_or_nothing(
    name: str, sudo: bool, place: SimPlace
) -> None:
    STEPS[name].before(place)
    step: Any = dataclasses.replace(STEPS[name].step(place.root), sudo=sudo)  # type: ignore[type-var]
    watched = Watched(place.world.connector("there"))
    place.host = Host("there", watched, sudo=not sudo)

    place.verdict(step)
    place.run(step)
    place.wait(step.diagnose(place.context()))
    place.undo(step)

    assert watched.asked
    assert [what for what, found in watched.asked if found is not sudo] == []


def test_every_kind_that_has_a_sudo_is_looked_at() -> None:
    having = {kind for kind, cls in registry.kinds().items() if hasattr(cls, "sudo")}

    plain = {case.step("/srv").kind for case in STEPS.values()}
    assert {*IN_CLUSTERS, *OF_ASSETS, *plain} >= having
