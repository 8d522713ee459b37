"""A clock that stands still while nobody works on a run: from its end or death to a resume."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from itertools import accumulate

from kubexm.plan.history import Span


class WorkClock:
    """Counts the seconds that were worked in the lives of a run, one after the other."""

    def __init__(self, lives: Iterable[Span]) -> None:
        self._lives = sorted(lives)
        self._starts = [life.start for life in self._lives]
        # Wall clocks are set now and then: no life is shorter than nothing.
        lengths = (max(0.0, life.end - life.start) for life in self._lives)
        self._before = [*accumulate(lengths, initial=0.0)]

    @property
    def total(self) -> float:
        return self._before[-1]

    def worked(self, moment: float) -> float:
        """What had been worked by a moment."""
        at = bisect_right(self._starts, moment) - 1
        if at < 0:
            return 0.0
        return min(self._before[at] + moment - self._starts[at], self._before[at + 1])

    def within(self, span: Span) -> Span:
        """The same for both ends of a span."""
        return Span(self.worked(span.start), self.worked(span.end))

    def beginning(self, worked: float) -> float:
        """When the life began that this moment of the clock is in."""
        return self._before[bisect_right(self._before, worked, hi=len(self._lives)) - 1]
