"""The port through which the engine makes its progress durable.

Records are appended in order and committed in groups. A record is durable when the journal
has called back with its number or a greater one; then, and not before, the engine starts what
depends on it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from kubexm.plan.events import LogLine
from kubexm.plan.records import AnyRecord

Durable = Callable[[int], None]
Broken = Callable[[BaseException], None]


class Journal(Protocol):
    """Lossless, ordered, awaited; called from the loop's thread only."""

    def start(self, durable: Durable, broken: Broken) -> None:
        """Begin; both callbacks come in the loop's thread."""

    def append(self, record: AnyRecord, *, urgent: bool, within: float = 0.0) -> int:
        """Add a record; an urgent one starts a commit, another rides along within 250 ms.

        `within`: for how many seconds after the last commit an urgent one may wait for others.
        """

    def settle(self) -> bool:
        """Commit here and now if that is quick: the caller has nothing else to do."""

    def log(self, line: LogLine) -> None:
        """Keep a line of output; lines are written in batches and nothing waits for them."""

    async def close(self) -> None:
        """Make everything durable that was appended."""


class MemoryJournal:
    """Keeps nothing but the records, durable at once; for dry runs and tests."""

    def __init__(self) -> None:
        self.records: list[AnyRecord] = []
        self._durable: Durable = lambda number: None

    def start(self, durable: Durable, broken: Broken) -> None:
        self._durable = durable

    def append(self, record: AnyRecord, *, urgent: bool, within: float = 0.0) -> int:
        self.records.append(record)
        number = len(self.records)
        self._durable(number)
        return number

    def settle(self) -> bool:
        return False

    def log(self, line: LogLine) -> None:
        pass

    async def close(self) -> None:
        pass
