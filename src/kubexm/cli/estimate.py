"""How long a run will still take: by what its nodes took before, else by how many are left."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import msgspec

LEAST = 0.001
"""A unit is never for nothing, however little time was measured for it."""
TELLING = 2
"""So many units without known times have to end before they say something about the others."""


class Estimate(msgspec.Struct):
    """Weighs units by the seconds that their node took in earlier runs."""

    seconds: Mapping[str, float] = msgspec.field(default_factory=dict)
    _units: dict[str, int] = msgspec.field(default_factory=dict)
    _usual: float = 1.0
    _whole: float = 0.0
    _ended: float = 0.0
    _here: int = 0
    _worked: float = 0.0

    def add(self, node: str, units: int) -> None:
        """There are units more to come."""
        self._units[node] = self._units.get(node, 0) + units
        self._whole += units * self.weight(node)

    def learn(self, seconds: Mapping[str, float]) -> None:
        """Take these times as what nodes usually take; others take the mean of them."""
        known = [seconds[node] for node in self._units if node in seconds]
        self.seconds = seconds
        self._usual = max(sum(known) / len(known), LEAST) if known else 1.0
        self._whole = sum(units * self.weight(node) for node, units in self._units.items())

    def weight(self, node: str) -> float:
        """What one unit of a node counts for."""
        return max(self.seconds.get(node, self._usual), LEAST)

    def end(self, node: str, *, replayed: bool) -> None:
        """One unit less; a replayed one took none of this run's time."""
        self._ended += self.weight(node)
        if not replayed:
            self._here += 1
            self._worked += self.weight(node)

    def left(self, elapsed: float, running: Collection[tuple[str, float]]) -> float | None:
        """Seconds that are left if the rest goes on as it went so far; `running` since when."""
        under_way = sum(
            min(seconds, self.weight(node)) for node, seconds in running if node in self.seconds
        )
        worked = self._worked + under_way
        if not worked or (self._here < TELLING and not under_way):
            return None
        return elapsed / worked * max(self._whole - self._ended - under_way, 0.0)
