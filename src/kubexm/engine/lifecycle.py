"""The life of one unit: precheck, run, verify; attempts, time-outs, lost connections.

An exception anywhere in a step is that unit's failure, never the engine's and never a success.
Whoever has to wait (for a retry, a poll, a pool, a value) gives its slots back first.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol, TypeVar

import msgspec

from kubexm.engine.answers import checked_outcome, checked_verdict
from kubexm.engine.budget import UNLIMITED, Budget
from kubexm.engine.failures import Ended, Failure, HeldBack, PassedOver, classify
from kubexm.engine.foresight import Foresight
from kubexm.engine.lanes import Lane
from kubexm.engine.options import Options
from kubexm.engine.ports import EngineRuntime
from kubexm.engine.topology import BY_GRACE, FREELY, NEVER, Unit
from kubexm.engine.values import Values, produced
from kubexm.engine.work import NOT_WANTED, LeftOut, Work, fusible
from kubexm.errors import ConnectionLost, StepFailed
from kubexm.plan.events import ProducedValue
from kubexm.plan.fragment import ExecutionFragment
from kubexm.plan.result import Cause, Sign, Status
from kubexm.runtime.contexts import StepContext, UnitView
from kubexm.step.contract import NotYet, Outcome, Step, Verdict

T = TypeVar("T")
MAX_RECONNECTS = 10
DIAGNOSIS_SECONDS = 30.0


class Finished(msgspec.Struct):
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
    foresight: Foresight
    may_go_back: bool

    def stopping(self, unit: Unit) -> Ended | None: ...
    def view(self, unit: Unit) -> UnitView: ...
    def context(self, unit: Unit) -> StepContext: ...
    def foresee(self, unit: Unit) -> Step | LeftOut | None: ...
    def announce(self, unit: Unit) -> None: ...
    def announce_retry(self, unit: Unit, message: str, delay: float) -> None: ...
    def give_back(self, unit: Unit) -> None: ...
    def give_back_pools(self, unit: Unit) -> None: ...
    def wish(self, provider: Unit) -> None: ...
    def was_intended(self, unit: Unit) -> bool: ...
    def was_changed(self, unit: Unit) -> bool: ...
    async def take_again(self, unit: Unit) -> None: ...
    async def take_pools(self, unit: Unit) -> None: ...
    async def pause(self, unit: Unit, seconds: float) -> None: ...
    async def intend(self, unit: Unit) -> None: ...
    async def provide(self, unit: Unit, providers: Sequence[Unit]) -> None: ...


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

    async def live(self, unit: Unit) -> Finished:
        """From start to end; whatever happens, it comes to something."""
        try:
            return await self._attempts(unit)
        except HeldBack as held:
            return Finished("Skipped", f"held back by {held.cause}", cause=held.cause)
        except PassedOver as passed:
            return Finished("Skipped", str(passed), skipped=True, sign="=")
        except Ended as ended:
            return self._cut_short(unit, ended)
        except GeneratorExit:
            raise
        except BaseException as error:
            if unit.ended:
                return self._cut_short(unit, self._floor.stopping(unit) or Ended("cancelled"))
            return self._failed(unit, _own(error))

    def _cut_short(self, unit: Unit, ended: Ended) -> Finished:
        """It was ended; amid a run, of this life or an earlier, it may have changed something."""
        amid = (ended.begun and unit.ends != FREELY) or self._floor.was_intended(unit)
        changed = amid and unit.node.work.changes
        return Finished("Cancelled", str(ended), changed=changed, cause=ended.cause)

    async def _attempts(self, unit: Unit) -> Finished:
        lost = 0
        while True:
            if (ended := self._floor.stopping(unit)) is not None:
                raise ended
            unit.attempt += 1
            unit.ends = FREELY
            self._floor.announce(unit)
            try:
                return await self._attempt(unit)
            except (HeldBack, Ended, GeneratorExit):
                raise
            except BaseException as error:
                if unit.ended:
                    raise
                failure: Failure | None = _own(error)
                if isinstance(error, ConnectionLost):
                    lost += 1
                    failure = await self._reconnected(unit, str(error), lost)
            if failure is None:
                unit.attempt -= 1  # a lost connection is no attempt
            elif (finished := await self._last_word(unit, failure)) is not None:
                return finished

    async def _last_word(self, unit: Unit, failure: Failure) -> Finished | None:
        """What a failed attempt means for the unit; None if there is another attempt."""
        retry = unit.node.spec.retry
        has_waited = failure.timed_out and unit.waited
        if self._floor.options.dry_run and unit.doubt and failure.failure != "unreachable":
            return Finished("Success", failure.message, sign="?")
        is_last = unit.attempt >= retry.attempts or failure.failure not in retry.retry_on
        if is_last or (has_waited and not retry.waits_again):
            return await self._given_up(unit, failure)
        if (ended := self._floor.stopping(unit)) is not None:
            raise Ended(f"{ended}; before that: {failure.message}", ended.cause)
        delay = retry.pause(unit.attempt, self._random.random())
        self._floor.announce_retry(unit, failure.message, delay)
        await self._floor.pause(unit, delay)
        return None

    async def _reconnected(self, unit: Unit, reason: str, lost: int) -> Failure | None:
        """Open the host again within its time; None if that went well."""
        if lost > MAX_RECONNECTS:
            return Failure("unreachable", f"the connection was lost {lost} times: {reason}")
        window = self._floor.options.reconnect_within
        self._floor.give_back(unit)
        self.lane(unit.host).changed()  # it may have rebooted
        try:
            async with asyncio.timeout(window):
                await self._floor.runtime.reconnect(unit.host)
        except TimeoutError:
            return Failure("unreachable", f"{reason}; no connection again within {window:g} s")
        except Exception as error:
            return Failure("unreachable", classify(error).message)
        await self._floor.take_again(unit)
        return None

    async def _given_up(self, unit: Unit, failure: Failure) -> Finished:
        """The last failure, with what the step has to say about it."""
        if (unit.ran or unit.waited) and failure.failure != "unreachable":
            note = await self._aftermath(unit)
            failure = Failure(
                failure.failure, failure.message + note, failure.stdout, failure.stderr
            )
        return self._failed(unit, failure)

    def _failed(self, unit: Unit, failure: Failure) -> Finished:
        """It failed; what it had changed before the run was opened again is still there."""
        changed = unit.node.work.changes and self._floor.was_changed(unit)
        return Finished(
            "Failed",
            failure.message,
            failure.stdout,
            failure.stderr,
            changed=changed,
            failure=failure,
        )

    async def _aftermath(self, unit: Unit) -> str:
        """Diagnostics first; then the step takes back its own half-done work if it says so."""
        try:
            step, ctx = self._bound(unit)
        except Exception as error:
            return f"\nafterwards: {classify(error).message}"
        took = max(0.0, self._floor.runtime.now() - unit.started)
        known = msgspec.structs.replace(ctx, took=took)
        note = await self._tried(unit, step.diagnose, known, DIAGNOSIS_SECONDS)
        if unit.ran and self._undoes_itself(step) and not ctx.dry_run:
            note += await self._tried(unit, step.rollback, ctx, unit.node.spec.timeout)
            self.lane(unit.host).changed()
        return note

    def _undoes_itself(self, step: Step) -> bool:
        if step.undoes_itself == "going back":
            return self._floor.may_go_back
        return step.undoes_itself

    async def _tried(
        self,
        unit: Unit,
        act: Callable[[StepContext], Awaitable[Any]],
        ctx: StepContext,
        seconds: float | None,
    ) -> str:
        try:
            async with asyncio.timeout(seconds):
                said = await act(ctx)
        except BaseException as error:
            if unit.ended or isinstance(error, GeneratorExit):
                raise
            return f"\nafterwards: {_own(error).message}"
        return f"\n{said}" if said else ""

    async def _attempt(self, unit: Unit) -> Finished:
        work: Work = unit.node.work
        timeout = unit.node.spec.timeout
        budget = Budget(timeout) if timeout is not None else UNLIMITED
        if work.demands:
            await self._refresh(unit, work)
        if work.decisive and (unmade := self._unmade(unit, work.decisive)):
            if self._floor.options.dry_run:
                self._wish(unit, work)
                return Finished("Success", "hangs on a value that would be made first", sign="?")
            await self._floor.provide(unit, unmade)
        if work.conditional and not work.loaded.wanted(self._floor.view(unit)):
            return Finished("Skipped", NOT_WANTED, skipped=True, sign="=")
        if work.needs:
            self._floor.values.require(work.needs, unit.host, minted=False)
        step, ctx = self._bound(unit)
        if not work.always_runs:
            verdict = await budget.spend(self._verdict(unit, step, ctx))
            if ctx.dry_run:
                return self._foretold(unit, step, verdict)
            if verdict.satisfied:
                return self._found_satisfied(unit, verdict)
        return await self._run(unit, step, ctx, budget)

    def _found_satisfied(self, unit: Unit, verdict: Verdict) -> Finished:
        """There is nothing to do; if this run set out to do it, then because it has been done."""
        if unit.ran:
            return Finished("Success", verdict.reason, changed=unit.node.work.changes)
        if self._floor.was_intended(unit):
            changed = unit.node.work.changes
            return Finished("Success", verdict.reason, changed=changed, sign="=")
        return Finished("Skipped", verdict.reason, skipped=True, sign="=")

    def _foretold(self, unit: Unit, step: Step, verdict: Verdict) -> Finished:
        """What a run would do here, as far as that can be known now."""
        stirred = self._floor.foresight.stirred(unit, step) if verdict.satisfied else None
        if verdict.satisfied and stirred is None:
            return Finished("Skipped", verdict.reason, skipped=True, sign="=")
        self._wish(unit, unit.node.work)
        self._floor.foresight.note(unit, step)
        reason, sign = verdict.reason, verdict.sign or "~"
        if stirred is not None:
            reason, sign = f"follows {stirred}, which would change", "~"
        changed = sign not in ("=", "?")
        return Finished("Success", reason, changed=changed, sign=sign, diff=verdict.diff)

    def _bound(self, unit: Unit) -> tuple[Step, StepContext]:
        work: Work = unit.node.work
        step = work.step
        if step is None:
            step = work.loaded.bind(self._floor.view(unit))
        return step, self._floor.context(unit)

    def _verdict(self, unit: Unit, step: Step, ctx: StepContext) -> Awaitable[Verdict]:
        if fusible(type(step)):
            return self.lane(unit.host).verdict(unit, step)
        return self._prechecked(step, ctx)

    @staticmethod
    async def _prechecked(step: Step, ctx: StepContext) -> Verdict:
        return checked_verdict(await step.precheck(ctx))

    async def _refresh(self, unit: Unit, work: Work) -> None:
        """Values that only had to be read are there again if they had expired."""
        stale = [
            provider
            for provider in self._stale(unit, work.demands)
            if not provider.node.work.minted
            and (result := provider.result) is not None
            and not result.satisfied
            and result.sign != "?"
        ]
        await self._floor.provide(unit, stale)

    def _wish(self, unit: Unit, work: Work) -> bool:
        """In a dry run: say which values this unit would have made, and whether there are any."""
        providers = [self._floor.values.provider(key, unit.host) for key in work.demands]
        wished = [unit for unit in providers if unit is not None and unit.node.work.minted]
        for provider in wished:
            self._floor.wish(provider)
        return bool(wished)

    async def _mint(self, unit: Unit, work: Work) -> None:
        """Have the values made that this unit turned out to need."""
        await self._floor.provide(unit, self._unmade(unit, work.demands))

    def _unmade(self, unit: Unit, names: Iterable[str]) -> list[Unit]:
        """The minters of those of these values that are not there, or not any more."""
        return [other for other in self._stale(unit, names) if other.node.work.minted]

    def _stale(self, unit: Unit, names: Iterable[str]) -> Iterator[Unit]:
        """The units whose values are not there, or not any more."""
        now = self._floor.runtime.now()
        for key in names:
            provider = self._floor.values.provider(key, unit.host)
            if provider is not None and not self._floor.values.fresh(key, unit.host, now):
                yield provider

    async def _run(self, unit: Unit, step: Step, ctx: StepContext, budget: Budget) -> Finished:
        work: Work = unit.node.work
        if work.demands:
            if ctx.dry_run and self._wish(unit, work):
                return Finished("Success", "needs a value that would be made first", sign="?")
            await self._mint(unit, work)
            await self._refresh(unit, work)  # that may have taken long
            self._floor.values.require(work.demands, unit.host, minted=True)
            step, ctx = self._bound(unit)
        while isinstance(outcome := await self._once(unit, step, ctx, budget), NotYet):
            delay = budget.at_most(outcome.delay)
            await self._floor.pause(unit, delay)
            budget.check(outcome.reason)
            ctx = msgspec.structs.replace(ctx, waited=ctx.waited + delay)
            if not work.always_runs:
                verdict = await budget.spend(self._verdict(unit, step, ctx))
                if verdict.satisfied:
                    return Finished("Success", verdict.reason, changed=unit.ran and work.changes)
        if step.verifies and not ctx.dry_run:
            self._floor.give_back_pools(unit)
            await self._verify(unit, step, ctx, budget)
        return self._done(unit, outcome, work)

    async def _once(
        self, unit: Unit, step: Step, ctx: StepContext, budget: Budget
    ) -> Outcome | NotYet:
        work, spec = unit.node.work, unit.node.spec
        if spec.limits.pools:
            await self._floor.take_pools(unit)
        if step.declares_intent or (work.changes and (spec.one_of or self._floor.may_go_back)):
            # Where a `one_of` unit ran must be known later: it may not go elsewhere any more.
            # And what a run that goes back was in the midst of must be known to be undone.
            await self._floor.intend(unit)
        if (ended := self._floor.stopping(unit)) is not None:
            raise ended
        lane = self.lane(unit.host) if work.changes else None
        if lane is not None:
            lane.changed()
        ran, unit.ran = unit.ran, True
        unit.ends = NEVER if step.uninterruptible else BY_GRACE
        try:
            outcome = checked_outcome(await budget.spend(step.run(ctx)))
            if isinstance(outcome, NotYet):
                unit.ran, unit.waited = ran, True  # it only found that it has to wait
            return outcome
        finally:
            if lane is not None:
                lane.changed()

    async def _verify(self, unit: Unit, step: Step, ctx: StepContext, budget: Budget) -> None:
        verdict = await budget.spend(self._verdict(unit, step, ctx))
        if not verdict.satisfied:
            raise StepFailed(f"ran, but {verdict.reason}")

    def _done(self, unit: Unit, outcome: Outcome, work: Work) -> Finished:
        values: tuple[ProducedValue, ...] = ()
        if outcome.values or unit.node.spec.step.provides:
            now = self._floor.runtime.now()
            values = produced(unit.node.spec, unit.host, outcome.values, now)
        if outcome.fragment is not None and not work.expands:
            raise StepFailed("its run returned a fragment, but it is no Expander")
        return Finished(
            "Success",
            outcome.message,
            outcome.stdout,
            outcome.stderr,
            changed=bool(outcome.changed) and work.changes,
            sign="=" if self._floor.options.dry_run else "",
            values=values,
            fragment=outcome.fragment,
        )


def _own(error: BaseException) -> Failure:
    """What a step raised by itself, with its task fit to go on."""
    task = asyncio.current_task()
    while isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
        task.uncancel()
    return classify(error)
