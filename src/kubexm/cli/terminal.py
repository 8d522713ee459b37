"""A person at a terminal: signals, questions."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import termios
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from kubexm.app.execution import Front
from kubexm.cli.leaving import leave
from kubexm.errors import Refused
from kubexm.runtime.build import Confirm

STOPPING = "stopping: running steps get a moment; Ctrl-C again kills"
HANDLED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def is_interactive() -> bool:
    """Whether somebody can see and answer."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def can_be_drawn_on() -> bool:
    """Whether errors go to a terminal that can move its cursor."""
    return sys.stderr.isatty() and os.environ.get("TERM") not in ("dumb", "unknown")


@contextmanager
def signals(front: Front, stopping: Callable[[], None]) -> Iterator[None]:
    """Turn signals into a cancel, and tell who interrupts; a second interrupt kills at once."""
    loop = asyncio.get_running_loop()
    before = {number: signal.getsignal(number) for number in HANDLED}
    asked: list[int] = []

    def stop(number: int, frame: FrameType | None) -> None:
        if not front.begun:
            leave(number, frame)
        if number == signal.SIGINT and (asked or front.control.cancelled is not None):
            _show_cursor()
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGINT)
        asked.append(number)
        reason = f"stopped by {signal.Signals(number).name}"
        loop.call_soon_threadsafe(front.control.cancel, reason)
        if number == signal.SIGINT:
            stopping()

    for number in HANDLED:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            # There is a run by now: who can't wait for its summary loses nothing else.
            signal.signal(number, signal.SIG_DFL if handler is leave else handler)


def _show_cursor() -> None:
    """A view may have hidden it, and gets no chance to undo that."""
    if can_be_drawn_on():
        with suppress(OSError):
            os.write(2, b"\x1b[?25h\n")


def hint() -> None:
    """Say what an interrupt does."""
    with suppress(OSError):  # the terminal may be gone, the run's state is not
        os.write(2, f"{STOPPING}\n".encode())


def silent() -> None:
    """Leave that to a view which draws over whatever else is written."""


async def confirm(question: str) -> None:
    """Ask a person to go on; no is a refusal."""
    answer = await typed(f"{question} [y/N] ")
    if answer is None:
        raise Refused("nobody answers: the end of the input was reached")
    if answer.strip().lower() not in ("y", "yes"):
        raise Refused(f"answered no to: {question}")


def one_at_a_time(confirm: Confirm) -> Confirm:
    """Let a question wait until the one before is answered: several hosts may ask at once."""
    turn = asyncio.Lock()

    async def ask(question: str) -> None:
        async with turn:
            await confirm(question)

    return ask


async def typed(prompt: str) -> str | None:
    """A line of the input; None at its end."""
    sys.stderr.write(prompt)
    sys.stderr.flush()
    if not sys.stdin.isatty():
        return await asyncio.to_thread(sys.stdin.readline) or None
    # A thread can't be called off: it would hold the process until somebody types a line.
    await _readable(sys.stdin.fileno())
    return sys.stdin.readline() or None


async def _readable(descriptor: int) -> None:
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(descriptor, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(descriptor)


def secret(what: str) -> str:
    """What a person types that nobody shall see; empty if it was interrupted.

    It waits, and all else with it: it is asked for before a run begins.
    """
    caught: list[int] = []

    def interrupt(number: int, _frame: FrameType | None) -> None:
        caught.append(number)
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in HANDLED}
    try:
        with _without_echo(sys.stdin.fileno()):
            sys.stderr.write(f"{what}: ")
            sys.stderr.flush()
            return sys.stdin.readline().rstrip("\n")
    except KeyboardInterrupt:
        return ""
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for last in caught:  # who ends the process leaves a terminal behind that shows again
            os.kill(os.getpid(), last)


@contextmanager
def _without_echo(descriptor: int) -> Iterator[None]:
    before = termios.tcgetattr(descriptor)
    unseen = termios.tcgetattr(descriptor)
    unseen[3] &= ~termios.ECHO
    termios.tcsetattr(descriptor, termios.TCSAFLUSH, unseen)
    try:
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSAFLUSH, before)
        sys.stderr.write("\n")  # the one that was typed was not shown
        sys.stderr.flush()
