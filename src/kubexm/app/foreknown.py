"""What a node comes to on a host, as far as that is known before a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from kubexm.plan.graph import ExecutionGraph
from kubexm.plan.node import ExecutionNode
from kubexm.spec import references
from kubexm.spec.inventory import InventoryHost
from kubexm.spec.references import BadReference, Reference
from kubexm.store import Documents

ROOTS = ("vars", "host")
"""What references may begin with for that; facts and values are found by the run."""


class Plan(msgspec.Struct, frozen=True):
    """A graph and the hosts it was made for."""

    graph: ExecutionGraph
    hosts: tuple[InventoryHost, ...]


def plan_of(documents: Documents) -> Plan:
    """What a run was to do, and on which hosts."""
    hosts = msgspec.json.decode(documents.spec, type=tuple[InventoryHost, ...])
    return Plan(documents.graph, hosts)


def parameters(node: ExecutionNode, host: InventoryHost) -> dict[str, Any]:
    """The parameters on a host: however they are written, what counts is what they come to."""
    step = node.step
    if not step.references:
        return step.params
    found: dict[str, Any] = references.resolved(step.params, lambda name: looked_up(name, host))
    return found


def parameters_in_part(node: ExecutionNode, host: InventoryHost) -> dict[str, Any]:
    """The same, still written as references where only a run knows what they come to."""
    found: dict[str, Any] = references.resolved_in_part(
        node.step.params, ROOTS, lambda name: looked_up(name, host)
    )
    return found


def looked_up(reference: Reference, host: InventoryHost) -> Any:
    """What a reference stands for; the reference itself if only the run will know."""
    if reference.root not in ROOTS:
        return f"${{{reference}}}"
    scope: Mapping[str, Any] = {"vars": host.vars, "host": host.described()}
    try:
        return references.in_scope(reference, scope)
    except BadReference:
        return None
