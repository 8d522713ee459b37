"""What the engine asks of its surroundings; whoever calls it brings these along."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from kubexm.plan.node import ExecutionNode
from kubexm.plan.records import LedgerDropped, LedgerEntry
from kubexm.runner.host import Host
from kubexm.runtime.assets import Assets
from kubexm.runtime.contexts import Ledger, Secrets, UnitView
from kubexm.step.contract import Step

Remember = Callable[[LedgerEntry | LedgerDropped], Awaitable[None]]
"""Makes what happens to a ledger durable."""


class Loaded(Protocol):
    """A step that can be made for a unit."""

    @property
    def cls(self) -> type[Step]:
        """The class of the step, whatever its parameters."""

    @property
    def static(self) -> Step | None:
        """The step itself if its parameters name nothing that differs from unit to unit."""

    @property
    def decisive(self) -> frozenset[str]:
        """The values that `when` or the precheck go by, and not only `run`."""

    def bind(self, view: UnitView) -> Step:
        """The step for one unit."""

    def wanted(self, view: UnitView) -> bool:
        """Whether the node's `when` holds for this unit."""


Load = Callable[[ExecutionNode], Loaded]


class EngineRuntime(Protocol):
    """The hosts of a run and what belongs to them."""

    @property
    def unreachable(self) -> Mapping[str, str]:
        """Hosts that could not be opened, with the reason."""

    @property
    def secrets(self) -> Secrets: ...

    @property
    def assets(self) -> Assets: ...

    def host(self, name: str) -> Host: ...

    def view(self, name: str, values: Mapping[str, Any]) -> UnitView:
        """What references may name on this host."""

    def ledger(self, name: str, remember: Remember) -> Ledger: ...

    def now(self) -> float:
        """Seconds since the epoch."""

    def redact(self, text: str) -> str:
        """The text without any secret value."""

    def conceal(self, value: Any) -> None:
        """From now on, redact this value too."""

    async def reconnect(self, name: str) -> None:
        """Open the connection to a host again, or raise `HostUnreachable`."""

    async def confirm(self, question: str) -> None:
        """Return when a person said yes; raise `Refused` if they said no."""
