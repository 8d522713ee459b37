"""Which clusters are played, on which hosts, and which of their mutants a test has time for."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from math import comb
from pathlib import Path

import msgspec
from tests.mutation.mutants import Mutant
from tests.mutation.stage import Stage

from kubexm.sim.settings import Machine

_CLUSTERS = Path(__file__).parents[2] / "examples" / "clusters"
_SWAP_MIB = 1024
"""Something that a cluster can't live with, so that it has to be turned off."""
DEBIAN = Machine(swap_mib=_SWAP_MIB)
ROCKY = Machine(
    os_id="rocky", os_version="9.4", os_name="Rocky Linux 9.4 (Blue Onyx)", swap_mib=_SWAP_MIB
)
LEAP = Machine(
    os_id="opensuse-leap", os_version="15.6", os_name="openSUSE Leap 15.6", swap_mib=_SWAP_MIB
)


class Play(msgspec.Struct, frozen=True):
    """A cluster file of the examples, and the hosts that it is made on."""

    name: str
    machine: Machine
    bundled: bool = True
    """Everything comes out of a bundle, so that what is not brought is not there."""

    def stage(self) -> Stage:
        """The cluster, planned, with hosts for it."""
        return Stage(_CLUSTERS / f"{self.name}.yaml", self.machine, bundled=self.bundled)


PLAYS = (
    Play("three-and-two", DEBIAN),
    Play("own-etcd", ROCKY),
    Play("keepalived", LEAP),
    Play("own-registry", DEBIAN),
    Play("air-gapped", ROCKY),
    Play("storage-and-addons", LEAP),
    Play("hardened", DEBIAN),
    Play("cilium", ROCKY),
    Play("kube-vip", DEBIAN),
    Play("ipvs-and-name-cache", LEAP),
    Play("mixed-arch", DEBIAN),
)
"""Together they have every module, and every kind of step but those of hooks and logins."""

SHARE = 60
"""One of so many mutants is played by the tests."""
ENOUGH = 0.95
"""The part of them that has to be caught."""


def most_by_chance(played: int) -> int:
    """So many of a few survive at most, 99 times of 100, where enough of all are caught."""
    likely = 0.0
    for survived in range(played):
        others = played - survived
        likely += comb(played, survived) * (1 - ENOUGH) ** survived * ENOUGH**others
        if likely >= 0.99:
            return survived
    return played


def some(play: Play, mutants: Iterable[Mutant], every: int) -> list[Mutant]:
    """One of so many, by their names: the same whenever asked, and others in another cluster."""
    return [one for one in mutants if _drawn(f"{play.name}: {one}") % every == 0]


def _drawn(name: str) -> int:
    return int(sha256(name.encode()).hexdigest(), 16)
