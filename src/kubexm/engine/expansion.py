"""Fragments that an expander adds to the running graph: where they may lie, run and be undone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from kubexm.common.roles import CONTROL_NODE
from kubexm.engine.topology import Unit
from kubexm.errors import StepFailed
from kubexm.plan.fragment import ExecutionFragment, prefixed, replace
from kubexm.plan.graph import ExecutionGraph, build
from kubexm.plan.node import Compensation, ExecutionNode, Join
from kubexm.plan.policy import Pool

MAX_DEPTH = 3


def checked_fragment(
    unit: Unit, fragment: ExecutionFragment, pools: Mapping[str, Pool]
) -> ExecutionFragment | None:
    """The fragment under the unit's own path, or an error if it may not be there."""
    moved = prefixed(f"{unit.node.id}/@{unit.host}", fragment)
    if moved is None:
        return None
    if _depth(unit) >= MAX_DEPTH:
        raise StepFailed(f"expands more than {MAX_DEPTH} levels deep")
    hosts = (unit.host, CONTROL_NODE)
    strangers = {host for node in _all_nodes(moved) for host in node.hosts}.difference(hosts)
    if strangers:
        wanted = f"`{unit.host}` or `{CONTROL_NODE}`"
        raise StepFailed(f"expands to nodes on {', '.join(sorted(strangers))}, want {wanted}")
    build(
        unit.node.id,
        _without_needs(moved.nodes),
        joins=moved.joins,
        compensations=tuple(
            replace(item, nodes=_without_needs(item.nodes)) for item in moved.compensations
        ),
        hosts=tuple(dict.fromkeys(hosts)),
        pools=dict(pools),
    )
    return moved


def _all_nodes(fragment: ExecutionFragment) -> Iterable[ExecutionNode]:
    yield from fragment.nodes
    for item in fragment.compensations:
        yield from item.nodes


def _without_needs(nodes: Iterable[ExecutionNode]) -> tuple[ExecutionNode, ...]:
    # Values come from before the expander too, so only the shape is checked.
    return tuple(replace(node, step=replace(node.step, needs=())) for node in nodes)


def _depth(unit: Unit) -> int:
    depth, parent = 0, unit.node.parent
    while parent is not None:
        depth, parent = depth + 1, parent.node.parent
    return depth


class Expansion(msgspec.Struct, frozen=True):
    """What one unit of an expander added."""

    node: str
    host: str
    fragment: ExecutionFragment


class Grown:
    """A graph with all that was added to it: each fragment between its expander and what follows.

    It only lends its shape to an undo graph, so nobody asks where its values come from.
    """

    def __init__(self, graph: ExecutionGraph, expansions: Iterable[Expansion]) -> None:
        self.nodes: dict[str, ExecutionNode] = dict(graph.nodes)
        self.joins: dict[str, Join] = dict(graph.joins)
        self.compensations: list[Compensation] = list(graph.compensations)
        self._followers: dict[str, list[str]] = {}
        self._note_edges((*graph.nodes.values(), *graph.joins.values()))
        for expansion in expansions:
            self._graft(expansion)

    def _note_edges(self, vertices: Iterable[ExecutionNode | Join]) -> None:
        for vertex in vertices:
            for id in dict.fromkeys((*vertex.after, *vertex.after_same_host)):
                self._followers.setdefault(id, []).append(vertex.id)

    def _graft(self, expansion: Expansion) -> None:
        fragment, expander = expansion.fragment, self.nodes[expansion.node]
        entries = frozenset(fragment.entries)
        for node in fragment.nodes:
            grafted = _behind(node, expander, expansion) if node.id in entries else node
            self.nodes[node.id] = grafted
        self.joins.update((join.id, join) for join in fragment.joins)
        self.compensations.extend(fragment.compensations)
        exits = [self.nodes[id] for id in fragment.exits]
        for id in self._followers.get(expander.id, []):
            self._put_behind(id, exits, expansion)
        # As they were: what is added on one host does not wait for what is added on another.
        self._note_edges((*fragment.nodes, *fragment.joins))

    def _put_behind(self, id: str, exits: list[ExecutionNode], expansion: Expansion) -> None:
        """Whoever follows the expander follows what it added, too."""
        vertices: dict[str, ExecutionNode] | dict[str, Join]
        vertices = self.nodes if id in self.nodes else self.joins
        vertex = vertices[id]
        barred = [
            node.id for node in exits if expansion.node in vertex.after or _roams(node, expansion)
        ]
        along = [node.id for node in exits if node.id not in barred]
        vertices[id] = replace(  # type: ignore[assignment]  # a node stays one, a join too
            vertex,
            after=(*vertex.after, *barred),
            after_same_host=(*vertex.after_same_host, *along),
        )
        for node in exits:
            self._followers.setdefault(node.id, []).append(id)


def _behind(node: ExecutionNode, expander: ExecutionNode, expansion: Expansion) -> ExecutionNode:
    # No edge leads from a unit to one host of a node; what roams waits for all, which is safe.
    if expander.one_of or _roams(node, expansion):
        return replace(node, after=(expander.id,))
    return replace(node, after_same_host=(expander.id,))


def _roams(node: ExecutionNode, expansion: Expansion) -> bool:
    """Whether it runs elsewhere than on the host that it was added for."""
    return node.one_of or node.hosts != (expansion.host,)
