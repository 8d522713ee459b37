"""A person at a terminal: signals, questions, the debugger's prompt."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from kubexm.engine.debug import Choice, Situation
from kubexm.engine.options import Control
from kubexm.errors import Refused

CHOICES: dict[str, Choice] = {
    "r": "run",
    "s": "skip",
    "a": "abort",
    "c": "continue",
    "t": "retry",
}


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
    answer = await asyncio.to_thread(_input, f"{question} [y/N] ")
    if answer.strip().lower() not in ("y", "yes"):
        raise Refused(f"answered no to: {question}")


async def ask(situation: Situation) -> Choice:
    """The debugger's question before a unit, or after it failed."""
    sys.stderr.write(f"\n{situation.node} on {situation.host}\n  {situation.summary}\n")
    if situation.error:
        sys.stderr.write(f"  failed: {situation.error}\n")
    prompt = "re[t]ry [s]kip [a]bort" if situation.error else "[r]un [s]kip [c]ontinue [a]bort"
    while True:
        answer = await asyncio.to_thread(_input, f"{prompt} [p]rint commands > ")
        if answer.strip()[:1] == "p":
            looks = situation.commands or ("it runs without looking first",)
            sys.stderr.write("".join(f"  {line}\n" for line in looks))
        elif (choice := CHOICES.get(answer.strip()[:1] or "r")) is not None:
            return "retry" if situation.error and choice == "run" else choice


def _input(prompt: str) -> str:
    sys.stderr.write(prompt)
    sys.stderr.flush()
    line = sys.stdin.readline()
    if not line:
        raise Refused("nobody answers: the end of the input was reached")
    return line
