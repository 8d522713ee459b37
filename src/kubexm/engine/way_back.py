"""What became of a run's changes on its way back: taken back, left, or still there."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from kubexm.engine.undo import COMPENSATE, FORMER, UNDO, is_left, is_settling, is_undo
from kubexm.plan.node import Compensation, ExecutionNode
from kubexm.plan.records import RunState, Unit
from kubexm.plan.result import HostResult
from kubexm.plan.validation import inside

Ends = Mapping[str, HostResult]
"""What came of one node of an undo graph, by host."""


class WayBack:
    """How the undos and compensations of a run ended, by path."""

    def __init__(self, ends: Mapping[str, Ends]) -> None:
        self._ends = ends
        self._compensations: dict[str, list[Ends]] = {}
        self._former: dict[str, list[str]] = {}
        for path, hosts in ends.items():
            scope, compensated, _ = _origin(path).partition(COMPENSATE)
            id, former, _ = _origin(path).partition(FORMER)
            if compensated:
                self._compensations.setdefault(scope, []).append(hosts)
            elif former and not is_settling(path):
                self._former.setdefault(id, []).append(path)

    def why_left(self, id: str, host: str) -> str | None:
        """Why the change of this unit stays, if its undo has left it."""
        for path, end in self._own(id, host):
            if is_left(path, end):
                return end.message
        return None

    def is_settled(self, id: str, host: str) -> bool:
        """Whether there is nothing left to do about this unit: it is taken back, or left."""
        return self.is_taken_back(id, host) or self.why_left(id, host) is not None

    def is_taken_back(self, id: str, host: str) -> bool:
        """By the undo of the unit itself, or by the compensation of a scope around it."""
        if own := self._own(id, host):
            return all(end.status == "Success" for _, end in own)
        if f"{UNDO}/{id}" in self._ends:
            return False
        around = (nodes for scope, nodes in self._compensations.items() if inside(id, scope))
        return any(_went_well_for(host, nodes) for nodes in around)

    def _own(self, id: str, host: str) -> list[tuple[str, HostResult]]:
        """How the undo of the unit ended, or those of what an earlier plan had it go on with."""
        paths = (f"{UNDO}/{id}", *self._former.get(id, ()))
        ends = [
            (path, self._ends[path][host]) for path in paths if host in self._ends.get(path, {})
        ]
        return ends[:1] if ends and ends[0][0] == paths[0] else ends


def _origin(path: str) -> str:
    return path.removeprefix(f"{UNDO}/")


def _went_well_for(host: str, nodes: Iterable[Ends]) -> bool:
    """What a compensation does on the host went well there; what it does elsewhere, everywhere."""
    ends = (end for node in nodes for end in ((node[host],) if host in node else node.values()))
    return all(end.status == "Success" or end.satisfied for end in ends)


def way_back(state: RunState, compensations: Iterable[Compensation]) -> WayBack:
    """The same from the journal of a run, which may have been interrupted on its way back."""
    ends: dict[str, dict[str, HostResult]] = {}
    for (path, _), done in state.done.items():
        if is_undo(path):
            ends.setdefault(path, {})[done.result.host_name] = done.result
    begun = {_origin(path).partition(COMPENSATE)[0] for path in ends if COMPENSATE in path}
    for node in (node for item in compensations if item.scope in begun for node in item.nodes):
        _add_pending(node, ends.setdefault(f"{UNDO}/{node.id}", {}))
    if state.turned is not None:
        for (id, host), place in state.places().items():
            if not _lies_in(id, begun):
                ends.setdefault(f"{UNDO}/{place}", {}).setdefault(host, HostResult(host))
    return WayBack(ends)


def _add_pending(node: ExecutionNode, ends: dict[str, HostResult]) -> None:
    if not (node.one_of and ends):
        for host in node.hosts:
            ends.setdefault(host, HostResult(host))


def touched(state: RunState) -> frozenset[Unit]:
    """The units that an earlier life has set out to take back, whatever came of it."""
    begun = {
        (_origin(node), done.result.host_name)
        for (node, _), done in state.done.items()
        if is_undo(node) and done.result.attempts
    }
    scopes = {path.partition(COMPENSATE)[0] for path, _ in begun if COMPENSATE in path}
    return frozenset(
        unit
        for unit, done in state.done.items()
        if (unit[0], done.result.host_name) in begun or _lies_in(unit[0], scopes)
    )


def _lies_in(id: str, scopes: Collection[str]) -> bool:
    return any(inside(id, scope) for scope in scopes)
