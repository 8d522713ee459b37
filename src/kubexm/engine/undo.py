"""The undo graph: what a run changed, taken back in the reverse order of the units."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Mapping, Sequence

from kubexm.engine.expansion import Grown
from kubexm.plan import records
from kubexm.plan.fragment import replace
from kubexm.plan.graph import ExecutionGraph, build
from kubexm.plan.node import Compensation, ExecutionNode, Join, StepSpec
from kubexm.plan.policy import NO_HOST, Tolerance
from kubexm.plan.records import Layer
from kubexm.plan.result import HostResult
from kubexm.plan.validation import inside

UNDO = records.UNDO
"""First segment of every path in an undo graph."""
COMPENSATE = "/@compensate/"
"""What stands between a scope and the nodes that undo it as a whole."""
FORMER = records.FORMER
"""What stands between a node of an earlier plan and its number among those."""
SETTLE = "/@settle"
"""Ends the path of what is done for a node when all before it is undone, too."""
_ALL = f"{UNDO}/@all"
NOT_EVEN_UNREACHABLE = Tolerance(unreachable=NO_HOST)
"""What is not undone has to be told, whatever the reason."""


def undo_graph(
    graph: ExecutionGraph,
    grown: Grown,
    changed: Mapping[str, tuple[str, ...]],
    settling: Collection[str] = (),
    former: Sequence[Layer] = (),
) -> ExecutionGraph | None:
    """A graph that undoes these hosts of these nodes; None if there is nothing to undo.

    An edge becomes its reverse. A node that changed nothing becomes a join, so that the order
    holds across it. A scope with a compensation is one vertex: its entry waits for the undo of
    all that followed the scope, and the undo of all before waits for its exits. What `former`
    plans of the run have changed was there first, so it goes last. Those that are `settling` have
    their say once more on each host when all is undone there.
    """
    if not any(changed.values()) and not former:
        return None
    plan = _Reversed(grown, changed, [_in_pools(layer, graph.pools) for layer in former])
    nodes, joins = [*plan.nodes()], [*plan.joins()]
    for layer in plan.layers():
        joins.append(Join(f"{_undo(layer[0].id)}/@all", tuple(_last(nodes, joins))))
        nodes += (_backward(node, _undo(node.id), node.hosts, (joins[-1].id,)) for node in layer)
    if settled := [*plan.settling(settling)]:
        joins.append(Join(_ALL, (), tuple(_last(nodes, joins))))
    return build(
        f"{graph.name} (undo)",
        (*nodes, *settled),
        joins=joins,
        hosts=plan.hosts(graph.hosts),
        pools=graph.pools,
    )


def is_undo(node: str) -> bool:
    """Whether a path is one of an undo graph."""
    return node.startswith(f"{UNDO}/")


def is_settling(node: str) -> bool:
    """Whether it takes nothing back, but goes on with what was there before."""
    return is_undo(node) and node.endswith(SETTLE)


def is_left(node: str, result: HostResult) -> bool:
    """Whether this is an undo that has left the change of its unit as it is."""
    return is_undo(node) and COMPENSATE not in node and result.satisfied


class _Reversed:
    def __init__(
        self, graph: Grown, changed: Mapping[str, tuple[str, ...]], former: Sequence[Layer]
    ) -> None:
        self._graph = graph
        self._changed = changed
        self._former = former
        self._compensated = self._due()
        self._after: dict[str, list[str]] = {}
        self._after_same_host: dict[str, list[str]] = {}
        for vertices in (graph.nodes.values(), graph.joins.values()):
            for vertex in vertices:
                self._reverse(vertex)

    def _due(self) -> dict[str, Compensation]:
        """Outermost compensations of scopes in which something changed."""
        changed = {id for id, hosts in self._changed.items() if hosts}
        changed.update(node.id for layer in self._former for node in layer)
        due: dict[str, Compensation] = {}
        for item in sorted(self._graph.compensations, key=lambda item: len(item.scope)):
            touched = any(inside(id, item.scope) for id in changed)
            if touched and not any(inside(item.scope, outer) for outer in due):
                due[item.scope] = item
        return due

    def _scope(self, id: str) -> str | None:
        return next((scope for scope in self._compensated if inside(id, scope)), None)

    def _reverse(self, vertex: ExecutionNode | Join) -> None:
        follower = self._scope(vertex.id)
        for edges, target in (
            (vertex.after, self._after),
            (vertex.after_same_host, self._after_same_host),
        ):
            for dependency in edges:
                before = self._scope(dependency)
                if before is not None and before == follower:
                    continue
                barrier = before is not None or follower is not None
                chosen = self._after if barrier else target
                waits = _entry(before) if before is not None else _undo(dependency)
                waited = _exit(follower) if follower is not None else _undo(vertex.id)
                chosen.setdefault(waits, []).append(waited)

    def hosts(self, known: tuple[str, ...]) -> tuple[str, ...]:
        """Those of the graph, and where an expander's fragment went besides."""
        nodes = (*self._graph.nodes.values(), *itertools.chain(*self._former))
        more = [host for node in nodes for host in node.hosts]
        return tuple(dict.fromkeys((*known, *more)))

    def nodes(self) -> Iterable[ExecutionNode]:
        for id, hosts in self._undone():
            after, same_host = self._edges(self._after, id), self._edges(self._after_same_host, id)
            yield _backward(self._graph.nodes[id], _undo(id), hosts, after, same_host)
        for scope, item in self._compensated.items():
            yield from self._compensation(scope, item)

    def layers(self) -> Iterable[Layer]:
        """What former plans changed, latest first, as far as no compensation undoes it."""
        for layer in reversed(self._former):
            if own := tuple(node for node in layer if self._scope(node.id) is None):
                yield own

    def settling(self, ids: Collection[str]) -> Iterable[ExecutionNode]:
        undone = ((self._graph.nodes[id], hosts) for id, hosts in self._undone())
        former = ((node, node.hosts) for layer in self.layers() for node in layer)
        for node, hosts in itertools.chain(undone, former):
            if node.id in ids:
                yield _backward(node, _undo(node.id) + SETTLE, hosts, after_same_host=(_ALL,))

    def _undone(self) -> Iterable[tuple[str, tuple[str, ...]]]:
        """The nodes that are undone one by one, and where."""
        for id in self._graph.nodes:
            if (hosts := self._changed.get(id)) and self._scope(id) is None:
                yield id, hosts

    def _compensation(self, scope: str, item: Compensation) -> Iterable[ExecutionNode]:
        own = {key.name for node in item.nodes for key in node.step.provides}
        for node in item.nodes:
            moved = _moved(node, own)
            entry = not node.after and not node.after_same_host
            yield replace(moved, after=(_entry(scope),)) if entry else moved

    def joins(self) -> Iterable[Join]:
        for id in (*self._graph.nodes, *self._graph.joins):
            if self._scope(id) is None and not self._changed.get(id):
                yield Join(
                    _undo(id),
                    self._edges(self._after, id),
                    self._edges(self._after_same_host, id),
                )
        for scope, item in self._compensated.items():
            yield Join(_entry(scope), tuple(dict.fromkeys(self._after.get(_entry(scope), ()))))
            yield Join(_exit(scope), tuple(_undo(node.id) for node in item.nodes))
            for join in item.joins:
                yield Join(_undo(join.id), _all_undo(join.after), _all_undo(join.after_same_host))

    def _edges(self, edges: Mapping[str, list[str]], id: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(edges.get(_undo(id), ())))


def _backward(
    node: ExecutionNode,
    path: str,
    hosts: tuple[str, ...],
    after: tuple[str, ...] = (),
    after_same_host: tuple[str, ...] = (),
) -> ExecutionNode:
    return ExecutionNode(
        id=path,
        name=node.name,
        step=_bare(node.step),
        hosts=hosts,
        after=after,
        after_same_host=after_same_host,
        retry=node.retry,
        limits=node.limits,
        timeout=node.timeout,
        tolerance=NOT_EVEN_UNREACHABLE,
    )


def _in_pools(layer: Layer, pools: Collection[str]) -> Layer:
    """The same nodes; a pool of a former plan may be no more."""
    return tuple(
        replace(node, limits=replace(node.limits, pools=_known(node.limits.pools, pools)))
        for node in layer
    )


def _known(names: Iterable[str], pools: Collection[str]) -> tuple[str, ...]:
    return tuple(name for name in names if name in pools)


def _last(nodes: Iterable[ExecutionNode], joins: Iterable[Join]) -> Iterable[str]:
    """The vertices that nothing waits for."""
    vertices: list[ExecutionNode | Join] = [*nodes, *joins]
    awaited = {id for vertex in vertices for id in (*vertex.after, *vertex.after_same_host)}
    return (vertex.id for vertex in vertices if vertex.id not in awaited)


def _undo(id: str) -> str:
    return f"{UNDO}/{id}"


def _all_undo(ids: Iterable[str]) -> tuple[str, ...]:
    return tuple(_undo(id) for id in ids)


def _entry(scope: str) -> str:
    return f"{UNDO}/{scope}/@entry"


def _exit(scope: str) -> str:
    return f"{UNDO}/{scope}/@exit"


def _moved(node: ExecutionNode, own: Collection[str]) -> ExecutionNode:
    # Values of the run that is undone are taken as they are: nothing in this graph makes them.
    needs = tuple(name for name in node.step.needs if name in own)
    return replace(
        node,
        id=_undo(node.id),
        step=replace(node.step, needs=needs),
        tolerance=node.tolerance or NOT_EVEN_UNREACHABLE,
        after=_all_undo(node.after),
        after_same_host=_all_undo(node.after_same_host),
        hook=None,
    )


def _bare(step: StepSpec) -> StepSpec:
    # Its values were left by the run that is undone, not by anything in this graph.
    return StepSpec(step.kind, step.params, references=step.references)
