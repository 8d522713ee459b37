"""The ledger of one host: what its resources were before anything of ours changed them.

A run goes back to what it has found itself. What was there before any run of its name is kept
beside that for good, in the store and as a copy on the host, for whoever takes all of it away.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import defaultdict
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from kubexm.connector.base import C_LOCALE, is_missing
from kubexm.plan.records import LedgerDropped, LedgerEntry
from kubexm.runner import priors
from kubexm.runner.host import Host
from kubexm.runner.priors import Prior

Remember = Callable[[LedgerEntry | LedgerDropped], Awaitable[None]]
_AGAIN = ".again"
"""Ends the names of copies that a later run made, and the next one makes anew."""
_COPY = ".json"


class Book(msgspec.Struct):
    """What is known of one host's ledger."""

    name: str
    """Whose ledger it is: that of all runs of this name."""
    found: dict[str, Prior] = msgspec.field(default_factory=dict)
    """What this run has found, by resource."""
    known: frozenset[str] = frozenset()
    """The resources of which the store has the first entry."""
    first: dict[str, Prior] = msgspec.field(default_factory=dict)
    """What was there before any run of the name, by resource; only where a run goes back to it."""
    copies: set[str] | None = None
    """The names of the copies on the host, once somebody has looked."""
    looking: asyncio.Lock = msgspec.field(default_factory=asyncio.Lock)
    """Held by whoever looks: a second one would take a copy for there that goes meanwhile."""
    busy: defaultdict[str, asyncio.Lock] = msgspec.field(
        default_factory=lambda: defaultdict(asyncio.Lock)
    )


class HostLedger:
    """Prior states of one host's resources; the first entry of a resource wins."""

    def __init__(
        self, host: Host, book: Book, remember: Remember, now: Callable[[], float]
    ) -> None:
        self._host = host
        self._book = book
        self._remember = remember
        self._now = now

    def recall(self, resource: str) -> Prior | None:
        """The state before this run's first change, or None if it never changed it."""
        return self._book.found.get(resource)

    async def recall_first(self, resource: str) -> Prior | None:
        """The state before the first change by any run of the name, or None if there was none.

        What the store does not know, or nobody has asked it for, the host may.
        """
        book = self._book
        if resource in book.first:
            return book.first[resource]
        if self._name(resource) in await self._copies():
            book.first[resource] = await self._copied(self._name(resource))
        return book.first.get(resource)

    async def knows(self, resource: str) -> bool:
        """Whether a state before our changes is known, by the store or by the host."""
        book = self._book
        is_stored = resource in book.known or resource in book.found
        return is_stored or self._name(resource) in await self._copies()

    async def resources(self) -> frozenset[str]:
        """All of which a state before our changes is known, by the store or by the host."""
        book = self._book
        stored = {*book.known, *book.found, *book.first}
        others = sorted(await self._copies() - {self._name(resource) for resource in stored})
        told = [await self._told(name) for name in others]
        return frozenset(stored).union(
            copy["resource"] for copy in told if copy.get("name") == book.name
        )

    async def drop(self, resource: str) -> None:
        """Forget a resource, durably: it is as it was before any run of the name."""
        name, book = self._name(resource), self._book
        async with book.busy[resource]:
            # The host first: what is left there would be taken for the truth later.
            kept = (priors.kept_at(self._host, copy) for copy in (name, name + _AGAIN))
            await self._host.run("rm", "-rf", "--", self._path(name), *kept)
            (await self._copies()).discard(name)
            await self._remember(LedgerDropped(self._now(), self._host.name, resource))
            book.known -= {resource}
            for entries in (book.found, book.first):
                entries.pop(resource, None)

    async def remember(self, resource: str, prior: Prior) -> None:
        """Keep the prior state, durably, unless one is known already."""

        async def given(_: str) -> Prior:
            return prior

        await self.capture(resource, given)

    async def capture(self, resource: str, look: Callable[[str], Awaitable[Prior]]) -> None:
        """The same for a state that has yet to be looked at; copies on the host get a name."""
        async with self._book.busy[resource]:
            if resource not in self._book.found:
                await self._keep(resource, look)

    async def _keep(self, resource: str, look: Callable[[str], Awaitable[Prior]]) -> None:
        name = self._name(resource)
        first = None
        is_first = resource not in self._book.known
        if is_first and name in await self._copies():
            # The store was lost, or a process killed before it knew: the host knows better.
            first, is_first = await self._copied(name), False
        prior = dict(await look(name if is_first else name + _AGAIN))
        if is_first:
            # The copy first: what the store knows is not looked at again, so a process that is
            # killed in between must not leave the host without it.
            await self._copy(name, resource, prior)
        await self._remember(LedgerEntry(self._now(), self._host.name, resource, prior, first))
        self._book.found[resource] = prior

    async def _copies(self) -> set[str]:
        async with self._book.looking:
            if self._book.copies is None:
                self._book.copies = {name.removesuffix(_COPY) for name in await self._listed()}
            return self._book.copies

    async def _listed(self) -> list[str]:
        """The copies in our directory, if it is there."""
        look = ("ls", "-A", self._directory)
        found = await self._host.ask(*look, env=C_LOCALE)
        names = [] if is_missing(found) else self._host.checked(look, found).text.splitlines()
        return [name for name in names if name.endswith(_COPY)]

    async def _copied(self, name: str) -> dict[str, Any]:
        return dict((await self._told(name))["prior"])

    async def _told(self, name: str) -> dict[str, Any]:
        """What a copy on the host says."""
        return dict(json.loads(await self._host.get(self._path(name))))

    async def _copy(self, name: str, resource: str, prior: Prior) -> None:
        data = {"name": self._book.name, "resource": resource, "prior": prior}
        content = json.dumps(data, sort_keys=True).encode()
        copies = await self._copies()
        if not copies:
            await self._host.run("mkdir", "-p", "-m", "0700", self._directory)
        await self._host.put(self._path(name), content, mode=0o600)
        copies.add(name)

    def _name(self, resource: str) -> str:
        """What copies of a resource are called on the host."""
        return hashlib.sha256(f"{self._book.name}\n{resource}".encode()).hexdigest()[:32]

    def _path(self, name: str) -> str:
        return f"{self._directory}/{name}{_COPY}"

    @property
    def _directory(self) -> str:
        return f"{self._host.state_dir}/ledger"
