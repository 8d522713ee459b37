"""The longest chain of a graph: what has to happen one after the other, however many hosts."""

from __future__ import annotations

from collections.abc import Mapping

from kubexm.plan.graph import ExecutionGraph
from kubexm.plan.validation import topological_order


def longest_chain(
    graph: ExecutionGraph, seconds: Mapping[str, float] | None = None
) -> tuple[str, ...]:
    """The nodes of the chain that takes longest, by how long each took last; else all alike."""
    known = seconds or {}
    usual = sum(known.values()) / len(known) if known else 1.0
    order, _ = topological_order(graph.nodes, graph.joins)
    until: dict[str, float] = {}
    before: dict[str, str] = {}
    for id in order:
        own = known.get(id, usual) if id in graph.nodes else 0.0
        last = max(graph.dependencies(id), key=until.__getitem__, default="")
        until[id] = own + until.get(last, 0.0)
        before[id] = last
    at = max(until, key=until.__getitem__, default="")
    chain: list[str] = []
    while at:
        chain.append(at)
        at = before[at]
    return tuple(id for id in reversed(chain) if id in graph.nodes)
