"""The step that takes back what another one has changed, in whichever run that was."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

import msgspec

from kubexm.plan.node import StepSpec
from kubexm.plan.result import LEFT
from kubexm.runner.priors import Prior
from kubexm.runtime.contexts import Ledger, StepContext
from kubexm.step import registry
from kubexm.step.contract import Outcome, Step, Verdict
from kubexm.step.registry import step


@step("undone")
class Undone(Step):
    """What a step has changed on the host is as it was before any run of the same name.

    The ledger knows what that was; what is not in it was not changed by kubexm, and stays. In the
    end the ledger has nothing of it: who makes the change again records anew.

    ```yaml
    - name: no-motd
      undone: {step: file, params: {path: /etc/motd}}
    ```
    """

    step: str
    """The kind of the step."""
    params: dict[str, Any] = field(default_factory=dict)
    """Its parameters."""
    settles: bool = False
    """In place of that, go on with what was there before, such as a service with its old files:
    comes last, when all that it reads is undone too."""
    for_good: bool = False
    """What may not be touched, such as a directory with files of others, is left for good: the
    ledger forgets it too, since nobody comes back for it."""

    declares_intent = True
    reads_facts = True  # some of those that it undoes do

    def __post_init__(self) -> None:
        object.__setattr__(self, "uninterruptible", self._undone.uninterruptible)

    def summary(self) -> str:
        verb = "settle" if self.settles else "undo"
        return f"{verb}: {self._undone.summary()}"

    async def precheck(self, ctx: StepContext) -> Verdict:
        undone = self._undone
        if not undone.can_be_undone:
            return Verdict.holds(f"{LEFT}: the step has no undo")
        if self.settles and not _settles(undone):
            return Verdict.holds("there is nothing to go on with")
        if await _entries(ctx, undone):
            return Verdict.needed("was changed by kubexm", "-")
        return Verdict.holds("the ledger has nothing of it")

    async def run(self, ctx: StepContext) -> Outcome:
        undone = self._undone
        back = msgspec.structs.replace(ctx, ledger=_First(ctx.ledger, await _entries(ctx, undone)))
        if self.settles:
            changed = await undone.settle(back)
            await _drop(ctx, undone)
            return Outcome(changed)
        if (left := await undone.rollback(back)) is not None:
            if self.for_good:
                await _drop(ctx, undone)
            return Outcome(changed=False, message=f"{LEFT}: {left}")
        if not _settles(undone):
            await _drop(ctx, undone)
        return Outcome()

    @property
    def _undone(self) -> Step:
        return registry.load(self.step, self.params)


def undoing(spec: StepSpec, *, for_good: bool = False) -> StepSpec:
    """What takes back the changes of a step."""
    params = {**_params(spec), **({"for_good": True} if for_good else {})}
    return StepSpec(Undone.kind, params, references=spec.references)


def settling(spec: StepSpec) -> StepSpec | None:
    """What goes on with what was there before a step, after all is undone; None if nothing does."""
    if registry.find(spec.kind).settle is Step.settle:
        return None
    params = {**_params(spec), "settles": True}
    return StepSpec(Undone.kind, params, references=spec.references)


def _params(spec: StepSpec) -> dict[str, Any]:
    return {"step": spec.kind, "params": spec.params}


def _settles(undone: Step) -> bool:
    return type(undone).settle is not Step.settle


async def _entries(ctx: StepContext, undone: Step) -> dict[str, Prior]:
    """What the things that a step changes were like before any run, as far as one changed them."""
    found = {name: await ctx.ledger.recall_first(name) for name in undone.resources}
    return {name: prior for name, prior in found.items() if prior is not None}


async def _drop(ctx: StepContext, undone: Step) -> None:
    for resource in undone.resources:
        if await ctx.ledger.recall_first(resource) is not None:
            await ctx.ledger.drop(resource)


class _First:
    """A ledger that goes back to what was there before any run, and not before this one."""

    def __init__(self, ledger: Ledger, first: Mapping[str, Prior]) -> None:
        self._first = first
        self.remember, self.capture = ledger.remember, ledger.capture
        self.recall_first, self.drop = ledger.recall_first, ledger.drop

    def recall(self, resource: str) -> Prior | None:
        return self._first.get(resource)
