"""What the tests of the store have in common: records, and a journal that is listened to."""

from __future__ import annotations

import asyncio
import math
import sqlite3
from pathlib import Path

from kubexm.db.database import Database
from kubexm.engine.journal import Journal
from kubexm.plan import ExecutionGraph, ExecutionNode, StepSpec, build
from kubexm.plan.events import ProducedValue
from kubexm.plan.records import UnitDone
from kubexm.plan.result import HostResult
from kubexm.store import Documents, Lease, Run, SqlJournal, Store
from kubexm.store.codec import Seals


def graph_of(node: str) -> ExecutionGraph:
    """A graph of one node on one host."""
    return build("demo", [ExecutionNode(node, node, StepSpec("assert"), ("h1",))], hosts=("h1",))


DOCUMENTS = Documents(graph_of("demo/a"), spec=b'{"a":1}', options=b'{"parallelism":1}')


def done(host: str = "h1", *, node: str = "demo/a", **rest: object) -> UnitDone:
    """A unit that succeeded."""
    result = HostResult(host, "Success", changed=True)
    return UnitDone(at=1.0, node=node, host=host, result=result, **rest)  # type: ignore[arg-type]


def secret(value: object) -> ProducedValue:
    return ProducedValue(key="token", host="", value=value, secret=True)


def begun(store: Store, name: str = "demo") -> tuple[Run, Lease]:
    """A new run, and the right to work on it."""
    run = store.create_run(name, DOCUMENTS)
    return run, store.acquire(run.id)


def journal(
    path: Path, lease: Lease, *, ride: float = 3600, slow: float = math.inf, rest: float = 0.0
) -> SqlJournal:
    """A journal whose doings do not depend on how fast this machine is."""
    return SqlJournal(Database(path), lease, Seals(path), ride=ride, slow=slow, rest=rest)


def stored_numbers(path: Path) -> list[int]:
    """The numbers of all records in the file, read by another connection."""
    connection = sqlite3.connect(path)
    try:
        return [
            row[0]
            for row in connection.execute("SELECT place % 4294967296 FROM record ORDER BY place")
        ]
    finally:
        connection.close()


class Listener:
    """Takes a journal's callbacks, and lets a test wait for them."""

    def __init__(self) -> None:
        self.durable: list[int] = []
        self.broken: list[BaseException] = []
        self._news = asyncio.Event()

    def on_durable(self, number: int) -> None:
        self.durable.append(number)
        self._news.set()

    def on_broken(self, error: BaseException) -> None:
        self.broken.append(error)
        self._news.set()

    async def until_durable(self, number: int) -> None:
        while number > max(self.durable, default=0):
            await self._next()

    async def until_broken(self) -> BaseException:
        while not self.broken:
            await self._next()
        return self.broken[0]

    async def until_known(self, number: int) -> bool:
        """Whether this record became durable, when that is decided."""
        while not self.broken and number > max(self.durable, default=0):
            await self._next()
        return not self.broken

    async def _next(self) -> None:
        await self._news.wait()
        self._news.clear()


def started(journal: Journal) -> Listener:
    """Somebody who listens to this journal from now on."""
    listener = Listener()
    journal.start(listener.on_durable, listener.on_broken)
    return listener
