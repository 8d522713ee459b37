"""The one stream that everything listens to: what happened in a run, as frozen values."""

from __future__ import annotations

from typing import Any

import msgspec

from kubexm.plan.fragment import ExecutionFragment
from kubexm.plan.result import Cause, GraphExecutionResult, HostResult, Status


class Event(msgspec.Struct, frozen=True, tag=True, rename="camel", omit_defaults=True):
    """Something that happened; `at` is seconds since the epoch."""

    at: float


class Expected(Event, frozen=True):
    """How long nodes took in earlier runs, told before this one starts."""

    seconds: dict[str, float]


class RunStarted(Event, frozen=True):
    graph: str
    units: int
    dry_run: bool = False
    resumed: bool = False


class RunFinished(Event, frozen=True):
    result: GraphExecutionResult


class NodeStarted(Event, frozen=True):
    node: str


class NodeFinished(Event, frozen=True):
    node: str
    status: Status


class UnitStarted(Event, frozen=True):
    node: str
    host: str
    attempt: int


class UnitRetried(Event, frozen=True):
    """An attempt failed and there will be another."""

    node: str
    host: str
    attempt: int
    message: str
    delay: float


class UnitFinished(Event, frozen=True):
    """A unit is final; `replayed` if it was already, in an earlier life of the run."""

    node: str
    host: str
    result: HostResult
    replayed: bool = False


class HostQuarantined(Event, frozen=True):
    host: str
    cause: Cause


class Expanded(Event, frozen=True):
    """An expander added nodes to the running graph."""

    node: str
    host: str
    fragment: ExecutionFragment


class TurnedBack(Event, frozen=True):
    """The run undoes what it changed; `undo` has the units of each node of the undo graph."""

    cause: Cause
    undo: dict[str, int] = {}


class LogLine(Event, frozen=True):
    node: str
    host: str
    stream: str
    text: str


class Progress(Event, frozen=True):
    node: str
    host: str
    done: float
    total: float
    text: str = ""


class ListenerLagged(Event, frozen=True):
    """A listener was too slow; this many events were left out for it."""

    dropped: int


AnyEvent = (
    Expected
    | RunStarted
    | RunFinished
    | NodeStarted
    | NodeFinished
    | UnitStarted
    | UnitRetried
    | UnitFinished
    | HostQuarantined
    | Expanded
    | TurnedBack
    | LogLine
    | Progress
    | ListenerLagged
)


class ProducedValue(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A value a unit left; `host` is empty for a value of the whole run."""

    key: str
    host: str
    value: Any
    secret: bool = False
    expires: float | None = None
