"""What held back what in a run that is over: the units, their real times, and the graph."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from operator import attrgetter
from typing import NamedTuple

from kubexm.plan.graph import ExecutionGraph
from kubexm.plan.node import ExecutionNode, Join
from kubexm.plan.records import Unit
from kubexm.plan.result import GraphExecutionResult
from kubexm.plan.validation import topological_order


class Span(NamedTuple):
    """When a unit ran, in seconds on some clock."""

    start: float
    end: float


class Last(NamedTuple):
    """The unit that was final last of those one waited for, and when."""

    end: float
    unit: Unit | None


NOTHING = Last(float("-inf"), None)
_end = attrgetter("end")


def latest(candidates: Iterable[Last]) -> Last:
    """The last of them."""
    return max(candidates, key=_end, default=NOTHING)


class History:
    """Follows barriers, same-host edges and holes; a unit that never ran is a hole too."""

    def __init__(
        self, graph: ExecutionGraph, result: GraphExecutionResult, spans: Mapping[Unit, Span]
    ) -> None:
        self._graph = graph
        self._spans = spans
        self._expander = dict(_expanders(result))
        self._units = self._ended()
        self._ordered: dict[str, list[Last]] = {}
        self._families = self._expansions()
        self._lanes: dict[Unit, Last] = {}
        self._everywhere: dict[str, Last] = {}
        self._fill_barriers()

    def critical_path(self) -> list[Unit]:
        """Back from the unit that ended last, always to the last one that it waited for."""
        here = max(self._spans, key=lambda unit: self._spans[unit].end, default=None)
        path: dict[Unit, None] = {}
        while here is not None and here not in path:
            path[here] = None
            here = self.held_back_by(here).unit
        return list(path)[::-1]

    def held_back_by(self, unit: Unit) -> Last:
        """The last unit that this one had to wait for."""
        id, host = unit
        found = [self._awaited(self._graph.nodes[id], host)] if id in self._graph.nodes else []
        if (expander := self._expander.get(id)) is not None:
            # The edges inside an expansion are not in the graph; what ended before comes closest.
            family = self._families[expander]
            at = bisect_right(family, self._spans[unit].start, key=_end)
            found += family[max(0, at - 1) : at]
        last = latest(found)
        if last.end <= self._spans[unit].end:
            return last
        return self._last_before(unit)

    def _last_before(self, unit: Unit) -> Last:
        """The same where what it waited for was done again since, or later than all else.

        An earlier life did the unit, or a hook waited for a rollback: at that time it was a hole.
        """
        id, host = unit
        moment = self._spans[unit].end
        found: list[Last] = []
        places = [*self._dependencies(id, host)]
        seen = set(places)
        while places:
            place = places.pop()
            ended = self._ends_at(place)
            at = bisect_right(ended, moment, key=_end)
            found += ended[max(0, at - 1) : at]
            further = [p for p in self._through(place, ended=bool(at)) if p not in seen]
            seen.update(further)
            places += further
        return latest(found)

    def _through(
        self, place: tuple[str, str | None], *, ended: bool
    ) -> Iterable[tuple[str, str | None]]:
        """What counts for a node beside its own end: it may have ended on some hosts only."""
        id, host = place
        if not ended:
            return self._dependencies(id, host)
        lanes = self._graph.nodes[id].after_same_host if id in self._graph.nodes else ()
        return [(before, None) for before in lanes] if host is None else []

    def _dependencies(self, id: str, host: str | None) -> Iterator[tuple[str, str | None]]:
        if (vertex := self._graph.nodes.get(id) or self._graph.joins.get(id)) is not None:
            yield from ((before, None) for before in vertex.after)
            yield from ((before, host) for before in vertex.after_same_host)

    def _ends_at(self, place: tuple[str, str | None]) -> list[Last]:
        """When a node ended on a host, or on all of them, in order."""
        id, host = place
        ended = self._units.get(id, {})
        if host is not None:
            return [ended[host]] if host in ended else []
        if id not in self._ordered:
            self._ordered[id] = sorted(ended.values(), key=_end)
        return self._ordered[id]

    def _ended(self) -> dict[str, dict[str, Last]]:
        """By node and host the end of each unit, and of what it was expanded to."""
        units: dict[str, dict[str, Last]] = {}
        for unit, span in self._spans.items():
            end = Last(span.end, unit)
            inside: Unit | None = unit
            while inside is not None:
                id, host = inside
                hosts = units.setdefault(id, {})
                hosts[host] = latest([end, hosts.get(host, NOTHING)])
                inside = self._expander.get(id)
        return units

    def _expansions(self) -> dict[Unit, list[Last]]:
        """By expander the units it added and its own, by their end."""
        families: dict[Unit, list[Last]] = {}
        for unit, span in self._spans.items():
            if (expander := self._expander.get(unit[0])) is not None:
                own = self._spans.get(expander)
                first = [] if own is None else [Last(own.end, expander)]
                families.setdefault(expander, first).append(Last(span.end, unit))
        for family in families.values():
            family.sort(key=_end)
        return families

    def _fill_barriers(self) -> None:
        nodes, joins = self._graph.nodes, self._graph.joins
        for id in topological_order(nodes, joins)[0]:
            vertex = nodes.get(id) or joins[id]
            ended = self._units.get(id, {})
            # Where a node is not, or did not run, what it would have waited for counts.
            before = vertex.after_same_host if ended else self._graph.dependencies(id)
            others = (self._everywhere[other] for other in before)
            self._everywhere[id] = latest([*ended.values(), *others])

    def _awaited(self, vertex: ExecutionNode | Join, host: str) -> Last:
        barriers = [self._everywhere[id] for id in vertex.after]
        return latest([*barriers, *(self._here(id, host) for id in vertex.after_same_host)])

    def _here(self, id: str, host: str) -> Last:
        """The unit on this host, or through holes what it would have waited for."""
        path = [id]  # instead of recursion: a lane may have thousands of holes in a row
        while path:
            here = path[-1]
            vertex = self._graph.nodes.get(here) or self._graph.joins[here]
            if (ended := self._units.get(here, {}).get(host)) is not None:
                self._lanes[here, host] = ended
            elif holes := [d for d in vertex.after_same_host if (d, host) not in self._lanes]:
                path += holes
                continue
            else:
                lanes = (self._lanes[before, host] for before in vertex.after_same_host)
                barriers = (self._everywhere[before] for before in vertex.after)
                self._lanes[here, host] = latest([*barriers, *lanes])
            path.pop()
        return self._lanes[id, host]


def _expanders(result: GraphExecutionResult) -> Iterator[tuple[str, Unit]]:
    """For each node that an expander added, the unit that added it: `node/@host/…`."""
    known = result.node_results
    for id in known:
        at = id.rfind("/@")
        while at > 0:
            parent, host = id[:at], id[at + 2 :].partition("/")[0]
            if parent in known and host in known[parent].host_results:
                yield id, (parent, host)
                break
            at = id.rfind("/@", 0, at)
