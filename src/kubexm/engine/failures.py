"""What an exception in a step means: a class of failure, a message, the output to keep."""

from __future__ import annotations

import asyncio

import msgspec

from kubexm.errors import (
    CommandFailed,
    ConnectionLost,
    HostUnreachable,
    KubexmError,
    Refused,
    TimedOut,
)
from kubexm.plan.policy import FailureClass
from kubexm.plan.result import Cause


class Failure(msgspec.Struct, frozen=True):
    """Why a unit failed."""

    failure: FailureClass
    message: str
    stdout: str = ""
    stderr: str = ""
    timed_out: bool = False


class HeldBack(Exception):
    """A unit can't go on because another failed: its own result is a skip, not a failure."""

    def __init__(self, cause: Cause) -> None:
        super().__init__(str(cause))
        self.cause = cause


class Ended(Exception):
    """The run stops, and the unit with it before it was done, or before it has `begun`."""

    def __init__(self, reason: str, cause: Cause | None = None, *, begun: bool = True) -> None:
        super().__init__(reason)
        self.cause = cause
        self.begun = begun


class PassedOver(Ended):
    """A person said that the run goes on without this unit, as if there were nothing to do."""


def classify(error: BaseException) -> Failure:
    """The failure that an exception stands for; any exception is one, never a success."""
    if isinstance(error, CommandFailed):
        return Failure("failed", _text(error), error.stdout, error.stderr)
    if isinstance(error, (HostUnreachable, ConnectionLost)):
        return Failure("unreachable", _text(error))
    if isinstance(error, Refused):
        return Failure("refused", _text(error))
    if isinstance(error, KubexmError):
        return Failure("failed", _text(error), timed_out=isinstance(error, TimedOut))
    if isinstance(error, asyncio.CancelledError):
        return Failure("failed", "the step cancelled itself")
    name = type(error).__name__
    return Failure("failed", f"{name}: {error}" if str(error) else name)


def _text(error: KubexmError) -> str:
    return f"{error} (hint: {error.hint})" if error.hint else str(error)


def clipped(text: str, limit: int) -> str:
    """The head and the tail of a long text, with what was left out counted."""
    if len(text) <= limit:
        return text
    half = limit // 2
    left_out = len(text) - 2 * half
    return f"{text[:half]}\n… {left_out} characters left out …\n{text[-half:]}"
