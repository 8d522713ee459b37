"""What the journal keeps of a run, and the state that a run resumes from.

A record is appended once and never changed; folding all records of a run in order gives the
state. Skips that follow from a failure are records too, so that a store can show them.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping
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
FORMER = "/@former/"
"""What stands between a node of an earlier plan and its number among those."""
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


class LedgerDropped(Record, frozen=True):
    """A resource of a host is as it was before any run of its name: the ledger has nothing of it.

    Who changes it again records anew what was there.
    """

    host: str
    resource: str


class Reopened(Record, frozen=True):
    """A retry: these units are pending again, and no host is quarantined.

    What some of them `changed` still stands: a rollback takes it back, whatever they find now.
    So it does with what `former` nodes changed, which are no more, or do something else now.
    On `unsettled` hosts not all was taken back that a rollback set out to: there it still goes
    back to what was found before; elsewhere to what the next go will find itself. So it does with
    all other resources of hosts on which it is known which ones are `still` changed.
    """

    units: tuple[Unit, ...]
    changed: tuple[Unit, ...] = ()
    former: tuple[Layer, ...] = ()
    unsettled: tuple[str, ...] = ()
    still: dict[str, tuple[str, ...]] = {}


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
    | LedgerDropped
    | Reopened
    | LifeBegan
    | LifeEnded
)


class RunState(msgspec.Struct):
    """What is known of a run when it starts or is resumed."""

    done: dict[Unit, UnitDone] = msgspec.field(default_factory=dict)
    intended: set[Unit] = msgspec.field(default_factory=set)
    standing: set[Unit] = msgspec.field(default_factory=set)
    """What units that were opened again had changed, and no rollback has taken back."""
    under_way: set[Unit] = msgspec.field(default_factory=set)
    """Intended in the latest life, without an end: what runs now, or ran when that life ended."""
    bound: dict[str, str] = msgspec.field(default_factory=dict)
    quarantined: dict[str, Cause] = msgspec.field(default_factory=dict)
    boots: dict[str, str] = msgspec.field(default_factory=dict)
    priors: dict[str, dict[str, dict[str, Any]]] = msgspec.field(default_factory=dict)
    """What the run has found before its changes, by host and resource."""
    former: tuple[Layer, ...] = ()
    """What earlier plans of the run have changed, as it was planned, on the hosts in question."""
    left: list[ProducedValue] = msgspec.field(default_factory=list)
    """Values of units that were opened again: what is undone was done with them."""
    turned: Cause | None = None
    late: set[Unit] = msgspec.field(default_factory=set)
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
            case LedgerEntry() | LedgerDropped():
                self._note_prior(record)
            case LifeBegan():
                self.under_way.clear()  # else, who worked when is no state

    def place(self, unit: Unit) -> str:
        """The host that a unit was done on, or begun."""
        if (done := self.done.get(unit)) is not None:
            return done.result.host_name
        return self.bound.get(unit[0], unit[1])

    def places(self) -> dict[Unit, str]:
        """By node and host the first of its former ones, in whose place all others are undone."""
        found: dict[Unit, str] = {}
        for node in itertools.chain(*self.former):
            for host in node.hosts:
                found.setdefault((node.id.partition(FORMER)[0], host), node.id)
        return found

    def not_undone(self, *, left: bool = True) -> tuple[Layer, ...]:
        """What earlier plans have changed, without what the run, which has turned, has undone.

        What that has `left` is still there; whoever asks for what it never came to says so.
        """
        places = self.places()
        layers = (tuple(self._still_there(layer, places, left)) for layer in self.former)
        return tuple(filter(None, layers))

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

    def _note_prior(self, record: LedgerEntry | LedgerDropped) -> None:
        found = self.priors.setdefault(record.host, {})
        if isinstance(record, LedgerEntry):
            found.setdefault(record.resource, record.prior)
        else:
            found.pop(record.resource, None)

    def _still_there(
        self, layer: Layer, places: Mapping[Unit, str], left: bool
    ) -> Iterator[ExecutionNode]:
        for node in layer:
            id = node.id.partition(FORMER)[0]
            undos = {host: self._undo_of(node.id, places[id, host], host) for host in node.hosts}
            hosts = [host for host, undo in undos.items() if _stands(undo, left)]
            if hosts:
                yield msgspec.structs.replace(node, hosts=tuple(hosts))

    def _undo_of(self, former: str, place: str, host: str) -> UnitDone | None:
        ends = (self.done.get((f"{UNDO}/{id}", host)) for id in (former, place))
        return next(filter(None, ends), None)

    def _reopen(self, record: Reopened) -> None:
        if self.turned is not None:
            self.priors = {
                host: _of(self.priors[host], record.still.get(host))
                for host in record.unsettled
                if host in self.priors
            }
            self.former = self.not_undone()
        self.former += record.former
        self.standing = set(record.changed)
        for unit in record.units:
            if (done := self.done.pop(unit, None)) is not None:
                self.left += done.values
            if unit not in self.standing:
                self.bound.pop(unit[0], None)
        self.intended = set(record.changed)
        self.quarantined.clear()
        self.late.clear()
        self.turned = None


def _of(priors: dict[str, Any], resources: Collection[str] | None) -> dict[str, Any]:
    if resources is None:
        return priors
    return {name: prior for name, prior in priors.items() if name in resources}


def _stands(undo: UnitDone | None, left: bool) -> bool:
    """Whether a change is still there after this end of its undo."""
    if undo is None or undo.result.status == "Success":
        return undo is None
    return left or not undo.result.satisfied


def _must_be_looked_at_again(done: UnitDone) -> bool:
    return done.result.status == "Success" or done.result.satisfied
