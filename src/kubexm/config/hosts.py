"""What a file says wrong of its hosts beyond the shape of its parts: names, ranges, addresses.

The data is read as it was written, whatever else is wrong with it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kubexm.common.counting import few
from kubexm.common.roles import CONTROL_NODE
from kubexm.document import ranges
from kubexm.document.findings import Finding
from kubexm.document.ranges import MAX_HOSTS, BadRange, Pattern
from kubexm.document.source import DataPath

Written = Mapping[str, Any]


def entries(body: Written) -> Iterator[tuple[int, Written]]:
    """The entries of the list that can be read at all, with their numbers."""
    hosts = body.get("hosts")
    for number, entry in enumerate(hosts if isinstance(hosts, list) else ()):
        if isinstance(entry, Mapping):
            yield number, entry


def pattern(entry: Written, key: str) -> Pattern | None:
    """The ranges under a key; None if there is no text, or one that can't be read."""
    return _pattern(entry.get(key))


def _pattern(text: Any) -> Pattern | None:
    if not isinstance(text, str):
        return None
    try:
        return ranges.parse(text)
    except BadRange:
        return None


def names(entries: Sequence[tuple[int, Written]]) -> Iterator[Finding]:
    """Names that are there twice, and more hosts than there may be."""
    first: dict[str, int] = {}
    made = 0
    for number, entry in entries:
        name = pattern(entry, "name")
        if name is None:
            continue
        size = name.size if name.has_ranges else 0
        if made + size > MAX_HOSTS:
            message = f"ranges make {made + size} hosts up to here, want at most {MAX_HOSTS}"
            hint = "make the range shorter, or split the file"
            yield Finding(("hosts", number, "name"), message, hint)
            continue
        made += size
        found = _of_names([*name.members()], number, first)
        yield from (finding.under("hosts", number, "name") for finding in found)


def _of_names(names: Sequence[str], number: int, first: dict[str, int]) -> Iterator[Finding]:
    if CONTROL_NODE in names:
        hint = f"leave it out: `runOnRoles: [{CONTROL_NODE}]` is always there"
        yield Finding((), f"`{CONTROL_NODE}` is made by the program", hint)
    again = [name for name in names if first.setdefault(name, number) != number]
    if again:
        hosts = "the host" if len(again) == 1 else "the hosts"
        message = f"{hosts} {few(again)} {'is' if len(again) == 1 else 'are'} there twice"
        yield Finding((), message, f"entry {first[again[0]]} has {_it(again)} already")
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        message = f"the ranges make {few(twice)} more than once"
        yield Finding((), message, "put something between them, such as `-`")


def _it(names: Sequence[str]) -> str:
    return "it" if len(names) == 1 else "them"


def addresses(entry: Written) -> Iterator[Finding]:
    """Ranges of addresses that are longer or shorter than those of the names."""
    name, inner = pattern(entry, "name"), entry.get("internalAddresses")
    written: list[tuple[DataPath, Pattern | None]] = [(("address",), pattern(entry, "address"))]
    if isinstance(inner, list):
        texts = enumerate(inner)
        written += ((("internalAddresses", at), _pattern(text)) for at, text in texts)
    for place, address in written:
        if name is not None and address is not None:
            yield from _of_size(name, address, place)


def _of_size(name: Pattern, address: Pattern, place: DataPath) -> Iterator[Finding]:
    if not address.has_ranges or name.size == address.size:
        return
    message = f"found {address.size} addresses, want {name.size}, as many as there are names"
    hint = f"write a range of {name.size}, or leave `{place[0]}` out"
    if not name.has_ranges:
        hint = "write one address, or a range in `name` too"
    yield Finding(place, message, hint)


def local(entry: Written) -> Iterator[Finding]:
    """Settings of a connection where there is none."""
    if entry.get("connection") == "local" and entry.get("ssh") is not None:
        message = "`ssh` of a host that is reached without: `connection: local`"
        yield Finding(("ssh",), message, "leave one of them out", at_key=True)
