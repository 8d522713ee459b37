"""Hosts that were looked at, as people and programs read them."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from kubexm.app.hosts import CheckedHost, Kind, Trouble
from kubexm.cli.output import table
from kubexm.cli.tree import named
from kubexm.common.counting import counted
from kubexm.plan.outline import one_line

_STATES: Mapping[Kind, str] = {
    "unreachable": "unreachable",
    "sudo": "no sudo",
    "clock": "clock is off",
    "disk": "low on disk",
}


class _Column(msgspec.Struct, frozen=True):
    header: str
    cell: Callable[[CheckedHost], str]
    rank: int = 0
    """Where there is no room, the highest goes first; 0 stays."""


def width() -> int | None:
    """How wide a table may be: as the terminal, and elsewhere as it has to be."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def as_text(hosts: Sequence[CheckedHost], width: int | None = None) -> str:
    """A table of the hosts, what is wrong with them, and how many are well."""
    columns = [column for column in _COLUMNS if any(map(column.cell, hosts))]
    shown = _fitting(columns, hosts, width)
    lines = [_drawn(shown, hosts), ""]
    lines += _wrong(hosts)
    lines.append(_counts(hosts))
    if missed := [column.header for column in columns if column not in shown]:
        lines.append(f"note: no room for {', '.join(missed)}: a wider terminal or `-o json` has it")
    return "\n".join(lines)


def _fitting(
    columns: Sequence[_Column], hosts: Sequence[CheckedHost], width: int | None
) -> list[_Column]:
    """As many columns as there is room for."""
    shown = [*columns]
    for column in sorted(columns, key=lambda column: -column.rank):
        taken = max(map(len, _drawn(shown, hosts).splitlines()), default=0)
        if width is None or taken <= width or column.rank == 0:
            break
        shown.remove(column)
    return shown


def _drawn(columns: Sequence[_Column], hosts: Sequence[CheckedHost]) -> str:
    rows = [[one_line(column.cell(host)) or "-" for column in columns] for host in hosts]
    return table([column.header for column in columns], rows)


def _wrong(hosts: Sequence[CheckedHost]) -> Iterator[str]:
    """Each trouble with the hosts that have it, those alike on one line."""
    groups: dict[tuple[Kind, str, str], list[tuple[CheckedHost, Trouble]]] = {}
    for host in hosts:
        for trouble in host.troubles:
            key = (trouble.kind, _alike(trouble.what, host), _alike(trouble.hint, host))
            groups.setdefault(key, []).append((host, trouble))
    for (_, what, hint), group in groups.items():
        if len(group) == 1:
            host, trouble = group[0]
            yield from _line(trouble.message, [host.name], trouble.hint)
        else:
            yield from _line(what, [_with_figure(*each) for each in group], hint)
    if groups:
        yield ""


def _line(what: str, names: list[str], hint: str) -> tuple[str, str]:
    return f"✗ {_whole(what)}  [{named(names)}]", f"    hint: {_whole(hint)}"


def _whole(text: str) -> str:
    """On one line, and all of it: a command that mends something is worth nothing in part."""
    return one_line(text, len(text) + 1)


def _alike(text: str, host: CheckedHost) -> str:
    """The text without what only this host is called, so that many have the same."""
    names = "|".join(re.escape(name) for name in (host.name, host.address))
    return re.sub(rf"(?<![\w.-])(?:{names})(?![\w-])", "HOST", text)


def _with_figure(host: CheckedHost, trouble: Trouble) -> str:
    return f"{host.name} ({trouble.figure})" if trouble.figure else host.name


def _counts(hosts: Sequence[CheckedHost]) -> str:
    wrong = sum(bool(host.troubles) for host in hosts)
    if not wrong:
        return f"{counted(len(hosts), 'host')}, nothing is wrong"
    return f"{counted(len(hosts), 'host')}: {len(hosts) - wrong:,} ok, {wrong:,} not"


def _state(host: CheckedHost) -> str:
    return ", ".join(_STATES[trouble.kind] for trouble in host.troubles) or "ok"


def _system(host: CheckedHost) -> str:
    system = host.facts.get("os", {})
    return " ".join(filter(None, (system.get("id"), system.get("version"))))


def _free(host: CheckedHost) -> str:
    found = host.facts.get("filesystems", ())
    return next((_size(each["free_mib"]) for each in found if each["path"] == "/"), "")


def _size(mib: int | None) -> str:
    if mib is None:
        return ""
    return f"{mib / 1024:,.1f} GiB" if mib >= 1024 else f"{mib} MiB"


def _clock(host: CheckedHost) -> str:
    if (clock := host.facts.get("clock")) is None:
        return ""
    offset = clock["offset_s"]
    return f"{offset:+,.1f} s" if abs(offset) >= 0.05 else "0 s"


def _fact(name: str) -> Callable[[CheckedHost], str]:
    return lambda host: str(host.facts.get(name, ""))


_COLUMNS = (
    _Column("HOST", lambda host: host.name),
    _Column("ADDRESS", lambda host: host.address, 5),
    _Column("STATE", _state),
    _Column("OS", _system, 1),
    _Column("KERNEL", _fact("kernel"), 9),
    _Column("ARCH", _fact("arch"), 6),
    _Column("CPUS", _fact("cpus"), 3),
    _Column("MEMORY", lambda host: _size(host.facts.get("memory_mib")), 2),
    _Column("FREE ON /", _free, 4),
    _Column("CLOCK", _clock, 7),
    _Column("INIT", _fact("init"), 10),
    _Column("RUNTIMES", lambda host: " ".join(host.facts.get("runtimes", ())), 8),
)


def as_data(hosts: Sequence[CheckedHost]) -> dict[str, Any]:
    """The same for programs."""
    return {"hosts": [_data(host) for host in hosts]}


def _data(host: CheckedHost) -> dict[str, Any]:
    return {
        "name": host.name,
        "address": host.address,
        "reached": host.reached,
        "problems": [
            {"kind": trouble.kind, "message": trouble.message, "hint": trouble.hint}
            for trouble in host.troubles
        ],
        "facts": dict(host.facts),
    }
