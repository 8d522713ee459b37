"""The debugger at a terminal: lines and questions in the order of what happened."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from contextlib import suppress

from kubexm.cli import terminal
from kubexm.cli.lines import line_of
from kubexm.engine.bus import Subscription
from kubexm.engine.debug import Choice, Situation
from kubexm.plan import events
from kubexm.plan.events import AnyEvent
from kubexm.plan.graph import ExecutionGraph

PATIENCE = 1.0
"""Seconds that a question waits at most for the end of the unit before."""
BEFORE: Mapping[str, Choice] = {"r": "run", "s": "skip", "c": "continue", "a": "abort"}
AFTER: Mapping[str, Choice] = {"t": "retry", "s": "skip", "f": "fail", "a": "abort"}
_SPELLED = {"retry": "re[t]ry"}


class Console:
    """One terminal for both, so that no line lands inside a question."""

    def __init__(self) -> None:
        self._question = ""
        self._under_way: set[tuple[str, str]] = set()
        self._shown = asyncio.Event()

    async def show(self, subscription: Subscription, _graph: ExecutionGraph) -> None:
        """Print the plain lines; one that comes amid a question has it asked again."""
        async for event in subscription:
            if (line := line_of(event)) is not None:
                _say(f"\n{line}\n{self._question}" if self._question else f"{line}\n")
            self._follow(event)

    def _follow(self, event: AnyEvent) -> None:
        match event:
            case events.UnitStarted():
                self._under_way.add((event.node, event.host))
            case events.UnitFinished() | events.UnitRetried():
                self._under_way.discard((event.node, event.host))
        self._shown.set()

    async def _seen_before(self, unit: tuple[str, str]) -> None:
        """What came of the units before this one is told first: that decides the answer.

        The end of a unit is told when it is durable, a moment after the next one may start.
        A unit that waits for another, as for the value that this one makes, has no end yet.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE):
                while self._under_way - {unit}:
                    self._shown.clear()
                    await self._shown.wait()

    async def ask(self, situation: Situation) -> Choice:
        """What to do with a unit, before it or after it failed."""
        await asyncio.sleep(0)  # the view has its turn first: something may have begun or ended
        await self._seen_before((situation.node, situation.host))
        failed = f"  failed: {situation.error}\n" if situation.error else ""
        _say(f"\n{situation.node} on {situation.host}\n  {situation.summary}\n{failed}")
        choices = AFTER if situation.error else BEFORE
        while True:
            answer = await self._answer(choices)
            if answer is None:
                _say("\nthe input has ended: aborting\n")
                return "abort"
            word = answer.strip() or next(iter(choices))
            if word in ("p", "print"):
                looks = situation.commands or ("it runs without looking first",)
                _say("".join(f"  {line}\n" for line in looks))
            elif (choice := _choices(choices).get(word)) is not None:
                return choice
            else:
                _say(f"  `{word}` is no answer here, want one of {_letters(choices)}\n")

    async def _answer(self, choices: Mapping[str, Choice]) -> str | None:
        """The line that was typed; None at the end of the input."""
        words = [_SPELLED.get(word, f"[{key}]{word[1:]}") for key, word in choices.items()]
        self._question = f"{' '.join(words)} [p]rint commands > "
        try:
            answer = await terminal.typed(self._question)
        finally:
            self._question = ""
        if answer is not None and not sys.stdin.isatty():
            _say(f"{answer.rstrip()}\n")  # as a terminal would have shown it
        return answer


def _choices(choices: Mapping[str, Choice]) -> Mapping[str, Choice]:
    """By letter, and by the whole word."""
    return {**choices, **{choice: choice for choice in choices.values()}}


def _letters(choices: Mapping[str, Choice]) -> str:
    return ", ".join((*choices, "p"))


def _say(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()
