"""Commands that the settings of a world answer: in which turn, and what they leave behind."""

from __future__ import annotations

import math
from collections.abc import Sequence
from posixpath import dirname

import msgspec

from kubexm.sim.delivered import unit_name
from kubexm.sim.settings import Effects, Script
from kubexm.sim.shell import Shell
from kubexm.sim.starting import set_service
from kubexm.sim.state import Service


def in_turn(scripts: Sequence[Script]) -> list[tuple[Script, float]]:
    """Each script with the number of the last use of its pattern that it answers."""
    answered: dict[tuple[str, ...], float] = {}
    turns = []
    for script in scripts:
        times = math.inf if script.times is None else script.times
        answered[script.argv] = answered.get(script.argv, 0) + times
        turns.append((script, answered[script.argv]))
    return turns


def leave(shell: Shell, effects: Effects) -> None:
    """Have a host be as a command leaves it."""
    for path, text in effects.files.items():
        shell.files.make_directory(dirname(path), parents=True)
        shell.files.write(path, text.encode())
    for path in effects.absent:
        if shell.files.lookup(path) is not None:
            shell.files.remove_tree(path)
    for name, active in effects.services.items():
        _switch(shell, unit_name(name), active)
    for package, version in effects.packages.items():
        shell.state.set(f"package:{package}", version)
    for port in effects.opens:
        shell.state.set(f"port:{port}", 1)
    for port in effects.closes:
        shell.state.set(f"port:{port}", None)


def _switch(shell: Shell, unit: str, active: bool) -> None:
    service = shell.service(unit) or Service()
    changed = msgspec.structs.replace(service, active=active)
    set_service(shell, unit, changed, starts=active and not service.active)
