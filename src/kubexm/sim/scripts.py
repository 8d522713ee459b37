"""Scripts that kubexm lays on hosts, carried out without a shell: what they do, line by line."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence

from kubexm.connector.base import Completed
from kubexm.sim import standins
from kubexm.sim.shell import OK, Program, Shell, failed

_ROUTE = re.compile(r"^\s*ip (-[46]) route replace (\S+) via (\S+)", re.MULTILINE)
_MASQUERADE = re.compile(r"^\s*masquerade (ip6?tables) (\S+)$", re.MULTILINE)
_OURS_BY = ("proto", "186")
_DIRECTORY = re.compile(r"^directory=(.+)$", re.MULTILINE)
_USAGE = 64


def script(shell: Shell, path: str) -> Program | None:
    """What a script does; None if it is none of ours."""
    place = standins.place(shell, path)
    text = "" if place is None else shell.files.read(place).decode(errors="replace")
    if not text.startswith("#!"):
        return None
    return next((program(text) for mark, program in _OURS.items() if mark in text), None)


def _routes(text: str) -> Program:
    def run(shell: Shell, args: Sequence[str]) -> Completed:
        if list(args) == ["start"]:
            return _first_failure(shell, _laid(text))
        if list(args) == ["stop"]:
            return _first_failure(shell, _taken_away(text))
        return failed("usage: start|stop", _USAGE)

    return run


def _laid(text: str) -> list[tuple[str, ...]]:
    routes = [
        ("ip", family, "route", "replace", *shlex.split(f"{network} via {gateway}"), *_OURS_BY)
        for family, network, gateway in _ROUTE.findall(text)
    ]
    return [*routes, *(_masqueraded("-A", *found) for found in _MASQUERADE.findall(text))]


def _taken_away(text: str) -> list[tuple[str, ...]]:
    flushes = [("ip", family, "route", "flush", *_OURS_BY) for family in ("-4", "-6")]
    return [*flushes, *(_masqueraded("-D", *found) for found in _MASQUERADE.findall(text))]


def _masqueraded(verb: str, tool: str, network: str) -> tuple[str, ...]:
    (source,) = shlex.split(network)
    rule = ("POSTROUTING", "-s", source, "!", "-d", source, "-j", "MASQUERADE")
    return (tool, "-w", "-t", "nat", verb, *rule)


def _first_failure(shell: Shell, commands: Sequence[Sequence[str]]) -> Completed:
    for command in commands:
        if not (done := shell.run(command)).ok:
            return done
    return OK


def _backup(text: str) -> Program:
    def run(shell: Shell, _args: Sequence[str]) -> Completed:
        found = _DIRECTORY.search(text)
        (directory,) = shlex.split(found[1]) if found else ("/var/backups",)
        part, copy = f"{directory}/.unfinished", f"{directory}/etcd-20260101T000000Z.db"
        whole = text.replace("\\\n", " ").replace('"$part"', part)
        lines = (shlex.split(line) for line in whole.splitlines() if " snapshot " in line)
        make = ("mkdir", "-p", "--", directory)
        return _first_failure(shell, (make, *lines, ("mv", "--", part, copy)))

    return run


_OURS: Mapping[str, Callable[[str], Program]] = {
    "# Routes to the pods of other hosts": _routes,
    "# Copy the data of etcd": _backup,
}
"""By a line that each has."""
