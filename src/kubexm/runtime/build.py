"""Make a runtime: open all hosts at once, learn what is needed, release them on every way out."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from msgspec.structs import replace

from kubexm import logger
from kubexm.cache import Cache
from kubexm.common.digests import Digests
from kubexm.common.roles import ALL, CONTROL_NODE
from kubexm.connector.base import Connector
from kubexm.connector.source import Sources
from kubexm.errors import ConnectionLost, HostUnreachable, KubexmError, Problem, Refused
from kubexm.runner import facts
from kubexm.runner.host import Host
from kubexm.runtime.assets import NOTHING, Assets
from kubexm.runtime.contexts import RUN, PlanContext, UnitView
from kubexm.runtime.ledger import Book, HostLedger, Remember
from kubexm.runtime.secrets import SecretVault

OPEN_SECONDS = 15.0
"""For a host to let us in."""
LEARN_SECONDS = 45.0
"""For one that has, to tell of itself; if packets get lost it may have to be called again."""
CONNECTS_AT_ONCE = 64
RETRY_SECONDS = 0.5
Confirm = Callable[[str], Awaitable[None]]


class HostConfig(msgspec.Struct, frozen=True):
    """A host as the inventory declares it."""

    name: str
    connector: Connector
    described: Mapping[str, Any] = msgspec.field(default_factory=dict)
    """What `${host.…}` names: its name, address, roles and labels."""
    vars: Mapping[str, Any] = msgspec.field(default_factory=dict)
    """Its variables, final."""
    sudo: bool = False
    state_dir: str = "/var/lib/kubexm"


async def nobody_to_ask(question: str) -> None:
    """Refuse: there is no person at the other end."""
    raise Refused(
        f"needs a person to answer: {question}", hint="run it on a terminal, or remove the pause"
    )


class RuntimeConfig(msgspec.Struct, frozen=True):
    """What a runtime is made of; every part can be replaced in a test."""

    hosts: Sequence[HostConfig]
    idle: Collection[str] = ()
    """Those on which nothing is to be done: no connection is made to them."""
    asked: Collection[str] | None = None
    """The hosts whose facts are gathered; all of them unless given. It takes them some work."""
    books: Mapping[str, Book] = msgspec.field(default_factory=dict)
    """By host what is in its ledger already."""
    confirm: Confirm = nobody_to_ask
    now: Callable[[], float] = time.time
    secrets: SecretVault = msgspec.field(default_factory=SecretVault)
    assets: Assets = NOTHING
    """The files and images that go to hosts."""
    cache: Cache = msgspec.field(default_factory=Cache)
    digests: Digests = msgspec.field(default_factory=Digests)
    """What is known of files that go to hosts."""
    log: logger.Log = msgspec.field(default_factory=logger.get)


class HostRuntime(msgspec.Struct):
    """One host, ready: its connector, what is declared and what is known of it."""

    config: HostConfig
    host: Host
    facts: Mapping[str, Any] = msgspec.field(default_factory=dict)
    """Since which boot it runs; if it was asked, all that it tells."""
    reopening: asyncio.Lock = msgspec.field(default_factory=asyncio.Lock)


class Runtime:
    """All hosts of a run and what belongs to them."""

    def __init__(self, config: RuntimeConfig) -> None:
        self.secrets = config.secrets
        self.assets = config.assets
        self._cache = config.cache
        self._log = config.log
        self.now = config.now
        self.unreachable: dict[str, str] = {}
        self.reasons: dict[str, Problem] = {}
        """Of the same hosts, with what to do about it apart."""
        self._config = config
        self._sources = Sources(config.digests)
        self._hosts = {host.name: self._unopened(host) for host in config.hosts}
        self._books = {name: config.books.get(name) or Book("") for name in self._hosts}

    def _unopened(self, host: HostConfig) -> HostRuntime:
        way = Host(
            host.name,
            host.connector,
            facts=None,
            sudo=host.sudo,
            state_dir=host.state_dir,
            sources=self._sources,
        )
        return HostRuntime(host, way)

    def _asks(self, name: str) -> bool:
        return self._config.asked is None or name in self._config.asked

    @classmethod
    @asynccontextmanager
    async def build(cls, config: RuntimeConfig) -> AsyncIterator[Runtime]:
        """Open every host, concurrently; the unreachable are named, not raised."""
        runtime = cls(config)
        try:
            await runtime._open_all()
            yield runtime
        finally:
            await runtime._close_all()

    async def _open_all(self) -> None:
        gate = asyncio.Semaphore(CONNECTS_AT_ONCE)
        async with asyncio.TaskGroup() as group:
            for name, host in self._hosts.items():
                if name not in self._config.idle:
                    group.create_task(self._open(host, gate))

    async def _open(self, host: HostRuntime, gate: asyncio.Semaphore) -> None:
        name = host.config.name
        try:
            async with gate:
                await self._open_in_time(host)
        except KubexmError as error:
            self._miss(name, error.message, error.hint)
        except OSError as error:
            self._miss(name, str(error))

    async def _open_in_time(self, host: HostRuntime) -> None:
        loop, lost = asyncio.get_running_loop(), list[ConnectionLost]()
        began = loop.time()
        try:
            async with asyncio.timeout(OPEN_SECONDS) as limit:
                await self._until_known(host, lost, limit)
        except TimeoutError:
            seen = f"; {lost[-1]}" if lost else ""
            took = f"{loop.time() - began:.0f} s"
            self._miss(host.config.name, f"did not answer within {took}{seen}")

    def _miss(self, name: str, message: str, hint: str = "") -> None:
        self.unreachable[name] = "; ".join(filter(None, (message, hint)))
        self.reasons[name] = Problem(message, hint=hint)

    async def _until_known(
        self, host: HostRuntime, lost: list[ConnectionLost], limit: asyncio.Timeout
    ) -> None:
        """Open a host and learn of it; a connection that is lost meanwhile is opened again."""
        while True:
            try:
                await host.config.connector.open()
                if not lost:
                    limit.reschedule(asyncio.get_running_loop().time() + LEARN_SECONDS)
                return await self._learn(host)
            except ConnectionLost as error:
                lost.append(error)
                await asyncio.sleep(RETRY_SECONDS)

    async def _learn(self, host: HostRuntime) -> None:
        name = host.config.name
        if not self._asks(name):
            host.facts = {"boot_id": await facts.boot_id(host.host)}
            return
        told = await self._cache.once(_scope(name), "facts", lambda: facts.gather(host.host))
        host.facts = host.host.facts = told

    async def learn_as_root(self, name: str) -> None:
        """Gather the facts of a host that was opened without sudo anew, as only root sees them."""
        host = self._unopened(replace(self._hosts[name].config, sudo=True))
        self._cache.drop(_scope(name))
        await self._learn(host)
        self._hosts[name] = host

    async def _close_all(self) -> None:
        closing = (host.config.connector.close() for host in self._hosts.values())
        await asyncio.gather(*closing, return_exceptions=True)
        self._sources.close()

    def host(self, name: str) -> Host:
        return self._hosts[name].host

    def view(self, name: str, values: Mapping[str, Any]) -> UnitView:
        """What references may name on this host."""
        host = self._hosts[name]
        return UnitView(
            host=host.config.described,
            vars=host.config.vars,
            facts=host.facts,
            values=values,
        )

    def plan_context(self, vars: Mapping[str, Any] | None = None) -> PlanContext:
        """What a pipeline in code decides by; `vars` is what its user has configured."""
        return PlanContext.of(
            roles={name: _roles(host.config) for name, host in self._hosts.items()},
            vars=vars or {},
            facts={name: host.facts for name, host in self._hosts.items()},
            cache=self._cache,
        )

    def facts(self) -> dict[str, Mapping[str, Any]]:
        """Facts of every host that was reached, and asked for them."""
        return {name: self._hosts[name].facts for name in self.reached() if self._asks(name)}

    def reached(self) -> list[str]:
        """The hosts that answered when the run began."""
        others = {*self.unreachable, *self._config.idle}
        return [name for name in self._hosts if name not in others]

    def ledger(self, name: str, remember: Remember) -> HostLedger:
        return HostLedger(self.host(name), self._books[name], remember, self.now)

    def redact(self, text: str) -> str:
        return self.secrets.redact(text)

    def conceal(self, value: Any) -> None:
        self.secrets.conceal(value)

    async def reconnect(self, name: str) -> None:
        """Open the connection again, however often it takes; the caller bounds the time."""
        host = self._hosts[name]
        async with host.reopening:
            while True:
                try:
                    await host.config.connector.open()
                    return await self._learn_if_rebooted(host)
                except (ConnectionLost, HostUnreachable, OSError):
                    await asyncio.sleep(RETRY_SECONDS)

    async def _learn_if_rebooted(self, host: HostRuntime) -> None:
        """Gather the facts of a host anew if it was booted since: its kernel may be another."""
        name, known = host.config.name, host.facts.get("boot_id", "")
        if await facts.boot_id(host.host) == known:
            return
        self._log.info("host rebooted", hostname=name)
        self._cache.drop(_scope(name))
        await self._learn(host)

    async def confirm(self, question: str) -> None:
        await self._config.confirm(question)


def _roles(host: HostConfig) -> tuple[str, ...]:
    own = tuple(host.described.get("roles", ()))
    return own if host.name == CONTROL_NODE else (*own, ALL)


def _scope(host: str) -> str:
    """Where the cache keeps what was computed for a host."""
    return f"{RUN}/@host/{host}"  # no pipeline has such a name
