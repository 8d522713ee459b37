"""What a node's step turns out to be, decided once per node."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Final

from kubexm.engine.ports import Load, Loaded
from kubexm.plan.node import ExecutionNode
from kubexm.runtime.contexts import UnitView
from kubexm.step.contract import Expander, Minter, Reader, Step


class LeftOut(Enum):
    """A unit whose condition does not hold."""

    LEFT_OUT = "left out"


LEFT_OUT: Final = LeftOut.LEFT_OUT
NOT_WANTED = "`when` does not hold"


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

    def foreseeable(self, view: Callable[[], UnitView]) -> Step | LeftOut | None:
        """The step, if its precheck may be made ahead of its turn, and that it has none then."""
        if self.needs or self.always_runs or not fusible(self.loaded.cls):
            return None  # values may be others by then
        if self.is_left_out(view):
            return LEFT_OUT
        return self.loaded.static or self.loaded.bind(view())

    def is_left_out(self, view: Callable[[], UnitView]) -> bool:
        """Whether its condition does not hold, as far as no value decides."""
        return self.conditional and not self.needs and not self.loaded.wanted(view())


def fusible(cls: type[Step]) -> bool:
    """Whether the precheck is a probe and a judgement, and not a coroutine of its own."""
    return cls.precheck is Step.precheck and cls.probe is not Step.probe


def forward(load: Load) -> Callable[[ExecutionNode], Work]:
    """Work that makes the statement of a step true."""
    return lambda node: Work(node, load(node), node.step.needs)
