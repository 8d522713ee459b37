"""What the views know of a run: counts per module, what runs, what failed, how long still.

It is fed with events and costs the same however many hosts there are.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from kubexm.cli.estimate import Estimate
from kubexm.engine.undo import is_undo
from kubexm.plan import events
from kubexm.plan.events import AnyEvent
from kubexm.plan.graph import ExecutionGraph
from kubexm.plan.node import ExecutionNode
from kubexm.plan.result import Cause, HostResult

KEPT_FAILURES = 1000
UNDOING = "undo"
"""The section of all that a rollback does."""


class Section(msgspec.Struct):
    """A module, or whatever stands right below the pipeline."""

    name: str
    units: int = 0
    changed: int = 0
    satisfied: int = 0
    failed: int = 0
    held_back: int = 0
    other: int = 0

    @property
    def done(self) -> int:
        return self.changed + self.satisfied + self.failed + self.held_back + self.other

    def count(self, result: HostResult) -> None:
        if result.status == "Failed":
            self.failed += 1
        elif result.satisfied or result.done_before:
            self.satisfied += 1
        elif result.status == "Skipped":
            self.held_back += 1
        elif result.changed:
            self.changed += 1
        else:
            self.other += 1


class Running(msgspec.Struct):
    """A unit that runs now."""

    node: str
    host: str
    since: float
    note: str = ""


class Tally(msgspec.Struct):
    """A run at a glance."""

    name: str
    sections: dict[str, Section] = msgspec.field(default_factory=dict)
    running: dict[tuple[str, str], Running] = msgspec.field(default_factory=dict)
    failures: list[Cause] = msgspec.field(default_factory=list)
    quarantined: dict[str, Cause] = msgspec.field(default_factory=dict)
    estimate: Estimate = msgspec.field(default_factory=Estimate)
    started: float = 0.0
    turned: str = ""
    stopping: bool = False

    @classmethod
    def of(cls, graph: ExecutionGraph) -> Tally:
        tally = cls(graph.name)
        tally._grow(graph)
        return tally

    def section(self, node: str) -> Section:
        parts = node.split("/", 2)
        name = UNDOING if is_undo(node) else parts[1] if len(parts) > 2 else parts[0]
        if name not in self.sections:
            self.sections[name] = Section(name)
        return self.sections[name]

    @property
    def units(self) -> int:
        return sum(section.units for section in self.sections.values())

    @property
    def done(self) -> int:
        return sum(section.done for section in self.sections.values())

    def remaining(self, now: float) -> float | None:
        """Seconds that are left, as far as that can be said."""
        if not self.started:
            return None
        running = [(unit.node, now - unit.since) for unit in self.running.values()]
        return self.estimate.left(now - self.started, running)

    def take(self, event: AnyEvent) -> None:
        """Count one more event."""
        match event:
            case events.Expected():
                self.estimate.learn(event.seconds)
            case events.RunStarted():
                self.started = event.at
            case events.UnitStarted():
                self.running[event.node, event.host] = Running(event.node, event.host, event.at)
            case events.UnitRetried():
                self._note(event.node, event.host, f"again in {event.delay:.0f} s")
            case events.Progress():
                self._note(event.node, event.host, _share(event))
            case events.UnitFinished():
                self._finish(event)
            case events.HostQuarantined():
                self.quarantined[event.host] = event.cause
            case events.Expanded():
                self._grow(event.fragment.nodes)
            case events.TurnedBack():
                self._turn(event)
            case _:
                pass

    def _note(self, node: str, host: str, note: str) -> None:
        if (unit := self.running.get((node, host))) is not None:
            unit.note = note

    def _finish(self, event: events.UnitFinished) -> None:
        self.running.pop((event.node, event.host), None)
        result = event.result
        self.estimate.end(event.node, replayed=event.replayed)
        self.section(event.node).count(result)
        if result.status == "Failed" and not event.replayed and len(self.failures) < KEPT_FAILURES:
            failure = result.failure or "failed"
            self.failures.append(Cause(event.node, event.host, result.message, failure))

    def _grow(self, nodes: Iterable[ExecutionNode]) -> None:
        for node in nodes:
            self.section(node.id).units += _units(node)
            self.estimate.add(node.id, _units(node))

    def _turn(self, event: events.TurnedBack) -> None:
        self.turned = str(event.cause)
        section = self.sections[UNDOING] = Section(UNDOING)
        for id, units in event.undo.items():
            section.units += units
            self.estimate.add(id, units)


def _units(node: ExecutionNode) -> int:
    return 1 if node.one_of else len(node.hosts)


def _share(event: events.Progress) -> str:
    percent = f"{100 * event.done / event.total:.0f} %" if event.total else ""
    return f"{event.text} {percent}".strip()
