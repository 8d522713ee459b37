"""A person at a terminal: signals, questions."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from kubexm.engine.options import Control
from kubexm.errors import Refused


def is_interactive() -> bool:
    """Whether somebody can see and answer."""
    return sys.stdin.isatty() and sys.stderr.isatty()


@contextmanager
def signals(control: Control) -> Iterator[None]:
    """Turn signals into a cancel; a second interrupt ends the process at once."""
    loop = asyncio.get_running_loop()
    handled = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def stop(number: signal.Signals) -> None:
        if control.cancelled is not None and number == signal.SIGINT:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGINT)
        control.cancel(f"stopped by {number.name}")
        _hint(number)

    for number in handled:
        loop.add_signal_handler(number, stop, number)
    try:
        yield
    finally:
        for number in handled:
            loop.remove_signal_handler(number)


def _hint(number: signal.Signals) -> None:
    if number == signal.SIGINT:
        with suppress(OSError):  # the terminal may be gone, the run's state is not
            sys.stderr.write("stopping: running steps get a moment; Ctrl-C again kills\n")


async def confirm(question: str) -> None:
    """Ask a person to go on; no is a refusal."""
    answer = await asyncio.to_thread(typed, f"{question} [y/N] ")
    if answer is None:
        raise Refused("nobody answers: the end of the input was reached")
    if answer.strip().lower() not in ("y", "yes"):
        raise Refused(f"answered no to: {question}")


def typed(prompt: str) -> str | None:
    """A line of the input; None at its end."""
    sys.stderr.write(prompt)
    sys.stderr.flush()
    return sys.stdin.readline() or None
