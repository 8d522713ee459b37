"""Questions to a person, for what the command line does not say."""

from __future__ import annotations

import sys

from kubexm.cli import terminal
from kubexm.errors import InvalidInput


def answer(question: str, option: str) -> str:
    """One answer, which is not empty; without a person the option has to be given."""
    while True:
        if given := _asked(f"{question} ", option):
            return given


def answers(wanted: str, option: str) -> tuple[str, ...]:
    """One answer after the other, until an empty one."""
    given = [answer(f"{wanted}:", option)]
    while more := _asked("another one, or nothing to go on: ", option):
        given.append(more)
    return tuple(given)


def _asked(question: str, option: str) -> str:
    if not terminal.is_interactive():
        raise InvalidInput(f"{option} is missing", hint=f"add {option}, or run it on a terminal")
    sys.stderr.write(question)
    sys.stderr.flush()
    line = sys.stdin.readline()
    if not line:
        raise InvalidInput("the answers have ended", hint=f"add {option}")
    return line.strip()
