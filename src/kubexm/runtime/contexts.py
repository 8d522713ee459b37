"""What each layer may see, on one page: a separate small object each, never the whole runtime."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, Protocol, TypeVar

import msgspec
from msgspec.structs import replace

from kubexm.cache import Cache
from kubexm.common.secrets import SecretRef
from kubexm.errors import InvalidInput
from kubexm.runner.host import Host
from kubexm.runner.priors import Prior
from kubexm.runtime.assets import NOTHING, Assets

T = TypeVar("T")


class Ledger(Protocol):
    """Prior states of one host's resources; the first entry of a resource wins."""

    async def remember(self, resource: str, prior: Prior) -> None:
        """Keep the prior state, durably, unless one is known already."""

    async def capture(self, resource: str, look: Callable[[str], Awaitable[Prior]]) -> None:
        """The same for a state that has yet to be looked at; copies on the host get a name."""

    def recall(self, resource: str) -> Prior | None:
        """The state before this run's first change, or None if it never changed it."""

    async def recall_first(self, resource: str) -> Prior | None:
        """The state before the first change by any run of its name, or None if there was none."""

    async def knows(self, resource: str) -> bool:
        """Whether a state before any change of ours is known."""

    async def resources(self) -> frozenset[str]:
        """All of which a state before any change of ours is known."""

    async def drop(self, resource: str) -> None:
        """Forget a resource, durably: it is as it was before any run of its name."""


class Secrets(Protocol):
    """Secret values by reference; every value handed out is redacted from then on."""

    def reveal(self, reference: SecretRef) -> str: ...


RUN = "run"
"""The scope of the cache that lasts as long as the runtime."""


class PlanCache(msgspec.Struct, frozen=True):
    """What planning needs more than once, computed once for as long as a scope is planned."""

    _cache: Cache
    _scopes: Mapping[str, str]
    """The scopes that are being planned, by what they are: `run`, `pipeline`, `module`, `task`."""

    def once(self, scope: str, key: str, compute: Callable[[], T]) -> T:
        """The value of this key in the nearest scope of this kind; the first to ask computes it."""
        if scope not in self._scopes:
            known = ", ".join(f"`{name}`" for name in self._scopes)
            raise InvalidInput(f"no `{scope}` is being planned here", hint=f"use one of {known}")
        return self._cache.at_once(self._scopes[scope], key, compute)

    @contextmanager
    def within(self, scope: str, name: str) -> Iterator[PlanCache]:
        """The same inside of one more scope, which is dropped at its end."""
        path = f"{[*self._scopes.values()][-1]}/{name}"
        try:
            yield PlanCache(self._cache, {**self._scopes, scope: path})
        finally:
            self._cache.drop(path)


class PlanContext(msgspec.Struct, frozen=True):
    """What pipelines, modules and tasks decide by; read-only."""

    hosts: Mapping[str, tuple[str, ...]]
    """Host names by role; `all` are all but the control node."""
    vars: Mapping[str, Any]
    """What the user of the pipeline has configured."""
    facts: Mapping[str, Mapping[str, Any]]
    """Facts by host name; a host that was not reached has none."""
    cache: PlanCache

    @classmethod
    def of(
        cls,
        *,
        roles: Mapping[str, tuple[str, ...]],
        vars: Mapping[str, Any],
        facts: Mapping[str, Mapping[str, Any]],
        cache: Cache,
    ) -> PlanContext:
        """The context of a run, by the roles and facts of its hosts."""
        hosts: dict[str, list[str]] = {}
        for host, own in roles.items():
            for role in own:
                hosts.setdefault(role, []).append(host)
        known = {host: MappingProxyType(dict(told)) for host, told in facts.items()}
        return cls(
            hosts=MappingProxyType({role: tuple(some) for role, some in hosts.items()}),
            vars=MappingProxyType(dict(vars)),
            facts=MappingProxyType(known),
            cache=PlanCache(cache, {RUN: RUN}),
        )

    def on(self, *roles: str) -> tuple[str, ...]:
        """The hosts of these roles, each once."""
        return tuple(dict.fromkeys(host for role in roles for host in self.hosts.get(role, ())))

    @contextmanager
    def within(self, scope: str, name: str) -> Iterator[PlanContext]:
        """The context of a part; `@pipeline`, `@module` and `@task` hand it to their function."""
        with self.cache.within(scope, name) as cache:
            yield replace(self, cache=cache)


class Unmade(str):
    """A value that is made when it turns out to be needed; until then it is empty, all of it."""

    __slots__ = ()


class UnitView(msgspec.Struct, frozen=True):
    """What references in parameters and `when` expressions may name, for one unit."""

    host: Mapping[str, Any] = msgspec.field(default_factory=dict)
    """`name`, `roles` and `labels` of the host."""
    vars: Mapping[str, Any] = msgspec.field(default_factory=dict)
    facts: Mapping[str, Any] = msgspec.field(default_factory=dict)
    values: Mapping[str, Any] = msgspec.field(default_factory=dict)


Say = Callable[[str, str], None]


def _silent(stream: str, text: str) -> None:
    """Drop a line nobody listens to."""


def _no_progress(done: float, total: float, text: str) -> None:
    """Drop what nobody watches."""


async def _no_pause(question: str) -> None:
    """Go on at once where nobody can be asked."""


class StepContext(msgspec.Struct, frozen=True):
    """What a step may touch: one host, its values, its secrets, its ledger, what goes to hosts."""

    host: Host
    node: str
    ledger: Ledger
    secrets: Secrets
    assets: Assets = NOTHING
    values: Mapping[str, Any] = {}
    lost: Collection[str] = ()
    """Names of the hosts that the run goes on without, as it is whenever somebody looks."""
    attempt: int = 1
    waited: float = 0.0
    """Seconds that `run` has asked to wait for in this attempt, and has waited."""
    took: float = 0.0
    """Seconds from the start of the unit to its failure; only `diagnose` is told."""
    dry_run: bool = False
    say: Say = _silent
    """Takes a stream name and a line of text for the log."""
    progress: Callable[[float, float, str], None] = _no_progress
    confirm: Callable[[str], Awaitable[None]] = _no_pause
    """Returns when a person said yes; raises `Refused` if they said no.

    To be asked before the first change: a cancel ends at once who waits for the answer.
    """

    def reveal(self, reference: str) -> str:
        """The secret that a reference such as `env://NAME` stands for."""
        return self.secrets.reveal(SecretRef(reference))
