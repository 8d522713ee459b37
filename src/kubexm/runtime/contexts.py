"""What each layer may see, on one page: a separate small object each, never the whole runtime."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import msgspec

from kubexm.common.secrets import SecretRef
from kubexm.runner.host import Host
from kubexm.runner.priors import Prior


class Ledger(Protocol):
    """Prior states of one host's resources; the first entry of a resource wins."""

    async def remember(self, resource: str, prior: Prior) -> None:
        """Keep the prior state, durably, unless one is known already."""

    async def capture(self, resource: str, look: Callable[[str], Awaitable[Prior]]) -> None:
        """The same for a state that has yet to be looked at; copies on the host get a name."""

    def recall(self, resource: str) -> Prior | None:
        """The state before this run's first change, or None if it never changed it."""


class Secrets(Protocol):
    """Secret values by reference; every value handed out is redacted from then on."""

    def reveal(self, reference: SecretRef) -> str: ...


@dataclass(frozen=True, slots=True)
class PlanContext:
    """What pipelines, modules and tasks decide by; read-only."""

    hosts: Mapping[str, tuple[str, ...]]
    """Host names by role."""
    vars: Mapping[str, Any] = field(default_factory=dict)
    facts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Facts by host name."""

    def on(self, *roles: str) -> tuple[str, ...]:
        """The hosts of these roles, each once, in the order of the inventory."""
        return tuple(dict.fromkeys(host for role in roles for host in self.hosts.get(role, ())))


class Unmade(str):
    """A value that is made when it turns out to be needed; until then it is empty, all of it."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class UnitView:
    """What references in parameters and `when` expressions may name, for one unit."""

    host: Mapping[str, Any] = field(default_factory=dict)
    """`name`, `roles` and `labels` of the host."""
    vars: Mapping[str, Any] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    values: Mapping[str, Any] = field(default_factory=dict)


Say = Callable[[str, str], None]


def _silent(stream: str, text: str) -> None:
    """Drop a line nobody listens to."""


def _no_progress(done: float, total: float, text: str) -> None:
    """Drop what nobody watches."""


async def _no_pause(question: str) -> None:
    """Go on at once where nobody can be asked."""


class StepContext(msgspec.Struct, frozen=True):
    """What a step may touch: one host, its values, its secrets, its ledger."""

    host: Host
    node: str
    ledger: Ledger
    secrets: Secrets
    values: Mapping[str, Any] = {}
    attempt: int = 1
    waited: float = 0.0
    """Seconds that `run` has asked to wait for in this attempt, and has waited."""
    dry_run: bool = False
    say: Say = _silent
    """Takes a stream name and a line of text for the log."""
    progress: Callable[[float, float, str], None] = _no_progress
    confirm: Callable[[str], Awaitable[None]] = _no_pause
    """Returns when a person said yes; raises `Refused` if they said no.

    To be asked before the first change: a cancel ends at once who waits for the answer.
    """
