"""What a file says wrong of its hosts beyond the shape of its parts: names, ranges, references.

As in `checks`, the data is read as it was written, whatever else is wrong with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kubexm.common.secrets import is_reference
from kubexm.config import hosts
from kubexm.config.hosts import Written
from kubexm.document import ranges
from kubexm.document.findings import Finding
from kubexm.document.source import DataPath, texts
from kubexm.spec import references
from kubexm.spec.model import HostSpec
from kubexm.spec.references import BadReference, Reference

IN_LABELS = ("name", "address")
"""What of its host a label may name: what else there is may hang on labels."""


def findings(body: Written) -> Iterator[Finding]:
    """Everything that is wrong with the hosts of a pipeline and with what groups give them."""
    entries = [*hosts.entries(body)]
    yield from hosts.names(entries)
    for number, entry in entries:
        yield from (finding.under("hosts", number) for finding in hosts.addresses(entry))
        yield from (finding.under("hosts", number) for finding in _facts(entry))
        yield from (finding.under("hosts", number) for finding in hosts.local(entry))
    for path, owner in _owners(body, entries):
        yield from (finding.under(*path) for finding in _variables(owner))
        yield from (finding.under(*path) for finding in _labels(owner))
        yield from (finding.under(*path) for finding in _ssh(owner))


def connection_secrets(body: Written) -> Iterator[tuple[str, DataPath]]:
    """The references to secrets that connections need, and where they are written."""
    for path, owner in _owners(body, [*hosts.entries(body)]):
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


def _ssh(owner: Written) -> Iterator[Finding]:
    """How a host is reached is written out, as well: nothing of it is resolved."""
    for path, found in _references(owner, "ssh"):
        written = found.excerpt if isinstance(found, BadReference) else found.written_out
        yield Finding(path, f"`{written}` in a setting of a connection", "write the value itself")
