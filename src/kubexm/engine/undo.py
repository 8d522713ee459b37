"""The undo graph: what a run changed, taken back in the reverse order of the units."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from kubexm.engine.expansion import Grown
from kubexm.plan import records
from kubexm.plan.fragment import replace
from kubexm.plan.graph import ExecutionGraph, build
from kubexm.plan.node import Compensation, ExecutionNode, Join, StepSpec
from kubexm.plan.policy import NO_HOST, Tolerance
from kubexm.plan.result import HostResult
from kubexm.plan.validation import inside

UNDO = records.UNDO
"""First segment of every path in an undo graph."""
COMPENSATE = "/@compensate/"
"""What stands between a scope and the nodes that undo it as a whole."""
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
) -> ExecutionGraph | None:
    """A graph that undoes these hosts of these nodes; None if there is nothing to undo.

    An edge becomes its reverse. A node that changed nothing becomes a join, so that the order
    holds across it. A scope with a compensation is one vertex: its entry waits for the undo of
    all that followed the scope, and the undo of all before waits for its exits. Those that are
    `settling` have their say once more on each host when all is undone there.
    """
    if not any(changed.values()):
        return None
    plan = _Reversed(grown, changed)
    nodes, joins = [*plan.nodes()], [*plan.joins()]
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
    def __init__(self, graph: Grown, changed: Mapping[str, tuple[str, ...]]) -> None:
        self._graph = graph
        self._changed = changed
        self._compensated = self._due()
        self._after: dict[str, list[str]] = {}
        self._after_same_host: dict[str, list[str]] = {}
        for vertices in (graph.nodes.values(), graph.joins.values()):
            for vertex in vertices:
                self._reverse(vertex)

    def _due(self) -> dict[str, Compensation]:
        """Outermost compensations of scopes in which something changed."""
        due: dict[str, Compensation] = {}
        for item in sorted(self._graph.compensations, key=lambda item: len(item.scope)):
            touched = any(hosts and inside(id, item.scope) for id, hosts in self._changed.items())
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
        more = [host for node in self._graph.nodes.values() for host in node.hosts]
        return tuple(dict.fromkeys((*known, *more)))

    def nodes(self) -> Iterable[ExecutionNode]:
        for id, hosts in self._undone():
            after, same_host = self._edges(self._after, id), self._edges(self._after_same_host, id)
            yield self._node(id, _undo(id), hosts, after, same_host)
        for scope, item in self._compensated.items():
            yield from self._compensation(scope, item)

    def settling(self, ids: Collection[str]) -> Iterable[ExecutionNode]:
        for id, hosts in self._undone():
            if id in ids:
                yield self._node(id, _undo(id) + SETTLE, hosts, (), (_ALL,))

    def _undone(self) -> Iterable[tuple[str, tuple[str, ...]]]:
        """The nodes that are undone one by one, and where."""
        for id in self._graph.nodes:
            if (hosts := self._changed.get(id)) and self._scope(id) is None:
                yield id, hosts

    def _node(
        self,
        id: str,
        path: str,
        hosts: tuple[str, ...],
        after: tuple[str, ...],
        after_same_host: tuple[str, ...],
    ) -> ExecutionNode:
        node = self._graph.nodes[id]
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
