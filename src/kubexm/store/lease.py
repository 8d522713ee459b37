"""The right to write for a run: renewed by a thread of its own, fenced by a token."""

from __future__ import annotations

import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Self

from kubexm.db.database import Database
from kubexm.errors import LeaseLost, StoreError

LEASE = 15.0
"""Seconds without a sign of life after which another may take over."""

Lost = Callable[[LeaseLost], None]
Cancelled = Callable[[], None]

# Shares of a lease: often enough to hear of a cancel soon and to renew more than once, and
# early enough to have stopped before anybody else may start.
_POLL = 1 / 30
_RENEW = 1 / 3
_RESERVE = 1 / 5
_PATIENCE = 1 / 15
# A thread that waits for the interpreter insists only after this long without a chance. A busy
# event loop, which lets go and takes again every now and then, resets that each time: with the
# default of 5 ms, the renewal and the journal's writer were seen to starve for seconds.
_SWITCH = 0.0001
_LOOK = "SELECT cancel FROM lock WHERE name = :name AND token = :token AND run = :run"
_RELEASE = "UPDATE lock SET run = NULL WHERE name = :name AND token = :token AND run = :run"
_RENEW_UNTIL = (
    "UPDATE lock SET lease_until = :until WHERE name = :name AND token = :token AND run = :run"
)


def elapsed() -> float:
    """Seconds on a clock that never jumps, and goes on while the machine is suspended."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Lease:
    """Held by one process at a time; every new holder has a greater token."""

    def __init__(
        self,
        database: Database,
        *,
        name: str,
        run: str,
        number: int,
        token: int,
        seconds: float,
        clock: Callable[[], float],
    ) -> None:
        self.name = name
        self.run = run
        self.number = number
        self.token = token
        self.deadline = elapsed() + seconds
        """When the lease ends unless it is renewed, on the clock of `elapsed`."""
        self._database = database
        self._seconds = seconds
        self._clock = clock
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def keep(self, lost: Lost, cancelled: Cancelled) -> None:
        """Renew from now on; `lost` and `cancelled` are called once each, in another thread."""
        sys.setswitchinterval(min(sys.getswitchinterval(), _SWITCH))
        self._thread = threading.Thread(
            target=self._keep, args=(lost, cancelled), name="lease", daemon=True
        )
        self._thread.start()

    def release(self) -> None:
        """Let others have the name; what somebody else holds by now stays theirs."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        # Where that can't be written, the lock is free as soon as this process has ended.
        with suppress(StoreError), self._database.writing() as connection:
            connection.execute(_RELEASE, self._own)

    def check(self, connection: sqlite3.Connection) -> None:
        """Raise `LeaseLost` unless we still hold it; to be called in a write transaction."""
        if connection.execute(_LOOK, self._own).fetchone() is None:
            raise taken_over(self.run)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()

    def _keep(self, lost: Lost, cancelled: Cancelled) -> None:
        told = False
        # Connections of its own, and less patience than there is time.
        with self._database.twin(busy=self._seconds * _PATIENCE) as database:
            while not self._stop.wait(min(0.5, self._seconds * _POLL)):
                try:
                    cancel = self._touch(database)
                except LeaseLost as error:
                    lost(error)
                    return
                except StoreError as error:
                    if self._remaining() > self._seconds * _RESERVE:
                        continue
                    lost(_not_renewed(self.run, error))
                    return
                if cancel and not told:
                    told = True
                    cancelled()

    def _touch(self, database: Database) -> bool:
        """Renew if it is time to; whether somebody asked for a cancel."""
        if self._remaining() <= self._seconds * (1 - _RENEW):
            self._renew(database)
        with database.reading() as connection:
            row = connection.execute(_LOOK, self._own).fetchone()
        if row is None:
            raise taken_over(self.run)
        return bool(row["cancel"])

    def _renew(self, database: Database) -> None:
        # A holder that was frozen for longer than its lease goes on if nobody took over.
        now, until = elapsed(), self._clock() + self._seconds
        with database.writing() as connection:
            if not connection.execute(_RENEW_UNTIL, {"until": until, **self._own}).rowcount:
                raise taken_over(self.run)
        self.deadline = now + self._seconds

    def _remaining(self) -> float:
        return self.deadline - elapsed()

    @property
    def _own(self) -> Mapping[str, str | int]:
        """What tells our row from that of an earlier or later holder."""
        return {"name": self.name, "token": self.token, "run": self.number}


def taken_over(run: str) -> LeaseLost:
    """Somebody else holds the name by now."""
    return LeaseLost(
        f"task {run} was taken over by another process, this one may not go on",
        hint=f"see how it goes on there: kubexm task show {run}",
    )


def _not_renewed(run: str, error: StoreError) -> LeaseLost:
    return LeaseLost(
        f"the lease of task {run} could not be renewed in time: {error}",
        hint=f"{error.hint}; then go on with: kubexm task resume {run}",
    )
