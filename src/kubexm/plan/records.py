"""What the journal keeps of a run, and the state that a run resumes from.

A record is appended once and never changed; folding all records of a run in order gives the
state. Skips that follow from a failure are records too, so that a store can show them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from kubexm.plan.events import ProducedValue
from kubexm.plan.fragment import ExecutionFragment
from kubexm.plan.node import ExecutionNode
from kubexm.plan.result import Cause, HostResult

Unit = tuple[str, str]
"""A node id and a host name; `*` is the host of a `one_of` node."""
UNDO = "@undo"
"""First segment of the paths of what takes something back."""
Layer = tuple[ExecutionNode, ...]
"""Nodes that stand on none of each other, but perhaps on those of layers before."""


class Record(msgspec.Struct, frozen=True, tag=True, rename="camel", omit_defaults=True):
    """One line of the journal; `at` is seconds since the epoch."""

    at: float


class UnitDone(Record, frozen=True):
    """A unit is final: with its values and fragment, all or nothing.

    A failure `quarantines` its host, or `blocks` what waits at a barrier, or both; a unit held
    back blocks too, unless it was lost with its host.
    """

    node: str
    host: str
    result: HostResult
    quarantines: bool = False
    blocks: bool = False
    values: tuple[ProducedValue, ...] = ()
    fragment: ExecutionFragment | None = None


class UnitIntended(Record, frozen=True):
    """A unit is about to change a host."""

    node: str
    host: str
    attempt: int


class UnitBound(Record, frozen=True):
    """A `one_of` unit runs on this host."""

    node: str
    host: str


class Quarantined(Record, frozen=True):
    """A host was lost outside of any unit's result."""

    host: str
    cause: Cause


class Turned(Record, frozen=True):
    """From here on the run goes back."""

    cause: Cause


class LedgerEntry(Record, frozen=True):
    """What a resource of a host was like before the run's first change to it.

    `first` is what it was like before any run of its name, where only the host knew.
    """

    host: str
    resource: str
    prior: dict[str, Any]
    first: dict[str, Any] | None = None


class Reopened(Record, frozen=True):
    """A retry: these units are pending again, and no host is quarantined.

    What some of them `changed` still stands: a rollback takes it back, whatever they find now.
    So it does with what `former` nodes changed, which are no more, or do something else now.
    On `unsettled` hosts not all was taken back that a rollback set out to: there it still goes
    back to what was found before; elsewhere to what the next go will find itself.
    """

    units: tuple[Unit, ...]
    changed: tuple[Unit, ...] = ()
    former: tuple[Layer, ...] = ()
    unsettled: tuple[str, ...] = ()


class LifeBegan(Record, frozen=True):
    """Somebody works on the run, for the first time or again."""


class LifeEnded(Record, frozen=True):
    """Nobody works on it any more: it has ended, or was cancelled."""


class HostSeen(Record, frozen=True):
    """The host had this boot id when the run first reached it."""

    host: str
    boot_id: str


AnyRecord = (
    HostSeen
    | UnitDone
    | UnitIntended
    | UnitBound
    | Quarantined
    | Turned
    | LedgerEntry
    | Reopened
    | LifeBegan
    | LifeEnded
)


@dataclass(slots=True)
class RunState:
    """What is known of a run when it starts or is resumed."""

    done: dict[Unit, UnitDone] = field(default_factory=dict)
    intended: set[Unit] = field(default_factory=set)
    under_way: set[Unit] = field(default_factory=set)
    """Intended in the latest life, without an end: what runs now, or ran when that life ended."""
    bound: dict[str, str] = field(default_factory=dict)
    quarantined: dict[str, Cause] = field(default_factory=dict)
    boots: dict[str, str] = field(default_factory=dict)
    priors: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    """What the run has found before its changes, by host and resource."""
    former: tuple[Layer, ...] = ()
    """What earlier plans of the run have changed, as it was planned, on the hosts in question."""
    left: list[ProducedValue] = field(default_factory=list)
    """Values of units that were opened again: what is undone was done with them."""
    turned: Cause | None = None
    late: set[Unit] = field(default_factory=set)
    """Done after the run turned back, so no part of what is undone."""

    @classmethod
    def fold(cls, records: Iterable[AnyRecord]) -> RunState:
        """The state after these records, in order."""
        state = cls()
        for record in records:
            state.apply(record)
        return state

    def apply(self, record: AnyRecord) -> None:
        """Take one more record into account."""
        match record:
            case UnitDone():
                self._finish(record)
            case UnitIntended():
                self.intended.add((record.node, record.host))
                self.under_way.add((record.node, record.host))
            case UnitBound():
                self.bound[record.node] = record.host
            case Quarantined():
                self.quarantined[record.host] = record.cause
            case HostSeen():
                self._see(record)
            case Turned():
                self.turned = record.cause
            case Reopened():
                self._reopen(record)
            case LedgerEntry():
                found = self.priors.setdefault(record.host, {})
                found.setdefault(record.resource, record.prior)
            case LifeBegan():
                self.under_way.clear()  # else, who worked when is no state

    def _finish(self, record: UnitDone) -> None:
        unit = record.node, record.host
        self.done[unit] = record
        self.under_way.discard(unit)
        if self.turned is not None:
            self.late.add(unit)
        if record.result.status != "Cancelled":
            self.intended.discard(unit)
        self._note_quarantine(record)

    def _see(self, record: HostSeen) -> None:
        """After a reboot, finished units of the host start again at their precheck."""
        known = self.boots.setdefault(record.host, record.boot_id)
        if known != record.boot_id:
            self.boots[record.host] = record.boot_id
            for unit, done in list(self.done.items()):
                if done.result.host_name == record.host and _must_be_looked_at_again(done):
                    del self.done[unit]
                    if done.result.changed:
                        self.intended.add(unit)

    def _note_quarantine(self, record: UnitDone) -> None:
        result = record.result
        if record.quarantines and result.failure is not None:
            cause = Cause(record.node, result.host_name, result.message, result.failure)
            self.quarantined.setdefault(result.host_name, cause)

    def _still_there(self, layer: Layer) -> Layer:
        """The nodes of a layer on the hosts where the run, which has turned, did not undo them."""
        left = ((node, self._not_undone(node)) for node in layer)
        return tuple(msgspec.structs.replace(node, hosts=hosts) for node, hosts in left if hosts)

    def _not_undone(self, node: ExecutionNode) -> tuple[str, ...]:
        undos = {host: self.done.get((f"{UNDO}/{node.id}", host)) for host in node.hosts}
        return tuple(
            host for host, undo in undos.items() if undo is None or _came_to_nothing(undo.result)
        )

    def _reopen(self, record: Reopened) -> None:
        if self.turned is not None:
            known = self.priors
            self.priors = {host: known[host] for host in record.unsettled if host in known}
            self.former = tuple(filter(None, map(self._still_there, self.former)))
        self.former += record.former
        standing = set(record.changed)
        for unit in record.units:
            if (done := self.done.pop(unit, None)) is not None:
                self.left += done.values
            if unit not in standing:
                self.bound.pop(unit[0], None)
        self.intended |= standing
        self.quarantined.clear()
        self.late.clear()
        self.turned = None


def _came_to_nothing(undo: HostResult) -> bool:
    return undo.status != "Success" and not undo.satisfied


def _must_be_looked_at_again(done: UnitDone) -> bool:
    return done.result.status == "Success" or done.result.satisfied
