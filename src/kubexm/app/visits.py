"""Which hosts a run goes to, and of which it has to know the facts."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

from kubexm.common.roles import CONTROL_NODE
from kubexm.plan.graph import ExecutionGraph
from kubexm.plan.node import ExecutionNode
from kubexm.plan.outline import whole
from kubexm.plan.records import Layer, RunState
from kubexm.spec.decisions import decided_against, facts_needed
from kubexm.spec.inventory import InventoryHost
from kubexm.step import registry
from kubexm.step.contract import Expander, Step


def named(
    graph: ExecutionGraph, hosts: Sequence[InventoryHost], former: Iterable[Layer] = ()
) -> list[InventoryHost]:
    """The hosts that the graph names, or may come to name; others have no part in it."""
    names = {host for node in itertools.chain(graph, *former) for host in node.hosts}
    if _expands(graph):
        names.add(CONTROL_NODE)
    for item in graph.compensations:
        names.update(host for node in item.nodes for host in node.hosts)
    return [host for host in hosts if host.name in names]


def idle(graph: ExecutionGraph, hosts: Sequence[InventoryHost], state: RunState) -> frozenset[str]:
    """Of the hosts of a graph those on which it is known by now that nothing will be done."""
    if state.done or state.former or _expands(graph):
        return frozenset()  # there may be something to undo, or to come
    return decided_against(graph, hosts)


def asked(graph: ExecutionGraph, former: Sequence[Layer]) -> frozenset[str] | None:
    """The hosts of which something needs the facts; None stands for all of them."""
    if former or _expands(graph):
        return None  # what there was, or will be, may name any
    nodes, _ = whole(graph)
    readers = (node for node in nodes.values() if _step(node).reads_facts)
    return facts_needed(graph).union(host for node in readers for host in node.hosts)


def _expands(graph: ExecutionGraph) -> bool:
    return any(issubclass(_step(node), Expander) for node in graph)


def _step(node: ExecutionNode) -> type[Step]:
    return registry.find(node.step.kind)
