"""The events of a run as log lines, for whoever collects them."""

from __future__ import annotations

from kubexm import logger
from kubexm.engine.bus import Subscription
from kubexm.plan import events
from kubexm.plan.events import AnyEvent
from kubexm.plan.graph import ExecutionGraph


async def show_as_log(subscription: Subscription, _graph: ExecutionGraph) -> None:
    """Write a log line for each event that somebody may look for later."""
    async for event in subscription:
        _write(event)


def _write(event: AnyEvent) -> None:
    match event:
        case events.RunStarted():
            logger.get().info("run started", graph=event.graph, units=event.units)
        case events.RunFinished():
            logger.get().info("run finished", status=event.result.status)
        case events.UnitStarted():
            _unit(event.node, event.host).debug("unit started", attempt=event.attempt)
        case events.UnitRetried():
            _unit(event.node, event.host).warning(
                "attempt failed", attempt=event.attempt, reason=event.message, delay=event.delay
            )
        case events.UnitFinished(replayed=False):
            _finished(event)
        case events.HostQuarantined():
            word = "lost" if event.cause.failure == "unreachable" else "quarantined"
            logger.get(hostname=event.host).warning(f"host {word}", cause=str(event.cause))
        case events.TurnedBack():
            logger.get().warning("run turned back", cause=str(event.cause))
        case events.LogLine():
            _unit(event.node, event.host).debug(event.text, stream=event.stream)
        case _:
            pass


def _finished(event: events.UnitFinished) -> None:
    log = _unit(event.node, event.host)
    result = event.result
    if result.status == "Failed":
        log.error("unit failed", reason=result.message, failure=result.failure)
    elif result.done_before:
        log.debug("unit was done before")
    elif result.changed:
        log.info("unit changed")
    else:
        log.debug("unit finished", status=result.status, reason=result.message)


def _unit(node: str, host: str) -> logger.Log:
    return logger.get(step_name=node, hostname=host)
