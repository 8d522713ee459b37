"""Fused probes: the prechecks of one host in one round trip, also ahead of their turn.

A verdict made ahead counts only if nothing ran on that host since it was asked for. Only units
whose unfinished dependencies all stand before them in the same batch are probed ahead, so that
"everything before it was satisfied" follows: what was not would have run on this host.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence

from kubexm.engine.topology import PENDING, Unit
from kubexm.runner.host import Command, Completed, Host
from kubexm.step.contract import Step, Verdict

Ask = tuple[Unit, Step, "asyncio.Future[Verdict] | None"]
Foresee = Callable[[Unit], Step | None]
"""The step of a unit that may be probed ahead, else None."""


class Lane:
    """All probing of one host."""

    def __init__(self, host: Host, foresee: Foresee, ahead: int) -> None:
        self._host = host
        self._foresee = foresee
        self._ahead = ahead
        self._depth = min(4, ahead)
        self._generation = 0
        self._asks: list[Ask] = []
        self._known: dict[Unit, tuple[int, Verdict]] = {}
        self._batches: set[asyncio.Task[None]] = set()

    def changed(self) -> None:
        """Something is about to run on the host: what was foreseen is void."""
        self._generation += 1
        self._known.clear()
        self._depth = 0

    def foreseen(self, unit: Unit) -> Verdict | None:
        """The verdict made ahead, if it still counts; it is used up."""
        generation, verdict = self._known.pop(unit, (-1, None))
        return verdict if generation == self._generation else None

    async def verdict(self, unit: Unit, step: Step) -> Verdict:
        """What the step's probe says, asked together with others of this moment."""
        if not self._commands(step):
            return step.judge(())  # a host has nothing to say about it
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Verdict] = loop.create_future()
        if not self._asks:
            loop.call_soon(self._flush)
        self._asks.append((unit, step, answer))
        verdict = await answer
        if verdict.satisfied:
            self._depth = min(max(1, 2 * self._depth), self._ahead)
        return verdict

    def _flush(self) -> None:
        asks, self._asks = self._asks, []
        asks.extend(self._further([unit for unit, _, _ in asks]))
        batch = asyncio.get_running_loop().create_task(self._batch(asks, self._generation))
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
                    yield follower, step, None

    async def _batch(self, asks: Sequence[Ask], generation: int) -> None:
        try:
            probes = [(ask, self._commands(ask[1])) for ask in asks]
            answers = await self._host.batch([cmd for _, commands in probes for cmd in commands])
        except Exception:
            await self._singly(asks)
            return
        start = 0
        for (unit, step, future), commands in probes:
            end = start + len(commands)
            self._judge(unit, step, future, answers[start:end], generation)
            start = end

    def _commands(self, step: Step) -> Sequence[Command]:
        return step.probe(self._host) or ()

    def _judge(
        self,
        unit: Unit,
        step: Step,
        future: asyncio.Future[Verdict] | None,
        answers: Sequence[Completed],
        generation: int,
    ) -> None:
        try:
            verdict = step.judge(answers)
        except Exception as error:
            # Made ahead, it may be right to fail now; it is asked again when its turn comes.
            if future is not None and not future.done():
                future.set_exception(error)
            return
        if future is None:
            self._known[unit] = generation, verdict
        elif not future.done():
            future.set_result(verdict)

    async def _singly(self, asks: Sequence[Ask]) -> None:
        """A batch failed, and nobody knows whose fault it was: each for itself, none ahead."""
        await asyncio.gather(
            *(self._single(step, future) for _, step, future in asks if future is not None)
        )

    async def _single(self, step: Step, future: asyncio.Future[Verdict]) -> None:
        try:
            verdict = step.judge(await self._host.batch(self._commands(step)))
        except Exception as error:
            if not future.done():
                future.set_exception(error)
        else:
            if not future.done():
                future.set_result(verdict)

    def close(self) -> None:
        """End probes nobody waits for any more."""
        for batch in self._batches:
            batch.cancel()


def _followers(unit: Unit) -> Iterator[Unit]:
    for state in unit.node.same_host:
        follower = state.units.get(unit.host)
        if follower is not None and follower.state == PENDING:
            yield follower
    for follower in unit.also or ():
        if follower.state == PENDING:
            yield follower
