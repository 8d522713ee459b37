"""The file that a `source` names: read once when planning, so one for all hosts of a step."""

from __future__ import annotations

from collections.abc import Sequence

from kubexm.document.findings import Finding
from kubexm.spec import references
from kubexm.spec.inventory import InventoryHost, OnHosts
from kubexm.spec.references import BadReference, Reference

_REASONS = {
    "host": "is of each host, and a source is read once for all",
    "facts": "is known when the step runs, and a source is read when planning",
    "values": "is known when the step runs, and a source is read when planning",
}


def named(source: str, hosts: Sequence[InventoryHost]) -> tuple[str, list[Finding]]:
    """The name of the file with these hosts' variables, and what is wrong with it."""
    asked = [found for _, found in references.scan(source) if isinstance(found, Reference)]
    if wrong := [_not_yet(found) for found in asked if found.root != "vars"]:
        return "", wrong
    names, missing = _names(source, hosts)
    if missing or len(names) == 1:
        return "".join(names[:1]), missing
    message = f"`{source}` is not the same on all hosts, and a source is read once for all"
    return "", [Finding((), message, _by_entry(asked[0]))]


def _names(source: str, hosts: Sequence[InventoryHost]) -> tuple[list[str], list[Finding]]:
    names: dict[str, None] = {}
    missing = OnHosts()
    for host in hosts:
        try:
            names[_name(source, host)] = None
        except BadReference as error:
            missing.add(Finding((), str(error), error.hint), [host.name])
    return [*names], [*missing.findings(len(hosts))]


def _name(source: str, host: InventoryHost) -> str:
    scope = {"vars": host.vars}
    found = references.resolved(source, lambda asked: references.in_scope(asked, scope))
    return references.written(found)


def _not_yet(asked: Reference) -> Finding:
    return Finding((), f"`{asked.written_out}` {_REASONS[asked.root]}", _by_entry(asked))


def _by_entry(asked: Reference) -> str:
    return f"go over them with `forEach`, name `${{item}}` here, and say `when: {asked} == item`"
