"""The store: every run with its documents, records, log, lock, and what was learned from it."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from kubexm.db.database import Database
from kubexm.db.schema import open_database
from kubexm.plan.history import Span
from kubexm.plan.records import (
    AnyRecord,
    LedgerEntry,
    LifeBegan,
    LifeEnded,
    Reopened,
    RunState,
)
from kubexm.plan.result import Status
from kubexm.store import facts, history, lock, runs
from kubexm.store.codec import Seals, StoredLine
from kubexm.store.journal import SqlJournal
from kubexm.store.lease import LEASE, Lease
from kubexm.store.lock import Holder
from kubexm.store.runs import Documents, Run

Clock = Callable[[], float]


class Store:
    """All runs in one database file; a call returns when its effect is durable."""

    def __init__(self, database: Database, *, lease: float = LEASE, clock: Clock = time.time):
        self._database = database
        self._seals = Seals(database.path)
        self._lease = lease
        self._clock = clock

    @classmethod
    def open(cls, path: Path, *, lease: float = LEASE, clock: Clock = time.time) -> Store:
        """The store in this file, which is made if it is not there."""
        return cls(open_database(path), lease=lease, clock=clock)

    def close(self) -> None:
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # --- runs -----------------------------------------------------------------------------

    def create_run(
        self, name: str, documents: Documents, *, selected: bool = False, world: str | None = None
    ) -> Run:
        """Add a run that has not begun; `name` is what it will have to itself while it runs."""
        now, encoded = self._clock(), runs.encoded(documents)
        with self._database.writing() as connection:
            id = runs.create(
                connection, encoded, name=name, selected=selected, world=world, now=now
            )
            return runs.get(connection, id, now)

    def start_run(
        self, name: str, documents: Documents, *, selected: bool = False, world: str | None = None
    ) -> tuple[Run, Lease]:
        """Add a run and take the lock of its name; a name that is held leaves no run behind."""
        now, encoded = self._clock(), runs.encoded(documents)
        with self._database.writing() as connection:
            lock.refuse_if_held(connection, name, now)
            id = runs.create(
                connection, encoded, name=name, selected=selected, world=world, now=now
            )
            number, token = lock.take(connection, name, id, seconds=self._lease, now=now)
            created = runs.get(connection, id, now)
        lease = Lease(
            self._database,
            name=name,
            run=id,
            number=number,
            token=token,
            seconds=self._lease,
            clock=self._clock,
        )
        return created, lease

    def run(self, id: str) -> Run:
        """The run with this id, or `UnknownTask`."""
        with self._database.reading() as connection:
            return runs.get(connection, id, self._clock())

    def runs(self, name: str | None = None, *, limit: int = 100) -> list[Run]:
        """The latest runs, newest first, of one name or of all."""
        with self._database.reading() as connection:
            return runs.newest(connection, name, limit, self._clock())

    def documents(self, id: str) -> Documents:
        """What the run was made from."""
        with self._database.reading() as connection:
            return runs.documents(connection, id)

    def options(self, id: str) -> bytes:
        """How the run was to be carried out, without the rest of its documents."""
        with self._database.reading() as connection:
            return runs.options(connection, id)

    def state(self, id: str) -> RunState:
        """What is known of the run, secret values included: where a resume goes on."""
        with self._database.reading() as connection:
            found = history.records(connection, runs.number(connection, id), id)
            return RunState.fold(self._seals.unsealed(id, record) for _seq, record in found)

    def lives(self, run: Run) -> list[Span]:
        """The times in which somebody worked on the run; one that is at it does so until now."""
        if run.started is None:
            return []
        with self._database.reading() as connection:
            number = runs.number(connection, run.id)
            if run.ended is not None and history.has_one_life(connection, number):
                return [Span(run.started.timestamp(), run.ended.timestamp())]
            found = history.lives(connection, number, run.id)
        if found and run.ended is None and run.holder is not None:
            found[-1] = Span(found[-1].start, self._clock())
        return found

    def later_change(self, id: str) -> Run | None:
        """The newest later run of the same name that changed something, or may have."""
        with self._database.reading() as connection:
            for later in runs.later(connection, id):
                number = runs.number(connection, later)
                if history.may_have_changed(history.records(connection, number, later)):
                    return runs.get(connection, later, self._clock())
        return None

    # --- the right to work on a run -------------------------------------------------------

    def acquire(self, id: str) -> Lease:
        """Take the lock of the run's name, or raise `LockHeld` with who has it."""
        name = self.run(id).name
        return lock.acquire(self._database, name, id, seconds=self._lease, clock=self._clock)

    def request_cancel(self, id: str) -> Holder | None:
        """Tell the process that works on this run to stop; None if there is none."""
        name = self.run(id).name
        return lock.request_cancel(self._database, name, id, self._clock())

    def journal(self, lease: Lease) -> SqlJournal:
        """Where the engine keeps its progress while the lease is held."""
        return SqlJournal(self._database, lease, self._seals)

    def begin(self, lease: Lease) -> None:
        """The run is being worked on, for the first time or again."""
        now = self._clock()
        with self._database.writing() as connection:
            runs.begin(connection, lease, now)
            history.append(connection, lease.number, lease.token, LifeBegan(at=now))

    def finish(
        self, lease: Lease, status: Status, *, message: str = "", degraded: bool = False
    ) -> None:
        """The run has ended."""
        now = self._clock()
        with self._database.writing() as connection:
            runs.end(connection, lease, now, status=status, message=message, degraded=degraded)
            history.append(connection, lease.number, lease.token, LifeEnded(at=now))

    def reopen(self, lease: Lease, reopened: Reopened, documents: Documents | None = None) -> None:
        """Work on an ended run again, perhaps by a corrected plan: all of that or nothing."""
        encoded = None if documents is None else runs.encoded(documents)
        with self._database.writing() as connection:
            runs.begin(connection, lease, self._clock())
            runs.turn(connection, lease, "forward")
            history.append(connection, lease.number, lease.token, reopened)
            if encoded is not None:
                runs.replace_documents(connection, lease, encoded)

    # --- what happened, and what is known from it -------------------------------------------

    def records(self, id: str, *, after: int = 0) -> list[tuple[int, AnyRecord]]:
        """The records after this number, with their numbers; secret values stay sealed."""
        with self._database.reading() as connection:
            number = runs.number(connection, id)
            return list(history.records(connection, number, id, after))

    def log_lines(
        self,
        id: str,
        *,
        after: int = 0,
        limit: int = 10_000,
        node: str | None = None,
        host: str | None = None,
    ) -> list[StoredLine]:
        """Log lines after this number, of one node or host or of all."""
        with self._database.reading() as connection:
            number = runs.number(connection, id)
            return history.lines(connection, number, after=after, limit=limit, node=node, host=host)

    def ledger(self, name: str) -> list[LedgerEntry]:
        """What each resource was like before the first change by a run of this name."""
        with self._database.reading() as connection:
            return history.prior_states(connection, name)

    def in_ledger(self, name: str) -> dict[str, frozenset[str]]:
        """By host the resources that the ledger of this name has an entry of."""
        with self._database.reading() as connection:
            return history.known_resources(connection, name)

    def makers(self, name: str) -> dict[str, dict[str, str]]:
        """By host and resource the run that was the first of this name to change it."""
        with self._database.reading() as connection:
            return history.makers(connection, name)

    def forget(self, lease: Lease, hosts: Collection[str]) -> None:
        """Drop these hosts from the ledger, if the lease still holds: they are gone for good."""
        with self._database.writing() as connection:
            lease.check(connection)
            history.forget(connection, lease.name, hosts)

    def durations(self, name: str) -> dict[str, float]:
        """How long the nodes of this name usually take, in seconds."""
        with self._database.reading() as connection:
            return history.durations(connection, name)

    def learn_durations(self, name: str, seconds: Mapping[str, float]) -> None:
        """Take into account how long these nodes took this time."""
        with self._database.writing() as connection:
            history.learn(connection, name, seconds)

    def keep_facts(self, lease: Lease, told: Mapping[str, Mapping[str, Any]]) -> None:
        """Keep what these hosts told, if the lease still holds."""
        with self._database.writing() as connection:
            lease.check(connection)
            facts.keep(connection, lease.name, told, self._clock())
