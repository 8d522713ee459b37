"""What waits for the journal: nothing that builds on a record goes on before it is durable."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from kubexm.engine.journal import Journal
from kubexm.plan.records import AnyRecord

CROWD = 16
"""Where fewer units are under way, each goes on at once."""
_SHARE = 160e-6
_LONGEST = 8e-3


class Commits:
    """Records on their way to the disk, and what is to be done once they are there."""

    def __init__(self, journal: Journal, durable: int) -> None:
        self._journal = journal
        self._durable = durable
        self._waiting: deque[tuple[int, Callable[[], None]]] = deque()
        self._lost = False

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def append(self, record: AnyRecord, *, urgent: bool = False, under_way: int = 0) -> int:
        """Add a record; the number to wait for if something builds on it.

        The more units are under way, the less one of them loses by waiting a moment for others,
        and the more is won by one commit for all.
        """
        within = 0.0 if under_way < CROWD else min(under_way * _SHARE, _LONGEST)
        return self._journal.append(record, urgent=urgent, within=within)

    def when(self, number: int, then: Callable[[], None]) -> None:
        """Go on when the record of this number can't be lost any more, at once if so already."""
        if number <= self._durable:
            then()
        elif not self._lost:
            self._waiting.append((number, then))

    def reached(self, number: int) -> None:
        """Everything up to this number is durable."""
        self._durable = number

    def call_due(self) -> None:
        """Go on with what has waited long enough."""
        waiting = self._waiting
        while waiting and waiting[0][0] <= self._durable:
            waiting.popleft()[1]()

    def settle(self) -> bool:
        """Commit here and now, if something waits for that and it is quick."""
        return bool(self._waiting) and self._journal.settle()

    def lose(self) -> None:
        """The journal is broken: nothing will be durable any more."""
        self._lost = True
        self._waiting.clear()
