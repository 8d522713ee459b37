"""The edges of a graph that matter: who waits for whom, and what is left without repetitions.

Of two vertices one may wait for the other on the same host or on all hosts. A vertex that is not
on a host, as a join is on none, hands on there what it would have waited for; so it is enough to
follow the edges, and to remember whether a barrier was among them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from kubexm.plan.fragment import replace
from kubexm.plan.graph import ExecutionGraph
from kubexm.plan.node import ExecutionNode, Join
from kubexm.plan.validation import topological_order

Vertex = ExecutionNode | Join


class Edge(msgspec.Struct, frozen=True):
    """One vertex waits for another: on each host for itself, or for all of them."""

    before: str
    after: str
    same_host: bool

    def __str__(self) -> str:
        return f"{self.before} {'→' if self.same_host else '⇒'} {self.after}"


class Sketch:
    """The vertices of a graph, without the promise that they are valid: edges come and go."""

    def __init__(self, graph: ExecutionGraph) -> None:
        self._graph = graph
        self.vertices: dict[str, Vertex] = {**graph.nodes, **graph.joins}

    def graph(self) -> ExecutionGraph:
        """What was made of it; `InvalidGraph` if that can't be run."""
        nodes = {id: one for id, one in self.vertices.items() if isinstance(one, ExecutionNode)}
        joins = {id: one for id, one in self.vertices.items() if isinstance(one, Join)}
        return replace(self._graph, nodes=nodes, joins=joins)

    def copy(self) -> Sketch:
        """Another one to go on with."""
        other = Sketch(self._graph)
        other.vertices = dict(self.vertices)
        return other

    def nodes(self) -> list[ExecutionNode]:
        """The vertices with work."""
        return [one for one in self.vertices.values() if isinstance(one, ExecutionNode)]

    def edges(self) -> list[Edge]:
        """All edges, each once."""
        return [
            edge
            for vertex in self.vertices.values()
            for edge in (
                *(Edge(id, vertex.id, same_host=False) for id in vertex.after),
                *(Edge(id, vertex.id, same_host=True) for id in vertex.after_same_host),
            )
        ]

    def drop_edge(self, edge: Edge) -> None:
        """Leave an edge out."""
        vertex = self.vertices[edge.after]
        gone = {edge.before}
        if edge.same_host:
            left = _without(vertex.after_same_host, gone)
            self.vertices[vertex.id] = replace(vertex, after_same_host=left)
        else:
            self.vertices[vertex.id] = replace(vertex, after=_without(vertex.after, gone))

    def add_barriers(self, before: Iterable[str], after: str) -> None:
        """Let a vertex wait for others on all hosts."""
        vertex = self.vertices[after]
        wanted = dict.fromkeys((*vertex.after, *before))
        self.vertices[after] = replace(vertex, after=tuple(wanted))

    def drop_node(self, id: str) -> None:
        """Leave a node out; who waits for it waits for what it would have waited for."""
        vertex = self.vertices[id]
        self.vertices[id] = Join(id, vertex.after, vertex.after_same_host)

    def behind(self, ids: Iterable[str]) -> set[str]:
        """These, and all that waits for one of them."""
        found = set(ids)
        for id in self._order():
            vertex = self.vertices[id]
            if not found.isdisjoint((*vertex.after, *vertex.after_same_host)):
                found.add(id)
        return found

    def nodes_before(self, id: str) -> set[str]:
        """A node is itself; of a join the nodes that it stands for."""
        vertex = self.vertices[id]
        if isinstance(vertex, ExecutionNode):
            return {id}
        named = (*vertex.after, *vertex.after_same_host)
        return set[str]().union(*map(self.nodes_before, named))

    def reduced(self) -> Sketch:
        """The same order by as few edges as possible, each of which is needed for it."""
        whole, least = _Waits(self).of_nodes(), self.copy()
        for edge in self.edges():
            fewer = least.copy()
            fewer.drop_edge(edge)
            if _Waits(fewer).of_nodes() == whole:
                least = fewer
        least._dissolve()
        return least

    def _dissolve(self) -> None:
        """Take out joins with a single edge on one side: they stand for plain edges."""
        for id in [id for id, one in self.vertices.items() if isinstance(one, Join)]:
            named = self.vertices[id].after + self.vertices[id].after_same_host
            waiting = [edge for edge in self.edges() if edge.before == id]
            if len(named) <= 1 or len(waiting) <= 1:
                self._inline(id, [edge.after for edge in waiting])

    def _inline(self, id: str, waiting: Iterable[str]) -> None:
        join = self.vertices.pop(id)
        for after in waiting:
            vertex = self.vertices[after]
            barriers = join.after
            if id in vertex.after:
                barriers += join.after_same_host
            lanes = join.after_same_host if id in vertex.after_same_host else ()
            self.vertices[after] = replace(
                vertex,
                after=_without((*vertex.after, *barriers), {id}),
                after_same_host=_without((*vertex.after_same_host, *lanes), {id}),
            )

    def _order(self) -> list[str]:
        nodes = {id: one for id, one in self.vertices.items() if isinstance(one, ExecutionNode)}
        joins = {id: one for id, one in self.vertices.items() if isinstance(one, Join)}
        order, ring = topological_order(nodes, joins)
        assert not ring, ring
        return order


class _Waits:
    """For each vertex, as bits of a number, whom it waits for on all hosts, and on its own."""

    def __init__(self, sketch: Sketch) -> None:
        self._vertices = sketch.vertices
        self._bit = {id: 1 << place for place, id in enumerate(sketch.vertices)}
        self._everywhere: dict[str, int] = {}
        self._here: dict[str, int] = {}
        for id in sketch._order():
            self._add(self._vertices[id])

    def _add(self, vertex: Vertex) -> None:
        everywhere = here = 0
        for id in vertex.after:
            everywhere |= self._bit[id] | self._everywhere[id] | self._here[id]
        for id in vertex.after_same_host:
            everywhere |= self._everywhere[id]
            here |= self._bit[id] | self._here[id]
        self._everywhere[vertex.id], self._here[vertex.id] = everywhere, here & ~everywhere

    def of_nodes(self) -> dict[str, tuple[int, int]]:
        """For each node what it waits for of other nodes that it can meet."""
        nodes = {id: one for id, one in self._vertices.items() if isinstance(one, ExecutionNode)}
        real = sum(self._bit[id] for id in nodes)
        met = {id: self._met(node, nodes) for id, node in nodes.items()}
        return {id: (self._everywhere[id] & real, self._here[id] & met[id]) for id in nodes}

    def _met(self, node: ExecutionNode, nodes: Mapping[str, ExecutionNode]) -> int:
        hosts = frozenset(node.hosts)
        return sum(
            self._bit[id] for id, other in nodes.items() if not hosts.isdisjoint(other.hosts)
        )


def _without(ids: Iterable[str], gone: set[str]) -> tuple[str, ...]:
    return tuple(id for id in dict.fromkeys(ids) if id not in gone)
