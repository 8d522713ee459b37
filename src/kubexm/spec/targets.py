"""Where files come to from hosts: another place for each, as far as that is known beforehand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from kubexm.common.counting import few
from kubexm.document.findings import Finding
from kubexm.spec import references
from kubexm.spec.inventory import InventoryHost
from kubexm.spec.references import BadReference, Reference


def clashes(to: str, beside: str, hosts: Sequence[InventoryHost]) -> Iterator[Finding]:
    """What is wrong with the places that these hosts' files come to."""
    places: dict[str, list[str]] = {}
    for host in hosts:
        if (place := _place(to, host)) is not None:
            places.setdefault(place, []).append(host.name)
    for place, names in places.items():
        if Path(beside, place).is_dir():
            hint = f"name a file in it, such as `{place.rstrip('/')}/${{host.name}}`"
            yield Finding((), f"`{place}` is a directory, want a file", hint)
            return
        if len(names) > 1:
            message = f"the files of {few(names)} would all come to `{place}`"
            yield Finding((), message, "put `${host.name}` into it, so that each host has its own")
            return


def _place(to: str, host: InventoryHost) -> str | None:
    """Where the file of a host comes; None if only a run knows."""
    scope = {"vars": host.vars, "host": host.described()}
    asked = [found for _, found in references.scan(to) if isinstance(found, Reference)]
    if any(found.root not in scope for found in asked):
        return None
    try:
        found = references.resolved(to, lambda one: references.in_scope(one, scope))
    except BadReference:
        return None  # said where all references are looked up
    return references.written(found)
