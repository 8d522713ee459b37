"""The life of one unit: precheck, run, verify; attempts, time-outs, lost connections.

An exception anywhere in a step is that unit's failure, never the engine's and never a success.
Whoever has to wait (for a retry, a poll, a pool, a value) gives its slots back first.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from kubexm.engine.failures import Failure, HeldBack, classify
from kubexm.engine.lanes import Lane
from kubexm.engine.options import Options
from kubexm.engine.ports import EngineRuntime
from kubexm.engine.topology import Unit
from kubexm.engine.values import Values, produced
from kubexm.engine.work import Work, fusible
from kubexm.errors import ConnectionLost, HostUnreachable, StepFailed, TimedOut
from kubexm.plan.events import ProducedValue
from kubexm.plan.fragment import ExecutionFragment
from kubexm.plan.result import Cause, Sign, Status
from kubexm.runtime.contexts import StepContext, UnitView
from kubexm.step.contract import NotYet, Outcome, Step, Verdict

T = TypeVar("T")
MAX_RECONNECTS = 10
DIAGNOSIS_SECONDS = 30.0


@dataclass(slots=True)
class Finished:
    """What the life of a unit came to."""

    status: Status
    message: str = ""
    stdout: str = ""
    stderr: str = ""
    skipped: bool = False
    changed: bool = False
    sign: Sign = ""
    diff: str = ""
    values: tuple[ProducedValue, ...] = ()
    fragment: ExecutionFragment | None = None
    failure: Failure | None = None
    cause: Cause | None = None


class Floor(Protocol):
    """What the life of a unit asks of the scheduler."""

    options: Options
    runtime: EngineRuntime
    values: Values

    @property
    def cancelled(self) -> str | None: ...

    def view(self, unit: Unit) -> UnitView: ...
    def context(self, unit: Unit) -> StepContext: ...
    def foresee(self, unit: Unit) -> Step | None: ...
    def announce(self, unit: Unit) -> None: ...
    def announce_retry(self, unit: Unit, message: str, delay: float) -> None: ...
    def give_back(self, unit: Unit) -> None: ...
    def finish(self, unit: Unit, finished: Finished) -> None: ...
    def wish(self, provider: Unit) -> None: ...
    async def take_again(self, unit: Unit) -> None: ...
    async def take_pools(self, unit: Unit) -> None: ...
    async def pause(self, unit: Unit, seconds: float) -> None: ...
    async def intend(self, unit: Unit) -> None: ...
    async def provide(self, unit: Unit, provider: Unit) -> None: ...


class Budget:
    """The time one attempt may take; waiting for slots does not count."""

    __slots__ = ("_limit", "left")

    def __init__(self, limit: float | None) -> None:
        self._limit = limit
        self.left = limit

    async def spend(self, work: Awaitable[T]) -> T:
        """Await, but not longer than what is left."""
        if self.left is None:
            return await work
        loop = asyncio.get_running_loop()
        start = loop.time()
        clock = asyncio.timeout(max(self.left, 0.0))
        try:
            async with clock:
                return await work
        except TimeoutError:
            if clock.expired():
                raise TimedOut(f"did not finish within {self._limit:g} s") from None
            raise
        finally:
            self.left -= loop.time() - start

    def pay(self, seconds: float, reason: str) -> None:
        """Count a pause; raise if the time is up before it ends."""
        if self.left is not None:
            if self.left < seconds:
                raise TimedOut(f"{reason}, still after {self._limit:g} s")
            self.left -= seconds


class Lifecycle:
    """Runs units on a floor."""

    def __init__(self, floor: Floor) -> None:
        self._floor = floor
        self._lanes: dict[str, Lane] = {}
        self._random = random.Random(0)

    def close(self) -> None:
        for lane in self._lanes.values():
            lane.close()

    def lane(self, host: str) -> Lane:
        if (lane := self._lanes.get(host)) is None:
            floor = self._floor
            lane = self._lanes[host] = Lane(
                floor.runtime.host(host), floor.foresee, floor.options.probe_ahead
            )
        return lane

    def foreseen(self, unit: Unit) -> Verdict | None:
        """The verdict that was made ahead for this unit, if it still counts."""
        lane = self._lanes.get(unit.host)
        return lane.foreseen(unit) if lane is not None else None

    async def live(self, unit: Unit, ahead: Verdict | None) -> None:
        """From start to end; whatever happens, the scheduler is told exactly once."""
        try:
            finished = await self._attempts(unit, ahead)
        except HeldBack as held:
            finished = Finished("Skipped", str(held.cause), cause=held.cause)
        except asyncio.CancelledError:
            finished = Finished("Cancelled", self._floor.cancelled or "cancelled")
        except GeneratorExit:
            raise
        except BaseException as error:
            finished = _failed(classify(error))
        self._floor.finish(unit, finished)

    async def _attempts(self, unit: Unit, ahead: Verdict | None) -> Finished:
        lost = 0
        while True:
            unit.attempt += 1
            self._floor.announce(unit)
            try:
                return await self._attempt(unit, ahead)
            except (HeldBack, GeneratorExit):
                raise
            except ConnectionLost as error:
                lost += 1
                failure = await self._reconnected(unit, error, lost)
            except BaseException as error:
                if isinstance(error, asyncio.CancelledError) and _was_cancelled():
                    raise
                failure = classify(error)
            ahead = None
            if failure is None:
                unit.attempt -= 1  # a lost connection is no attempt
            elif (finished := await self._last_word(unit, failure)) is not None:
                return finished

    async def _last_word(self, unit: Unit, failure: Failure) -> Finished | None:
        """What a failed attempt means for the unit; None if there is another attempt."""
        retry = unit.node.spec.retry
        if unit.doubt and self._floor.options.dry_run:
            return Finished("Success", failure.message, sign="?")
        if unit.attempt >= retry.attempts or failure.failure not in retry.retry_on:
            return await self._given_up(unit, failure)
        if self._floor.cancelled is not None:
            return Finished("Cancelled", failure.message)
        delay = retry.pause(unit.attempt, self._random.random())
        self._floor.announce_retry(unit, failure.message, delay)
        await self._floor.pause(unit, delay)
        return None

    async def _reconnected(self, unit: Unit, error: ConnectionLost, lost: int) -> Failure | None:
        """Open the host again within its time; None if that went well."""
        window = self._floor.options.reconnect_within
        if lost > MAX_RECONNECTS:
            return Failure("unreachable", f"the connection was lost {lost} times: {error}")
        self._floor.give_back(unit)
        try:
            async with asyncio.timeout(window):
                await self._floor.runtime.reconnect(unit.host)
        except TimeoutError:
            return Failure("unreachable", f"{error}; no connection again within {window:g} s")
        except (HostUnreachable, ConnectionLost) as unreachable:
            return classify(unreachable)
        await self._floor.take_again(unit)
        return None

    async def _given_up(self, unit: Unit, failure: Failure) -> Finished:
        """The last failure, with what the step has to say about it."""
        if unit.ran and failure.failure != "unreachable":
            note = await self._aftermath(unit)
            failure = Failure(
                failure.failure, failure.message + note, failure.stdout, failure.stderr
            )
        return _failed(failure)

    async def _aftermath(self, unit: Unit) -> str:
        try:
            step, ctx = self._bound(unit)
            async with asyncio.timeout(DIAGNOSIS_SECONDS):
                diagnosis = await step.diagnose(ctx)
            if step.undoes_itself:
                await step.rollback(ctx)
        except Exception as error:
            return f"\nafterwards: {classify(error).message}"
        return f"\n{diagnosis}" if diagnosis else ""

    async def _attempt(self, unit: Unit, ahead: Verdict | None) -> Finished:
        work: Work = unit.node.work
        budget = Budget(unit.node.spec.timeout)
        if work.needs:
            await self._refresh(unit, work)
        if work.conditional and not work.loaded.wanted(self._floor.view(unit)):
            return Finished("Skipped", "`when` does not hold", skipped=True, sign="=")
        step, ctx = self._bound(unit)
        if not work.always_runs:
            verdict = ahead
            if verdict is None:
                verdict = await budget.spend(self._verdict(unit, step, ctx))
            if verdict.satisfied:
                return found_satisfied(unit, verdict)
            if ctx.dry_run:
                self._wish(unit, work)
                return _foretold(verdict)
        return await self._run(unit, step, ctx, budget)

    def _bound(self, unit: Unit) -> tuple[Step, StepContext]:
        work: Work = unit.node.work
        step = work.step
        if step is None:
            step = work.loaded.bind(self._floor.view(unit))
        return step, self._floor.context(unit)

    async def _verdict(self, unit: Unit, step: Step, ctx: StepContext) -> Verdict:
        if fusible(step):
            return await self.lane(unit.host).verdict(unit, step)
        return await step.precheck(ctx)

    async def _refresh(self, unit: Unit, work: Work) -> None:
        """Values that only had to be read are there again if they had expired."""
        for key in work.needs:
            provider = self._floor.values.provider(key, unit.host)
            if provider is None or self._fresh(key, unit.host):
                continue
            if not provider.node.work.minted and provider.result is not None:
                await self._floor.provide(unit, provider)

    def _wish(self, unit: Unit, work: Work) -> None:
        """In a dry run: say which values this unit would have made."""
        for key in work.needs:
            provider = self._floor.values.provider(key, unit.host)
            if provider is not None and provider.node.work.minted:
                self._floor.wish(provider)

    def _fresh(self, key: str, host: str) -> bool:
        return self._floor.values.fresh(key, host, self._floor.runtime.now())

    async def _mint(self, unit: Unit, work: Work) -> None:
        """Have the values made that this unit turned out to need."""
        for key in work.needs:
            provider = self._floor.values.provider(key, unit.host)
            if provider is None or not provider.node.work.minted:
                continue
            if not self._fresh(key, unit.host):
                await self._floor.provide(unit, provider)

    async def _run(self, unit: Unit, step: Step, ctx: StepContext, budget: Budget) -> Finished:
        work: Work = unit.node.work
        if work.needs:
            await self._mint(unit, work)
            step, ctx = self._bound(unit)
        while True:
            outcome = await self._once(unit, step, ctx, budget)
            if not isinstance(outcome, NotYet):
                break
            budget.pay(outcome.delay, outcome.reason)
            await self._floor.pause(unit, outcome.delay)
            verdict = await budget.spend(self._verdict(unit, step, ctx))
            if verdict.satisfied:
                return Finished("Success", verdict.reason)
        if step.verifies and not ctx.dry_run:
            await self._verify(unit, step, ctx, budget)
        return self._done(unit, outcome or Outcome(), work)

    async def _once(
        self, unit: Unit, step: Step, ctx: StepContext, budget: Budget
    ) -> Outcome | NotYet | None:
        if unit.node.spec.limits.pools:
            await self._floor.take_pools(unit)
        if step.declares_intent:
            await self._floor.intend(unit)
        if unit.node.work.changes:
            self.lane(unit.host).changed()
        unit.ran = True
        unit.shielded = step.uninterruptible
        try:
            return await budget.spend(step.run(ctx))
        finally:
            unit.shielded = False

    async def _verify(self, unit: Unit, step: Step, ctx: StepContext, budget: Budget) -> None:
        verdict = await budget.spend(self._verdict(unit, step, ctx))
        if not verdict.satisfied:
            raise StepFailed(f"ran, but {verdict.reason}")

    def _done(self, unit: Unit, outcome: Outcome, work: Work) -> Finished:
        values: tuple[ProducedValue, ...] = ()
        if outcome.values or unit.node.spec.step.provides:
            now = self._floor.runtime.now()
            values = produced(unit.node.spec, unit.host, outcome.values, now)
        return Finished(
            "Success",
            outcome.message,
            outcome.stdout,
            outcome.stderr,
            changed=outcome.changed and work.changes,
            values=values,
            fragment=outcome.fragment if work.expands else None,
        )


def found_satisfied(unit: Unit, verdict: Verdict) -> Finished:
    """There is nothing to do; if this run set out to do it, then because it has been done."""
    if unit.ran or unit.intended:
        return Finished("Success", verdict.reason, changed=unit.node.work.changes)
    return Finished("Skipped", verdict.reason, skipped=True, sign="=")


def _failed(failure: Failure) -> Finished:
    return Finished("Failed", failure.message, failure.stdout, failure.stderr, failure=failure)


def _foretold(verdict: Verdict) -> Finished:
    return Finished("Success", verdict.reason, changed=True, sign=verdict.sign, diff=verdict.diff)


def _was_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
