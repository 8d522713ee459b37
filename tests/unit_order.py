"""Which unit waits for which, worked out from a graph the slow and obvious way.

The words of docs/explanation/how-a-run-is-scheduled.md, unit by unit and without any shortcut: what
schedulers, selections and pictures do cleverly is compared with this.
"""

from __future__ import annotations

from functools import cache

from kubexm.plan import ExecutionGraph, ExecutionNode, Join
from kubexm.plan.node import ANY_HOST
from kubexm.plan.records import Unit

Units = frozenset[Unit]
Order = dict[Unit, Units]


def units_of(node: ExecutionNode) -> Units:
    """The units of a node; the one of a `one_of` node has no host yet."""
    hosts = (ANY_HOST,) if node.one_of else node.hosts
    return frozenset((node.id, host) for host in hosts)


def units(graph: ExecutionGraph) -> Units:
    """All units of a graph."""
    return frozenset(unit for node in graph for unit in units_of(node))


def waits_for(graph: ExecutionGraph) -> Order:
    """For each unit the units it waits for itself, across holes."""
    words = _Words(graph)
    return {unit: words.awaited(*unit) for unit in units(graph)}


def follows(graph: ExecutionGraph) -> Order:
    """For each unit all units that are final before it starts."""
    return _closure(waits_for(graph))


def follows_on_host(graph: ExecutionGraph) -> Order:
    """For each unit the units that same-host edges alone put before it."""
    words = _Words(graph)
    return _closure({unit: words.lane(*unit) for unit in units(graph)})


def _closure(direct: Order) -> Order:
    @cache
    def before(unit: Unit) -> Units:
        parents = direct[unit]
        return parents.union(*(before(parent) for parent in parents))

    return {unit: before(unit) for unit in direct}


class _Words:
    """What that page says of edges and holes, one method for each rule."""

    def __init__(self, graph: ExecutionGraph) -> None:
        self._graph = graph
        self.awaited = cache(self._awaited)
        self.everywhere = cache(self._everywhere)
        self.lane = cache(self._lane)

    def _vertex(self, id: str) -> ExecutionNode | Join:
        return self._graph.nodes.get(id) or self._graph.joins[id]

    def _exists(self, id: str, host: str) -> bool:
        vertex = self._vertex(id)
        return isinstance(vertex, ExecutionNode) and (id, host) in units_of(vertex)

    def _awaited(self, id: str, host: str) -> Units:
        """Barriers on every host, same-host edges on this one."""
        vertex = self._vertex(id)
        barriers = (self.everywhere(before) for before in vertex.after)
        here = (self._here(before, host) for before in vertex.after_same_host)
        return Units().union(*barriers, *here)

    def _here(self, id: str, host: str) -> Units:
        """The unit on this host; where there is none, what it would have waited for."""
        return Units([(id, host)]) if self._exists(id, host) else self.awaited(id, host)

    def _everywhere(self, id: str) -> Units:
        """The vertex on every host; where it is not, what it would have waited for there."""
        vertex = self._vertex(id)
        if isinstance(vertex, Join):
            return Units().union(*(self.everywhere(d) for d in self._graph.dependencies(id)))
        return units_of(vertex).union(*(self.everywhere(d) for d in vertex.after_same_host))

    def _lane(self, id: str, host: str) -> Units:
        """Along same-host edges alone."""
        before = self._vertex(id).after_same_host
        here = (Units([(d, host)]) if self._exists(d, host) else self.lane(d, host) for d in before)
        return Units().union(*here)
