"""Slots: all that a unit needs are taken at once or none, and it waits at one that is full.

Every waiting unit stands at a resource that is full, so a freed resource alone decides who is
looked at again: nothing ready waits while its slots are free.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping

from kubexm.engine.topology import Unit
from kubexm.plan.policy import Pool

WITHOUT_POOLS, WITH_POOLS = 1, 2


Queue = list[tuple[float, int, Unit]]
"""A heap of units, the one with the longest remaining path first."""


def push(queue: Queue, unit: Unit) -> None:
    """Add a unit; plain numbers compare many times faster than units would."""
    heapq.heappush(queue, (-unit.rank, unit.serial, unit))


def pop(queue: Queue) -> Unit:
    """Take the most urgent unit out."""
    return heapq.heappop(queue)[2]


class Resource:
    """A number of slots, and the units that wait for one, most urgent first."""

    __slots__ = ("free", "queue")

    def __init__(self, size: int) -> None:
        self.free = size
        self.queue: Queue = []

    def has_room(self, unit: Unit) -> bool:
        return self.free > 0

    def take(self, unit: Unit) -> None:
        self.free -= 1

    def give_back(self, unit: Unit) -> bool:
        """One slot more; whether somebody waits for it."""
        self.free += 1
        return bool(self.queue)

    def park(self, unit: Unit) -> None:
        push(self.queue, unit)

    def next_candidate(self) -> Unit | None:
        """The most urgent unit that might start now, taken out of the queue."""
        return pop(self.queue) if self.queue and self.free > 0 else None


class HostSlots:
    """The slots of one host; a running unit may lower the limit for all of them."""

    __slots__ = ("_caps", "_default", "_queues", "_running")

    def __init__(self, default: int) -> None:
        self._default = default
        self._running = 0
        self._caps: dict[int, int] = {}
        self._queues: dict[int, Queue] = {}

    def has_room(self, unit: Unit) -> bool:
        return self._room_for(unit.node.spec.limits.max_concurrency_per_host)

    def _room_for(self, cap: int) -> bool:
        limit = min(self._default, *self._caps) if self._caps else self._default
        return self._running < (cap if 0 < cap < limit else limit)

    def take(self, unit: Unit) -> None:
        self._running += 1
        if cap := unit.node.spec.limits.max_concurrency_per_host:
            self._caps[cap] = self._caps.get(cap, 0) + 1

    def give_back(self, unit: Unit) -> bool:
        """One slot more; whether somebody waits for it."""
        self._running -= 1
        if cap := unit.node.spec.limits.max_concurrency_per_host:
            self._caps[cap] -= 1
            if not self._caps[cap]:
                del self._caps[cap]
        return bool(self._queues) and any(self._queues.values())

    def park(self, unit: Unit) -> None:
        cap = unit.node.spec.limits.max_concurrency_per_host
        push(self._queues.setdefault(cap, []), unit)

    def next_candidate(self) -> Unit | None:
        """The most urgent unit of those whose own limit has room."""
        queues = [queue for cap, queue in self._queues.items() if queue and self._room_for(cap)]
        if not queues:
            return None
        return pop(queues[0] if len(queues) == 1 else min(queues, key=_urgency))


def _urgency(queue: Queue) -> tuple[float, int]:
    return queue[0][:2]


AnyResource = Resource | HostSlots


class Limits:
    """All resources of a run."""

    def __init__(self, parallelism: int, per_host: int, pools: Mapping[str, Pool]) -> None:
        self._run = Resource(parallelism)
        self._per_host = per_host
        self._hosts: dict[str, HostSlots] = {}
        self._nodes: dict[str, Resource] = {}
        self._pools = pools
        self._pool_slots: dict[tuple[str, str], Resource] = {}

    def try_take(self, unit: Unit, wanted: int) -> bool:
        """Take every slot the unit needs, or park it at the first that is full."""
        resources = self._of(unit, wanted)
        for resource in resources:
            if not resource.has_room(unit):
                resource.park(unit)
                return False
        for resource in resources:
            resource.take(unit)
        unit.slots = wanted
        return True

    def try_add_pools(self, unit: Unit) -> bool:
        """Take the pools too, beside the slots it holds; nothing is parked if that fails."""
        pools = self._pools_of(unit)
        if not all(pool.has_room(unit) for pool in pools):
            return False
        for pool in pools:
            pool.take(unit)
        unit.slots = WITH_POOLS
        return True

    def release(self, unit: Unit) -> list[AnyResource]:
        """Give everything back; answers where others wait, who may start now."""
        resources = self._of(unit, unit.slots)
        unit.slots = 0
        return [resource for resource in resources if resource.give_back(unit)]

    def release_pools(self, unit: Unit) -> list[AnyResource]:
        """Give the pools back and keep the rest; answers where others wait."""
        unit.slots = WITHOUT_POOLS
        return [pool for pool in self._pools_of(unit) if pool.give_back(unit)]

    def _of(self, unit: Unit, wanted: int) -> list[AnyResource]:
        host = self._hosts.get(unit.host)
        if host is None:
            host = self._hosts[unit.host] = HostSlots(self._per_host)
        resources: list[AnyResource] = [host, self._run]
        limits = unit.node.spec.limits
        if limits.global_concurrency_limit:
            resources.append(self._node(unit.node.id, limits.global_concurrency_limit))
        if wanted == WITH_POOLS and limits.pools:
            resources.extend(self._pools_of(unit))
        return resources

    def _node(self, id: str, size: int) -> Resource:
        if (resource := self._nodes.get(id)) is None:
            resource = self._nodes[id] = Resource(size)
        return resource

    def _pools_of(self, unit: Unit) -> list[Resource]:
        return [self._pool(name, unit.host) for name in unit.node.spec.limits.pools]

    def _pool(self, name: str, host: str) -> Resource:
        pool = self._pools[name]
        key = (name, host if pool.scope == "host" else "")
        if (resource := self._pool_slots.get(key)) is None:
            resource = self._pool_slots[key] = Resource(pool.size)
        return resource
