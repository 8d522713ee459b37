"""The journal on SQLite: what the engine appends becomes durable in groups, in order.

Records are collected in the loop's thread and handed to one writer thread, which commits all
that has come in the meantime at once. When the engine has nothing else to do, `settle` commits
in the loop's thread instead: the way to another thread and back takes half as long again.
"""

from __future__ import annotations

import asyncio
import math
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any

import msgspec

from kubexm.db.database import Database
from kubexm.db.failures import explain, explained, is_busy
from kubexm.db.wal import make_room
from kubexm.errors import LeaseLost, StoreUnusable
from kubexm.plan.events import LogLine
from kubexm.plan.records import AnyRecord, LedgerDropped, LedgerEntry, Turned, UnitDone
from kubexm.store.codec import Seals, encode, encode_line
from kubexm.store.lease import Lease, elapsed
from kubexm.store.writer import (
    DROP_PRIOR,
    KEEP_PRIOR,
    TURN_BACK,
    Batch,
    FencedWriter,
    Statement,
)

RIDE = 0.25
"""Seconds that a record which nothing waits for may wait for the next commit."""

LINES = 100
"""So many log lines are written without waiting longer."""

WAITING_LINES = 20_000
"""With so many not yet written, log lines are left out and counted."""

SLOW = 0.002
"""Where commits take longer than this, in seconds, the loop does not wait for them."""

REST = 10
"""Commits that need not come at once leave so many times as long to other work as they take."""

_WITH_ASIDE = (LedgerEntry, LedgerDropped, Turned)


class SqlJournal:
    """Implements the engine's journal; only to be called in the thread of its loop."""

    def __init__(
        self,
        database: Database,
        lease: Lease,
        seals: Seals,
        *,
        ride: float = RIDE,
        slow: float = SLOW,
        rest: float = REST,
    ) -> None:
        self._database = database
        self._lease = lease
        self._seals = seals
        self._ride = ride
        self._slow = slow
        self._rest = rest
        self._batch = Batch(0, 0)
        self._reported = 0
        self._lines_written = 0
        self._lines_left_out = 0
        self._called = False
        self._timer: asyncio.TimerHandle | None = None
        self._settling = False
        self._broken_by: BaseException | None = None
        self._thread: threading.Thread | None = None
        # Shared with the writer thread. Only the loop counts what it handed over, only the
        # writer what it is done with; while both are equal the writer touches nothing.
        self._queue: SimpleQueue[Batch | None] = SimpleQueue()
        self._handed = 0
        self._handed_at = -math.inf
        self._done = 0
        self._failure: BaseException | None = None
        self._pace = 0.0

    def start(
        self, durable: Callable[[int], None], broken: Callable[[BaseException], None]
    ) -> None:
        """Begin; both callbacks come in the loop's thread, `broken` at most once."""
        self._loop = asyncio.get_running_loop()
        self._durable, self._broken = durable, broken
        if self._broken_by is not None:
            self._loop.call_soon(broken, self._broken_by)
        self._closed = asyncio.Event()
        # No patience in the driver: the loop must not wait, and the writer has its own.
        self._writer = FencedWriter(self._database.driver(busy=0), self._lease)
        self._reported, self._lines_written = self._last_numbers()
        self._batch = Batch(self._reported, self._lines_written)
        make_room(self._writer.connection, self._database.path)
        self._thread = threading.Thread(target=self._write, name="journal", daemon=True)
        self._thread.start()

    def append(self, record: AnyRecord, *, urgent: bool, within: float = 0.0) -> int:
        """Add a record; an urgent one starts a commit, another rides along within 250 ms.

        `within`: for how many seconds after the last commit an urgent one may wait for others.

        Once the journal is broken, records are dropped and their numbers never reported.
        """
        batch = self._batch
        if self._broken_by is not None:
            batch.last += 1
            return batch.last
        if isinstance(record, UnitDone):
            if record.values:
                record = self._seals.sealed(self._lease.run, record)
        elif isinstance(record, _WITH_ASIDE):
            batch.asides.append(self._aside(record))
        batch.records.append(encode(record))
        batch.last = number = batch.last + 1
        if not urgent:
            self._hand_over_within(self._ride)
        elif (wait := self._pause(within)) > 0.0:
            self._hand_over_within(wait)
        else:
            self._hand_over_soon()
        return number

    def log(self, line: LogLine) -> None:
        """Add a line to the run's log, written with the next hundred or within 250 ms."""
        if self._broken_by is not None:
            return
        if self._batch.last_line - self._lines_written >= WAITING_LINES:
            self._lines_left_out += 1
            return
        if self._lines_left_out:
            text = f"{self._lines_left_out} lines were left out: the disk was too slow"
            self._lines_left_out = 0
            self._add_line(msgspec.structs.replace(line, stream="kubexm", text=text))
        self._add_line(line)
        if len(self._batch.lines) >= LINES:
            self._hand_over_soon()
        else:
            self._hand_over_within(self._ride)

    def settle(self) -> bool:
        """Commit here and now if that is quick; whether all that was appended is durable."""
        if self._settling:
            return False  # called from `durable`: the call that is under way goes on
        self._settling = True
        try:
            while self._batch.records:
                if not (self._may_commit_here() and self._commit_here()):
                    return False
        finally:
            self._settling = False
        return self._reported == self._batch.last

    def abandon(self, error: LeaseLost) -> None:
        """Append nothing more, though nothing was refused yet: the right to is lost or ends."""
        self._fail(error)

    async def close(self) -> None:
        """Make everything durable that was appended; if that fails, `broken` has been called."""
        if self._thread is None:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._hand_over()
        self._queue.put(None)
        await self._closed.wait()
        self._thread.join()

    # --- in the loop's thread -------------------------------------------------------------

    def _last_numbers(self) -> tuple[int, int]:
        try:
            with explained(self._database.path):
                return self._writer.last_record(), self._writer.last_line()
        except StoreUnusable:
            self._writer.close()
            raise

    def _aside(self, record: LedgerEntry | LedgerDropped | Turned) -> Statement:
        """What has to be written elsewhere together with the record."""
        lease = self._lease
        if isinstance(record, LedgerEntry):
            what = (lease.name, record.host, record.resource, record.at, lease.number)
            return KEEP_PRIOR, (*what, encode(record.first or record.prior))
        if isinstance(record, LedgerDropped):
            return DROP_PRIOR, (lease.name, record.host, record.resource)
        return TURN_BACK, (lease.number,)

    def _add_line(self, line: LogLine) -> None:
        self._batch.lines.append(encode_line(line))
        self._batch.last_line += 1

    def _hand_over_soon(self) -> None:
        # Not at once: more may come in this turn of the loop, or `settle` may do it all.
        if not self._called:
            self._called = True
            self._loop.call_soon(self._hand_over_in_turn)

    def _pause(self, within: float) -> float:
        """How long to wait for others, so that not much of the time goes into commits."""
        if not within:
            return 0.0
        return self._handed_at + min(within, self._rest * self._pace) - self._loop.time()

    def _hand_over_within(self, seconds: float) -> None:
        due = self._loop.time() + seconds
        if self._timer is not None:
            if self._timer.when() <= due:
                return
            self._timer.cancel()
        self._timer = self._loop.call_at(due, self._hand_over_after_ride)

    def _hand_over_in_turn(self) -> None:
        self._called = False
        self._hand_over()

    def _hand_over_after_ride(self) -> None:
        self._timer = None
        self._hand_over()

    def _hand_over(self) -> None:
        if self._batch:
            self._handed_at = self._loop.time()
            batch = self._batch
            self._batch = Batch(batch.last, batch.last_line)
            self._give(batch)

    def _give(self, batch: Batch) -> None:
        self._handed += 1
        self._queue.put(batch)

    def _may_commit_here(self) -> bool:
        idle = self._handed == self._done
        return idle and self._failure is None and self._pace <= self._slow

    def _commit_here(self) -> bool:
        batch = self._batch
        # Nobody waits for log lines: they stay for the writer.
        taken = Batch(batch.last, self._lines_written)
        taken.records, batch.records = batch.records, taken.records
        taken.asides, batch.asides = batch.asides, taken.asides
        try:
            self._timed_write(taken)
        except sqlite3.Error as error:
            if is_busy(error):
                self._give(taken)
            else:
                self._fail(explain(error, self._database.path))
            return False
        except LeaseLost as error:
            self._fail(error)
            return False
        self._report(taken.last, self._lines_written)
        return True

    def _report(self, last: int, last_line: int) -> None:
        self._lines_written = last_line
        # What `settle` has committed since may have been reported already.
        if last > self._reported and self._broken_by is None:
            self._reported = last
            self._durable(last)

    def _fail(self, error: BaseException) -> None:
        if self._broken_by is None:
            self._broken_by = error
            self._batch = Batch(self._batch.last, self._batch.last_line)
            if self._thread is not None:
                self._broken(error)

    # --- in the writer's thread, or in the loop's while the writer is idle ------------------

    def _timed_write(self, batch: Batch) -> None:
        began = time.perf_counter()
        self._writer.write(batch)
        self._pace += (time.perf_counter() - began - self._pace) / 8

    # --- in the writer's thread -----------------------------------------------------------

    def _write(self) -> None:
        more = True
        while more:
            batch, count, more = self._receive()
            if batch and self._failure is None:
                self._failure = self._commit(batch)
            self._done += count
            if self._failure is not None:
                self._post(self._fail, self._failure)
            elif batch:
                self._post(self._report, batch.last, batch.last_line)
        self._writer.close()
        self._post(self._closed.set)

    def _receive(self) -> tuple[Batch, int, bool]:
        """All that waits, how many batches that were, and whether there may be more."""
        all_of_it, count = Batch(0, 0), 0
        while True:
            batch = self._queue.get()
            if batch is None:
                return all_of_it, count, False
            all_of_it.extend(batch)
            count += 1
            if self._queue.empty():
                return all_of_it, count, True

    def _commit(self, batch: Batch) -> BaseException | None:
        """Write until it is done or can't be; why not."""
        try:
            pause = 0.0005
            while (error := self._try(batch)) is not None:
                if not is_busy(error):
                    return explain(error, self._database.path)
                if elapsed() > self._lease.deadline:
                    return self._too_late(error)
                time.sleep(pause)
                pause = min(2 * pause, 0.05)
        except Exception as error:  # noqa: BLE001 a dead writer would leave the engine waiting
            return error
        return None

    def _try(self, batch: Batch) -> sqlite3.Error | None:
        try:
            self._timed_write(batch)
        except sqlite3.Error as error:
            return error
        return None

    def _too_late(self, error: sqlite3.Error) -> LeaseLost:
        cause = explain(error, self._database.path)
        return LeaseLost(
            f"task {self._lease.run} could not be recorded until its lease ran out: {cause}",
            hint=f"{cause.hint}; then go on with: kubexm task resume {self._lease.run}",
        )

    def _post(self, call: Callable[..., None], *arguments: Any) -> None:
        # A loop that is closed has nobody left to tell.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(call, *arguments)
