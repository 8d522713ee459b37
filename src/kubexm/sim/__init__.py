"""Simulated hosts: worlds that lie in a directory, with latency, faults and scripts.

Every run knows what a world may be like; only few make one, so the rest is loaded when it is named.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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
_ELSEWHERE = {"SimConnector": "connector", "SimHost": "host", "World": "world"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module `{__name__}` has no `{name}`")
    return getattr(import_module(f"{__name__}.{_ELSEWHERE.get(name, 'settings')}"), name)
