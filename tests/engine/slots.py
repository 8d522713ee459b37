"""Who held which slots and who waited for some, read off the account of a run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tests.engine.model import Tale
from tests.engine.world import POLL, Moment

from kubexm.plan.node import ANY_HOST
from kubexm.plan.policy import Pool
from kubexm.plan.records import AnyRecord, Quarantined, Unit, UnitDone, UnitIntended

INSTANT = 1e-6
"""Less than this lies between two moments only by rounding."""


@dataclass
class Place:
    """A unit that is under way: where, what it holds, and since when it wants to go on."""

    host: str
    holds: bool = False
    pools: bool = False
    """With its pools: those it holds, or those it waits for."""
    since: float | None = None


class Slots:
    """Replays the account moment by moment."""

    def __init__(self, tale: Tale) -> None:
        self.tale = tale
        self.places: dict[Unit, Place] = {}
        self._started: set[Unit] = set()
        self._over: set[Unit] = set()
        self._now = 0
        options = tale.scenario.options
        self._parallelism: int = options["parallelism"]
        self._per_host: int = options["per_host"]

    def replay(self) -> Iterator[tuple[Moment, bool]]:
        """Each moment, and whether time goes on after it."""
        for at, moment in enumerate(self.tale.trace):
            self._now = at
            if moment.node in self.tale.nodes:
                self._follow(self.tale.unit(moment), moment)
            elif moment.what == "recorded":
                self._note(moment.more)
            later = self.tale.trace[at + 1].at if at + 1 < len(self.tale.trace) else moment.at
            yield moment, later - moment.at > INSTANT

    def _follow(self, unit: Unit, moment: Moment) -> None:
        place = self.places.setdefault(unit, Place(moment.host))
        now = moment.at
        match moment.what:
            case "started":
                self._started.add(unit)
                self.places[unit] = Place(moment.host, holds=True)
                if not self._looks(unit):
                    self._wants_pools(unit, now)
            case "look":
                self.places[unit] = Place(moment.host, holds=True)
            case "looked" if place.holds:
                self._wants_pools(unit, now)
            case "enter":
                self.places[unit] = Place(moment.host, holds=True, pools=True)
            case "leave":
                # Whoever has nothing to look at first wants its pools at once.
                pools = moment.more == "polls" and not self._looks(unit)
                self.places[unit] = Place(moment.host, pools=pools, since=_back(moment))
            case "retried":
                self.places[unit] = Place(moment.host, since=now + moment.more)

    def _looks(self, unit: Unit) -> bool:
        """Whether it has a precheck."""
        return self.tale.role(unit) in ("plain", "probed")

    def _note(self, record: AnyRecord) -> None:
        """A unit that is over holds nothing, even if nobody may know yet that it is."""
        if isinstance(record, UnitDone):
            self._over.add((record.node, record.host))
            self.places[record.node, record.host] = Place(record.result.host_name)
        elif isinstance(record, UnitIntended):
            unit = record.node, record.host
            self.places[unit] = Place(self.places[unit].host, holds=True, pools=True)
        elif isinstance(record, Quarantined):
            self._started.discard((record.cause.node, ANY_HOST))  # looks for another host

    def _wants_pools(self, unit: Unit, now: float) -> None:
        self.places[unit] = Place(self.places[unit].host, pools=True, since=now)

    # The limits.

    def running(self) -> list[tuple[Unit, Place]]:
        return [(unit, place) for unit, place in self.places.items() if place.holds]

    def check_limits(self) -> None:
        """No limit of anything that runs now is exceeded."""
        running = self.running()
        assert len(running) <= self._parallelism
        for unit, place in running:
            limits = self.tale.nodes[unit[0]].limits
            here = sum(other.host == place.host for _, other in running)
            assert here <= min(self._per_host, limits.max_concurrency_per_host or here)
            same = sum(other[0] == unit[0] for other, _ in running)
            assert same <= (limits.global_concurrency_limit or same)
            for name in limits.pools if place.pools else ():
                assert self._used(name, place.host) <= self._pool(name).size

    def _pool(self, name: str) -> Pool:
        return self.tale.scenario.graph.pools[name]

    def _used(self, name: str, host: str) -> int:
        """How many hold a slot of this pool, on this host if each has its own."""
        alone = self._pool(name).scope == "host"
        return sum(
            name in self.tale.nodes[unit[0]].limits.pools
            and place.pools
            and (not alone or place.host == host)
            for unit, place in self.running()
        )

    # Who waits.

    def waiting(self, time: float) -> Iterator[tuple[Unit, Place]]:
        """Units that would do something if they had their slots."""
        for unit in self.tale.waits:
            if unit in self._over or unit not in self._started:
                continue
            place = self.places[unit]
            due = place.since is not None and place.since <= time + INSTANT
            if due and (not place.pools or self._has_its_values(unit)):
                yield unit, place
        for unit in self.tale.waits:
            if unit not in self._started | self._over and self._ready(unit):
                yield unit, Place(self._host(unit))

    def _ready(self, unit: Unit) -> bool:
        if self.tale.role(unit) == "minter" and not self._demanded(unit):
            return False
        hook = self.tale.nodes[unit[0]].hook
        if hook is not None and hook.moment == "always" and self.tale.scenario.policy == "rollback":
            return False  # its turn comes after the undo, and who knows when that is
        return self.tale.may_start(unit) <= self._now

    def _demanded(self, minter: Unit) -> bool:
        """Whether a unit that found something to do asks for what this one makes."""
        return any(
            minter in self.tale.providers(unit) and place.pools and place.since is not None
            for unit, place in self.places.items()
        )

    def _has_its_values(self, unit: Unit) -> bool:
        final = self.tale.final
        return all(final.get(other, self._now) < self._now for other in self.tale.providers(unit))

    def _host(self, unit: Unit) -> str:
        """Where it would run now."""
        node = self.tale.nodes[unit[0]]
        if not node.one_of:
            return unit[1]
        lost = {m.host for m in self.tale.trace[: self._now + 1] if m.what == "lost"}
        return next(host for host in node.hosts if host not in lost)

    def is_held_up(self, unit: Unit, place: Place) -> bool:
        """Whether one of the unit's own limits is full."""
        running = self.running()
        limits = self.tale.nodes[unit[0]].limits
        here = [other for other, at in running if at.host == place.host]
        caps = [self.tale.nodes[other[0]].limits.max_concurrency_per_host for other in here]
        own = [self._per_host, limits.max_concurrency_per_host, *caps]
        if len(running) >= self._parallelism or len(here) >= min(cap for cap in own if cap):
            return True
        same = sum(other[0] == unit[0] for other, _ in running)
        if limits.global_concurrency_limit and same >= limits.global_concurrency_limit:
            return True
        pools = limits.pools if place.pools else ()
        return any(self._used(name, place.host) >= self._pool(name).size for name in pools)


def _back(moment: Moment) -> float | None:
    """When a unit that has left its run wants to go on; None if it may be done."""
    if moment.more == "polls":
        return moment.at + POLL
    return moment.at if moment.more == "lost" else None
