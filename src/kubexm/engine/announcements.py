"""What a walk tells its listeners, if there are any: no event is made that nobody hears."""

from __future__ import annotations

from kubexm.engine.bus import Bus
from kubexm.engine.ports import EngineRuntime
from kubexm.engine.topology import NodeState, Unit
from kubexm.plan import events
from kubexm.plan.fragment import ExecutionFragment
from kubexm.plan.result import Cause, node_status


class Announcements:
    """The events of nodes, units and hosts, without secrets."""

    def __init__(self, bus: Bus, runtime: EngineRuntime) -> None:
        self._bus = bus
        self._now = runtime.now
        self._redact = runtime.redact

    def node_started(self, node: NodeState) -> None:
        if self._bus.heard:
            self._bus.publish(events.NodeStarted(at=self._now(), node=node.id))

    def node_finished(self, node: NodeState) -> None:
        if self._bus.heard:
            results = [unit.result for unit in node.units.values() if unit.result is not None]
            status = node_status(results, node.tolerated)
            self._bus.publish(events.NodeFinished(at=self._now(), node=node.id, status=status))

    def unit_started(self, unit: Unit) -> None:
        if self._bus.heard:
            now, node = self._now(), unit.node.id
            self._bus.publish(
                events.UnitStarted(at=now, node=node, host=unit.host, attempt=unit.attempt)
            )

    def unit_retried(self, unit: Unit, message: str, delay: float) -> None:
        if self._bus.heard:
            self._bus.publish(
                events.UnitRetried(
                    at=self._now(),
                    node=unit.node.id,
                    host=unit.host,
                    attempt=unit.attempt,
                    message=self._redact(message),
                    delay=delay,
                )
            )

    def unit_finished(self, unit: Unit, *, replayed: bool) -> None:
        if self._bus.heard:
            assert unit.result is not None
            now, node = self._now(), unit.node.id
            self._bus.publish(
                events.UnitFinished(
                    at=now, node=node, host=unit.host, result=unit.result, replayed=replayed
                )
            )

    def expanded(self, unit: Unit, fragment: ExecutionFragment) -> None:
        if self._bus.heard:
            now, node = self._now(), unit.node.id
            self._bus.publish(events.Expanded(at=now, node=node, host=unit.host, fragment=fragment))

    def quarantined(self, host: str, cause: Cause) -> None:
        if self._bus.heard:
            self._bus.publish(events.HostQuarantined(at=self._now(), host=host, cause=cause))

    def said(self, unit: Unit, stream: str, text: str) -> events.LogLine:
        """Tell a line, which the journal keeps too."""
        line = events.LogLine(
            at=self._now(),
            node=unit.node.id,
            host=unit.host,
            stream=stream,
            text=self._redact(text),
        )
        if self._bus.heard:
            self._bus.publish(line)
        return line

    def progressed(self, unit: Unit, done: float, total: float, text: str) -> None:
        if self._bus.heard:
            self._bus.publish(
                events.Progress(
                    at=self._now(),
                    node=unit.node.id,
                    host=unit.host,
                    done=done,
                    total=total,
                    text=self._redact(text),
                )
            )
