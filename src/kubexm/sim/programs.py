"""The programs a simulated host has, and how a command finds its program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from posixpath import basename

from kubexm.connector.base import Completed
from kubexm.sim import archives, coreutils, facts, kernel, packages, system, systemd, users
from kubexm.sim.shell import Program, Shell, failed

PROGRAMS: Mapping[str, Program] = {
    **archives.PROGRAMS,
    **coreutils.PROGRAMS,
    **kernel.PROGRAMS,
    **packages.PROGRAMS,
    **system.PROGRAMS,
    **systemd.PROGRAMS,
    **users.PROGRAMS,
    "sh": facts.sh,
}


def run(shell: Shell, argv: Sequence[str]) -> Completed:
    """Carry out a command; `Refused` if nobody taught the simulation how."""
    if argv[0] == "timeout":
        argv = argv[2:]
    name = argv[0]
    program = PROGRAMS.get(name) or PROGRAMS.get(basename(name))
    if program is None:
        raise shell.unexpected(argv)
    try:
        return program(shell, argv[1:])
    except OSError as error:
        return failed(f"{name}: '{error.filename}': {error.strerror}")
