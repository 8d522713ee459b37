"""What the nodes of an undo graph do: take back, compensate, settle."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence

from kubexm.engine.failures import PassedOver
from kubexm.engine.ports import Load, Loaded
from kubexm.engine.undo import SETTLE, UNDO, is_settling
from kubexm.engine.work import Work
from kubexm.plan.node import ExecutionNode, StepSpec
from kubexm.plan.result import LEFT
from kubexm.runtime.contexts import StepContext, UnitView
from kubexm.step.contract import NotYet, Outcome, Step, Verdict

Moved = Mapping[str, Mapping[str, Sequence[ExecutionNode]]]
"""By node and host others that are undone in its place, before it."""


class _Backward(Step):
    """Stands for another step on the way back."""

    def __init__(self, step: Step, later: Sequence[Step] = ()) -> None:
        """`later` steps, latest first, went on with what this one had begun."""
        self._step = step
        self._steps = [*(other for other in later if other != step), step]
        self.uninterruptible = any(step.uninterruptible for step in self._steps)

    def spec(self) -> StepSpec:
        return self._step.spec()


class Undone(_Backward):
    """Takes back what another step did."""

    kind = "undone"

    def summary(self) -> str:
        return f"undo: {self._step.summary()}"

    async def precheck(self, ctx: StepContext) -> Verdict:
        if self._step.can_be_undone:
            return Verdict.needed("was changed by this run")
        return Verdict.holds(f"{LEFT}: the step has no undo")

    async def run(self, ctx: StepContext) -> Outcome | NotYet | None:
        for step in self._steps:
            if (left := await step.rollback(ctx)) is not None:
                raise PassedOver(f"{LEFT}: {left}")
        return Outcome(changed=True)


class Settled(_Backward):
    """Goes on with what another step found before it changed it."""

    kind = "settled"

    def summary(self) -> str:
        return f"settle: {self._step.summary()}"

    async def precheck(self, ctx: StepContext) -> Verdict:
        return Verdict.needed("what it stood on is undone")

    async def run(self, ctx: StepContext) -> Outcome | NotYet | None:
        return Outcome(changed=any([await step.settle(ctx) for step in self._steps]))


class _Wrapped:
    """A loaded step behind another."""

    decisive: frozenset[str] = frozenset()

    def __init__(
        self,
        loaded: Loaded,
        cls: type[_Backward],
        later: Mapping[str, Sequence[Loaded]] | None = None,
    ) -> None:
        """`later` are loaded steps by the host on which they went on with it."""
        self.cls = cls
        self._loaded = loaded
        self._later = later or {}
        static = loaded.static if not later else None
        self.static = cls(static) if static is not None else None

    def bind(self, view: UnitView) -> Step:
        later = self._later.get(view.host["name"], ()) if self._later else ()
        return self.cls(self._loaded.bind(view), [step.bind(view) for step in later])

    def wanted(self, view: UnitView) -> bool:
        return True


def settles(loaded: Loaded) -> bool:
    """Whether it has something to do when all is undone."""
    return loaded.cls.settle is not Step.settle


def backward(
    load: Load,
    undone: Mapping[str, ExecutionNode],
    compensating: Mapping[str, ExecutionNode],
    moved: Moved,
) -> Callable[[ExecutionNode], Work]:
    """Work of an undo graph: undone steps, and compensations that run forward.

    What a compensation has added while it ran comes from nowhere else.
    """

    def work(node: ExecutionNode) -> Work:
        path = node.id.removeprefix(f"{UNDO}/")
        cls = Settled if is_settling(node.id) else Undone
        if (source := undone.get(path.removesuffix(SETTLE))) is not None:
            hosts = moved.get(source.id, {})
            later = {host: [*map(load, nodes)] for host, nodes in hosts.items()}
            return Work(node, _Wrapped(load(source), cls, later), _needs(source, hosts))
        source = compensating.get(path, node)
        return Work(node, load(source), source.step.needs)

    return work


def _needs(node: ExecutionNode, later: Mapping[str, Sequence[ExecutionNode]]) -> tuple[str, ...]:
    nodes = (node, *itertools.chain(*later.values()))
    return tuple(dict.fromkeys(name for node in nodes for name in node.step.needs))
