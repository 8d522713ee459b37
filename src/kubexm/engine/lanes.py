"""Fused probes: the prechecks of one host in one round trip, also ahead of their turn.

A verdict made ahead counts only if nothing ran on that host since it was asked for. Only units
whose unfinished dependencies all stand before them in the same batch are probed ahead, so that
"everything before it was satisfied" follows: what was not would have run on this host.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence

import msgspec

from kubexm.engine.answers import checked_verdict
from kubexm.engine.topology import PENDING, Unit
from kubexm.engine.work import LeftOut
from kubexm.errors import StepFailed
from kubexm.runner.host import Command, Completed, Host
from kubexm.step.contract import Step, Verdict

Answer = Verdict | BaseException
"""What came of a probe; an exception travels as a value until it is in its own unit."""
Foresee = Callable[[Unit], Step | LeftOut | None]
"""The step of a unit that may be probed ahead; None if it may not."""
NO_PRECHECK = Verdict.needed("has no precheck")


class Ask(msgspec.Struct, frozen=True):
    """A question to a host; nobody waits for one that is asked ahead."""

    unit: Unit
    step: Step
    answer: asyncio.Future[Answer] | None = None
    commands: Sequence[Command] | None = None


class Lane:
    """All probing of one host."""

    def __init__(self, host: Host, foresee: Foresee, ahead: int) -> None:
        self._host = host
        self._foresee = foresee
        self._ahead = ahead
        self._depth = min(4, ahead)
        self._generation = 0
        self._asks: list[Ask] = []
        self._known: dict[Unit, Verdict] = {}
        self._batches: set[asyncio.Task[None]] = set()

    def changed(self) -> None:
        """Something starts or ends to run on the host: what was foreseen is void."""
        self._generation += 1
        self._known.clear()
        self._depth = 0

    def foreseen(self, unit: Unit) -> Verdict | None:
        """The verdict made ahead, if it still counts."""
        return self._known.get(unit)

    async def verdict(self, unit: Unit, step: Step) -> Verdict:
        """What the step's probe says, asked together with others of this moment."""
        verdict = self._known.pop(unit, None)
        if verdict is None:
            commands = step.probe(self._host)
            if commands is not None and not commands:
                return checked_verdict(step.judge(()))  # the host has nothing to say about it
            verdict = await self._asked(unit, step, commands)
        if verdict.satisfied:
            self._depth = min(max(1, 2 * self._depth), self._ahead)
        return verdict

    async def _asked(self, unit: Unit, step: Step, commands: Sequence[Command] | None) -> Verdict:
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        if not self._asks:
            self._begin()
        self._asks.append(Ask(unit, step, future, commands))
        answer = await future
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def _begin(self) -> None:
        """Have all asked together that will be by the end of this turn of the loop."""
        batch = asyncio.get_running_loop().create_task(self._batch())
        self._batches.add(batch)
        batch.add_done_callback(self._batches.discard)

    def _further(self, units: list[Unit]) -> Iterator[Ask]:
        """Units behind these that wait for nothing else, as far as the present depth."""
        met: dict[Unit, int] = {}
        line = list(units)
        for unit in line:
            for follower in _followers(unit):
                met[follower] = met.get(follower, 0) + 1
                if met[follower] < follower.waiting or follower in self._known:
                    continue
                if len(line) - len(units) >= self._depth:
                    return
                step = self._foresee(follower)
                if step is not None:
                    line.append(follower)
                if isinstance(step, Step):
                    yield Ask(follower, step)

    async def _batch(self) -> None:
        asks, self._asks, generation = self._asks, [], self._generation
        asks.extend(self._further([ask.unit for ask in asks]))
        probes = [(ask, self._commands(ask)) for ask in asks]
        commands = [command for _, some in probes for command in some or ()]
        try:
            answers = await self._host.batch(commands) if commands else []
        except Exception:
            await self._singly(probes)
            return
        except asyncio.CancelledError:
            # Whoever ended this, nobody may be left waiting for it.
            for ask in asks:
                self._tell(ask, StepFailed("its probe was ended"), generation)
            raise
        start = 0
        for ask, some in probes:
            if some is not None:
                end = start + len(some)
                self._tell(ask, judged(ask.step, answers[start:end]), generation)
                start = end

    def _commands(self, ask: Ask) -> Sequence[Command] | None:
        """What to ask the host; None if there is nothing to ask, and then that is told."""
        try:
            commands = ask.commands or ask.step.probe(self._host)
            if commands is not None:
                return tuple(commands)
        except BaseException as error:
            self._tell(ask, error, self._generation)
        else:
            self._tell(ask, NO_PRECHECK, self._generation)
        return None

    async def _singly(self, probes: Sequence[tuple[Ask, Sequence[Command] | None]]) -> None:
        """A batch failed, and nobody knows whose fault it was: each for itself, none ahead."""
        await asyncio.gather(
            *(self._single(ask, some) for ask, some in probes if ask.answer and some is not None)
        )

    async def _single(self, ask: Ask, commands: Sequence[Command]) -> None:
        try:
            answers = await self._host.batch(commands)
        except Exception as error:
            self._tell(ask, error, self._generation)
        else:
            self._tell(ask, judged(ask.step, answers), self._generation)

    def _tell(self, ask: Ask, answer: Answer, generation: int) -> None:
        if ask.answer is not None:
            if not ask.answer.done():
                ask.answer.set_result(answer)
        elif isinstance(answer, Verdict) and generation == self._generation:
            # Made ahead, it may be right to fail now; then it is asked again in its turn.
            self._known[ask.unit] = answer

    def close(self) -> None:
        """End probes nobody waits for any more."""
        for batch in self._batches:
            batch.cancel()


def judged(step: Step, answers: Sequence[Completed]) -> Answer:
    """What the answers mean; whatever goes wrong is an answer too."""
    try:
        return checked_verdict(step.judge(answers))
    except BaseException as error:
        return error


def _followers(unit: Unit) -> Iterator[Unit]:
    for state in unit.node.same_host:
        follower = state.units.get(unit.host)
        if follower is not None and follower.state == PENDING:
            yield follower
    for follower in unit.also or ():
        if follower.state == PENDING:
            yield follower
