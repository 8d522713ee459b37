"""What a file says wrong of its hosts beyond the shape of its parts: names, ranges, references.

As in `checks`, the data is read as it was written, whatever else is wrong with it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kubexm.common.counting import few
from kubexm.common.roles import CONTROL_NODE
from kubexm.common.secrets import is_reference
from kubexm.document import ranges
from kubexm.document.findings import Finding
from kubexm.document.ranges import MAX_HOSTS, BadRange, Pattern
from kubexm.document.source import DataPath, texts
from kubexm.spec import references
from kubexm.spec.model import HostSpec
from kubexm.spec.references import BadReference, Reference

Written = Mapping[str, Any]
IN_LABELS = ("name", "address")
"""What of its host a label may name: what else there is may hang on labels."""


def findings(body: Written) -> Iterator[Finding]:
    """Everything that is wrong with the hosts of a pipeline and with what groups give them."""
    entries = [*_entries(body)]
    yield from _names(entries)
    for number, entry in entries:
        yield from (finding.under("hosts", number) for finding in _addresses(entry))
        yield from (finding.under("hosts", number) for finding in _facts(entry))
        yield from (finding.under("hosts", number) for finding in _local(entry))
    for path, owner in _owners(body, entries):
        yield from (finding.under(*path) for finding in _variables(owner))
        yield from (finding.under(*path) for finding in _labels(owner))
        yield from (finding.under(*path) for finding in _ssh(owner))


def connection_secrets(body: Written) -> Iterator[tuple[str, DataPath]]:
    """The references to secrets that connections need, and where they are written."""
    for path, owner in _owners(body, [*_entries(body)]):
        for inner, text in texts(owner.get("ssh"), ("spec", *path, "ssh")):
            if is_reference(text):
                yield text, inner


def shared_addresses(specs: Sequence[HostSpec]) -> Iterator[Finding]:
    """Entries of which all hosts have one address: that is allowed, but seldom meant."""
    for number, spec in enumerate(specs):
        size = ranges.parse(spec.name).size
        if size > 1 and spec.address and not ranges.parse(spec.address).has_ranges:
            message = f"{size} hosts have this address, so they are one machine"
            hint = f"write a range of {size}, or leave `address` out"
            yield Finding(("spec", "hosts", number, "address"), message, hint)


def _entries(body: Written) -> Iterator[tuple[int, Written]]:
    hosts = body.get("hosts")
    for number, entry in enumerate(hosts if isinstance(hosts, list) else ()):
        if isinstance(entry, Mapping):
            yield number, entry


def _owners(
    body: Written, entries: Sequence[tuple[int, Written]]
) -> Iterator[tuple[DataPath, Written]]:
    """Who gives variables to hosts: the pipeline, its groups, the hosts themselves."""
    yield (), body
    groups = body.get("groups")
    for name, group in groups.items() if isinstance(groups, Mapping) else ():
        if isinstance(group, Mapping):
            yield ("groups", name), group
    yield from ((("hosts", number), entry) for number, entry in entries)


def _pattern(entry: Written, key: str) -> Pattern | None:
    """The ranges under a key; None if there is no text, or one that can't be read."""
    text = entry.get(key)
    if not isinstance(text, str):
        return None
    try:
        return ranges.parse(text)
    except BadRange:
        return None


def _names(entries: Sequence[tuple[int, Written]]) -> Iterator[Finding]:
    first: dict[str, int] = {}
    made = 0
    for number, entry in entries:
        pattern = _pattern(entry, "name")
        if pattern is None:
            continue
        size = pattern.size if pattern.has_ranges else 0
        if made + size > MAX_HOSTS:
            message = f"ranges make {made + size} hosts up to here, want at most {MAX_HOSTS}"
            hint = "make the range shorter, or split the pipeline"
            yield Finding(("hosts", number, "name"), message, hint)
            continue
        made += size
        found = _of_names([*pattern.members()], number, first)
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


def _addresses(entry: Written) -> Iterator[Finding]:
    name, address = _pattern(entry, "name"), _pattern(entry, "address")
    if name is None or address is None or not address.has_ranges or name.size == address.size:
        return
    message = f"found {address.size} addresses, want {name.size}, as many as there are names"
    hint = f"write a range of {name.size}, or leave `address` out"
    if not name.has_ranges:
        hint = "write one address, or a range in `name` too"
    yield Finding(("address",), message, hint)


def _variables(owner: Written) -> Iterator[Finding]:
    """Variables are known before the run, so they may name nothing that is not."""
    for path, found in _references(owner, "vars"):
        if isinstance(found, BadReference):
            yield Finding(path, str(found), found.hint)
        elif found.root not in ("vars", "host"):
            message = f"`{found.written_out}` in a variable"
            yield Finding(path, message, "a variable may name `vars` and `host` only")


def _labels(owner: Written) -> Iterator[Finding]:
    for path, found in _references(owner, "labels"):
        if isinstance(found, BadReference):
            yield Finding(path, str(found), found.hint)
        elif found.root != "host" or found.path not in {(name,) for name in IN_LABELS}:
            message = f"`{found.written_out}` in a label"
            yield Finding(path, message, "a label may name `host.name` and `host.address` only")


def _references(owner: Written, key: str) -> Iterator[tuple[DataPath, Reference | BadReference]]:
    held = owner.get(key)
    return references.scan(held if isinstance(held, Mapping) else {}, (key,))


def _facts(entry: Written) -> Iterator[Finding]:
    """What is declared of a host is written out: it is read before anything is resolved."""
    for path, found in references.scan(entry.get("facts"), ("facts",)):
        written = found.excerpt if isinstance(found, BadReference) else found.written_out
        yield Finding(path, f"`{written}` in a declared fact", "write the value itself")


def _local(entry: Written) -> Iterator[Finding]:
    if entry.get("connection") == "local" and entry.get("ssh") is not None:
        message = "`ssh` of a host that is reached without: `connection: local`"
        yield Finding(("ssh",), message, "leave one of them out", at_key=True)


def _ssh(owner: Written) -> Iterator[Finding]:
    """How a host is reached is written out, as well: nothing of it is resolved."""
    for path, found in _references(owner, "ssh"):
        written = found.excerpt if isinstance(found, BadReference) else found.written_out
        yield Finding(path, f"`{written}` in a setting of a connection", "write the value itself")
