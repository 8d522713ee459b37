"""The interactive executor: the same engine, one unit at a time, asking before each.

It wraps the loader, so the scheduler neither knows nor cares.
"""

from __future__ import annotations

import shlex
from collections.abc import Awaitable, Callable, Sequence
from typing import Literal

import msgspec

from kubexm.engine.failures import Ended, PassedOver
from kubexm.engine.options import Control
from kubexm.engine.ports import Load, Loaded
from kubexm.plan.node import StepSpec
from kubexm.plan.validation import inside
from kubexm.runtime.contexts import StepContext, UnitView
from kubexm.step.contract import Expander, Minter, NotYet, Outcome, Reader, Step, Verdict

Choice = Literal["run", "skip", "retry", "fail", "abort", "continue"]
ABORTED = "aborted in the debugger"


class Situation(msgspec.Struct, frozen=True):
    """Where the debugger stands: before a unit, or after it failed."""

    node: str
    host: str
    summary: str
    commands: tuple[str, ...]
    error: str = ""


Ask = Callable[[Situation], Awaitable[Choice]]


class Debugger:
    """Asks before every unit, or only at breakpoints, and after every failure."""

    def __init__(
        self,
        ask: Ask,
        control: Control,
        breakpoints: Sequence[str] = (),
        redact: Callable[[str], str] = str,
    ) -> None:
        self._ask = ask
        self._redact = redact
        self._control = control
        self._breakpoints = tuple(breakpoints)
        self._running_on = False
        self._asked_before: set[tuple[str, str, int]] = set()

    def wrap(self, load: Load) -> Load:
        """A loader whose steps stop and ask."""
        return lambda node: _PausedLoaded(self, load(node))

    def stops_at(self, node: str) -> bool:
        if self._breakpoints:
            return any(inside(node, path) for path in self._breakpoints)
        return not self._running_on

    async def before(self, step: Step, ctx: StepContext) -> Choice:
        """What the user wants to do with this attempt; asked once, however often it looks."""
        attempt = (ctx.node, ctx.host.name, ctx.attempt)
        if attempt in self._asked_before or not self.stops_at(ctx.node):
            return "run"
        self._asked_before.add(attempt)
        choice = await self._asked(step, ctx, "")
        if choice == "abort":
            raise Ended(ABORTED, begun=False)
        if choice == "continue":
            self._running_on, self._breakpoints = True, ()
        return choice

    async def after_failure(self, step: Step, ctx: StepContext, error: Exception) -> Choice:
        """Whether to try once more, go on as if it had worked, or leave it failed."""
        said = str(error) or type(error).__name__
        choice = await self._asked(step, ctx, said)
        if choice == "abort":
            raise Ended(f"{ABORTED}; before that: {said}")
        return choice

    async def _asked(self, step: Step, ctx: StepContext, error: str) -> Choice:
        probe = (shlex.join(command.argv) for command in step.probe(ctx.host) or ())
        summary, error = self._redact(step.summary()), self._redact(error)
        commands = tuple(map(self._redact, probe))
        situation = Situation(ctx.node, ctx.host.name, summary, commands, error)
        choice = await self._ask(situation)
        if choice == "abort":
            self._control.cancel(ABORTED)
        return choice


class _Paused(Step):
    """A step with a debugger in front of it."""

    kind = "debugged"

    def __init__(self, debugger: Debugger, step: Step) -> None:
        self._debugger = debugger
        self._step = step
        self.verifies = step.verifies
        self.uninterruptible = step.uninterruptible
        self.undoes_itself = step.undoes_itself
        self.declares_intent = step.declares_intent

    def spec(self) -> StepSpec:
        return self._step.spec()

    def summary(self) -> str:
        return self._step.summary()

    def writes(self) -> tuple[str, ...]:
        return self._step.writes()

    def follows(self) -> tuple[str, ...]:
        return self._step.follows()

    async def precheck(self, ctx: StepContext) -> Verdict:
        if await self._debugger.before(self._step, ctx) == "skip":
            return Verdict.holds("skipped by hand")
        return await self._step.precheck(ctx)

    async def run(self, ctx: StepContext) -> Outcome | NotYet | None:
        await self._before_what_always_runs(ctx)
        while True:
            try:
                return await self._step.run(ctx)
            except Exception as error:
                choice = await self._debugger.after_failure(self._step, ctx, error)
                if choice == "skip":
                    raise PassedOver("failed, skipped by hand") from error
                if choice != "retry":
                    raise

    async def _before_what_always_runs(self, ctx: StepContext) -> None:
        """These have no precheck to stop at; without its value, what needs it will fail."""
        if not isinstance(self._step, Reader | Minter | Expander):
            return
        if await self._debugger.before(self._step, ctx) == "skip":
            raise PassedOver("skipped by hand")

    @property
    def can_be_undone(self) -> bool:
        return self._step.can_be_undone

    async def rollback(self, ctx: StepContext) -> str | None:
        return await self._step.rollback(ctx)

    async def settle(self, ctx: StepContext) -> bool:
        return await self._step.settle(ctx)

    async def diagnose(self, ctx: StepContext) -> str:
        return await self._step.diagnose(ctx)


class _PausedLoaded:
    def __init__(self, debugger: Debugger, loaded: Loaded) -> None:
        self._debugger = debugger
        self._loaded = loaded
        self.cls = loaded.cls
        self.decisive = loaded.decisive
        self.static = _Paused(debugger, loaded.static) if loaded.static is not None else None

    def bind(self, view: UnitView) -> Step:
        return _Paused(self._debugger, self._loaded.bind(view))

    def wanted(self, view: UnitView) -> bool:
        return self._loaded.wanted(view)
