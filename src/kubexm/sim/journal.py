"""Simulated journalctl: what a unit said last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kubexm.connector.base import Completed
from kubexm.sim.delivered import unit_name
from kubexm.sim.registered import DAEMONS
from kubexm.sim.shell import Program, Shell, said

_UNIT = frozenset(("-u", "--unit"))
_VALUED = frozenset(("-n", "--lines", "-o", "--output", "--since"))
_FLAGS = frozenset(("--no-pager", "-x", "-e", "-q", "--quiet", "-b"))


def journalctl(shell: Shell, args: Sequence[str]) -> Completed:
    rest, unit = list(args), ""
    while rest:
        option, sign, value = rest.pop(0).partition("=")
        if option in _UNIT | _VALUED:
            given = value if sign else rest.pop(0)
            unit = unit_name(given) if option in _UNIT else unit
        elif option not in _FLAGS:
            raise shell.unexpected()
    if not unit:
        raise shell.unexpected()
    return said(f"{last_words(shell, unit) or '-- No entries --'}\n")


def last_words(shell: Shell, unit: str) -> str:
    """What a unit said last: why it does not run, or how it goes."""
    service = shell.service(unit)
    if service is None:
        return ""
    if service.active and service.program in DAEMONS:
        return DAEMONS[service.program].says(shell) or f"{service.program} runs"
    return service.failed


PROGRAMS: Mapping[str, Program] = {"journalctl": journalctl}
