"""Simulated hosts: worlds that lie in a directory, with latency, faults and scripts."""

from kubexm.sim.connector import SimConnector
from kubexm.sim.host import SimHost
from kubexm.sim.settings import (
    Distribution,
    Effects,
    Fault,
    Fixed,
    Lognormal,
    Machine,
    PackageSettings,
    Script,
    ServiceSettings,
    Uniform,
    WorldSettings,
)
from kubexm.sim.world import World

__all__ = [
    "Distribution",
    "Effects",
    "Fault",
    "Fixed",
    "Lognormal",
    "Machine",
    "PackageSettings",
    "Script",
    "ServiceSettings",
    "SimConnector",
    "SimHost",
    "Uniform",
    "World",
    "WorldSettings",
]
