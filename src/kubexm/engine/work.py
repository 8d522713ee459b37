"""What a node's step turns out to be, decided once per node."""

from __future__ import annotations

from collections.abc import Callable

from kubexm.engine.ports import Load, Loaded
from kubexm.plan.node import ExecutionNode, StepSpec
from kubexm.plan.result import NO_UNDO
from kubexm.runtime.contexts import StepContext, UnitView
from kubexm.step.contract import Expander, Minter, NotYet, Outcome, Reader, Step, Verdict


class Work:
    """A loaded step and what the engine has to know of it."""

    __slots__ = (
        "always_runs",
        "changes",
        "conditional",
        "decisive",
        "demands",
        "expands",
        "loaded",
        "minted",
        "needs",
    )

    def __init__(self, node: ExecutionNode, loaded: Loaded, needs: tuple[str, ...]) -> None:
        """`needs` may name more than the node does: values that are taken as they are."""
        cls = loaded.cls
        self.loaded = loaded
        self.needs = needs
        self.demands = node.step.needs
        self.decisive = tuple(name for name in self.demands if name in loaded.decisive)
        self.conditional = node.when is not None
        self.minted = issubclass(cls, Minter)
        self.expands = issubclass(cls, Expander)
        self.always_runs = issubclass(cls, (Reader, Minter, Expander))
        self.changes = not issubclass(cls, (Reader, Expander))

    @property
    def step(self) -> Step | None:
        """The step if it is the same for every unit."""
        return self.loaded.static

    def foreseeable(self) -> Step | None:
        """The step if its precheck may be made ahead of its turn."""
        step = self.loaded.static
        if step is None or self.conditional or self.needs or self.always_runs:
            return None
        return step if fusible(step) else None


def fusible(step: Step) -> bool:
    """Whether the precheck is a probe and a judgement, and not a coroutine of its own."""
    return type(step).precheck is Step.precheck and type(step).probe is not Step.probe


def forward(load: Load) -> Callable[[ExecutionNode], Work]:
    """Work that makes the statement of a step true."""
    return lambda node: Work(node, load(node), node.step.needs)


class Undone(Step):
    """Takes back what another step did."""

    kind = "undone"

    def __init__(self, step: Step) -> None:
        self._step = step
        self.uninterruptible = step.uninterruptible

    def spec(self) -> StepSpec:
        return self._step.spec()

    def summary(self) -> str:
        return f"undo: {self._step.summary()}"

    async def precheck(self, ctx: StepContext) -> Verdict:
        if self._step.can_be_undone:
            return Verdict.needed("was changed by this run")
        return Verdict.holds(NO_UNDO)

    async def run(self, ctx: StepContext) -> Outcome | NotYet | None:
        await self._step.rollback(ctx)
        return Outcome(changed=True)


class _UndoneLoaded:
    cls = Undone
    decisive: frozenset[str] = frozenset()

    def __init__(self, loaded: Loaded) -> None:
        self._loaded = loaded
        self.static = Undone(loaded.static) if loaded.static is not None else None

    def bind(self, view: UnitView) -> Step:
        return Undone(self._loaded.bind(view))

    def wanted(self, view: UnitView) -> bool:
        return True


def backward(
    load: Load, origin: Callable[[str], ExecutionNode | None], undoes: Callable[[str], bool]
) -> Callable[[ExecutionNode], Work]:
    """Work of an undo graph: undone steps, and compensations that run forward.

    What a compensation has added while it ran comes from nowhere else.
    """

    def work(node: ExecutionNode) -> Work:
        source = origin(node.id) or node
        if undoes(node.id):
            return Work(node, _UndoneLoaded(load(source)), source.step.needs)
        return Work(node, load(source), source.step.needs)

    return work
