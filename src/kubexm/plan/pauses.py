"""Times in which nobody worked on a run: from its end or its death to a resume or a retry."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from itertools import accumulate

from kubexm.plan.history import Span

LEAST = 1.0
"""The engine leaves no run that has something to do without a unit for so many seconds."""


class Pauses:
    """Takes the pauses between some busy times out of a clock."""

    def __init__(self, busy: Iterable[Span] = ()) -> None:
        found = list(_gaps(busy))
        self._ends = [gap.end for gap in found]
        self._before = [0.0, *accumulate(gap.end - gap.start for gap in found)]

    def worked(self, moment: float) -> float:
        """The moment on a clock that stands still in pauses."""
        return moment - self._before[bisect_right(self._ends, moment)]

    def without(self, span: Span) -> Span:
        """The same for both ends of a span."""
        return Span(self.worked(span.start), self.worked(span.end))


def _gaps(busy: Iterable[Span]) -> Iterable[Span]:
    first, *others = sorted(busy) or [Span(0.0, 0.0)]
    end = first.end
    for span in others:
        if span.start - end > LEAST:
            yield Span(end, span.start)
        end = max(end, span.end)
