"""The ledger of one host: prior states, kept in the store and as a copy on the host itself."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from kubexm.plan.records import LedgerEntry
from kubexm.runner.host import Host


class HostLedger:
    """What this host's resources were before anything of ours changed them."""

    def __init__(
        self,
        host: Host,
        known: dict[str, Mapping[str, Any]],
        prepared: set[str],
        remember: Callable[[LedgerEntry], Awaitable[None]],
        now: Callable[[], float],
    ) -> None:
        self._host = host
        self._known = known
        self._prepared = prepared  # directories on this host that are known to be there
        self._remember = remember
        self._now = now

    async def remember(self, resource: str, prior: Mapping[str, Any]) -> None:
        """Keep the prior state, durably, unless one is known already."""
        if resource in self._known:
            return
        entry = LedgerEntry(
            at=self._now(), host=self._host.name, resource=resource, prior=dict(prior)
        )
        # The copy first: what the store knows is not looked at again, so a process that is
        # killed in between must not leave the host without it.
        await self._copy(entry)
        await self._remember(entry)
        self._known[resource] = entry.prior

    async def _copy(self, entry: LedgerEntry) -> None:
        name = hashlib.sha256(entry.resource.encode()).hexdigest()[:32]
        content = json.dumps({"resource": entry.resource, "prior": entry.prior}, sort_keys=True)
        directory = f"{self._host.state_dir}/ledger"
        if directory not in self._prepared:
            await self._host.run("mkdir", "-p", "-m", "0700", directory)
            self._prepared.add(directory)
        await self._host.put(f"{directory}/{name}.json", content.encode(), mode=0o600)

    def recall(self, resource: str) -> Mapping[str, Any] | None:
        """The state before the first change, or None if we never changed it."""
        return self._known.get(resource)
