"""Run one graph once, in a process of its own, and print what it took as JSON."""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import resource
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import shapes

from kubexm.engine import Journal, MemoryJournal, Options, execute
from kubexm.plan.graph import ExecutionGraph
from kubexm.runtime.build import HostConfig, Runtime, RuntimeConfig
from kubexm.sim.settings import WorldSettings
from kubexm.sim.world import World
from kubexm.spec.loader import Loader
from kubexm.store import Documents, Store


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("shape", choices=[*shapes.SHAPES, "commit"])
    parser.add_argument("units", type=int)
    parser.add_argument("--width", type=int, default=shapes.WIDTH)
    parser.add_argument("--no-journal", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        if given.shape == "commit":
            print(json.dumps({"seconds": bare_commits(place, given.units)}))
            return
        graph = shapes.graph(given.shape, given.units, given.width)
        figures = asyncio.run(measure(graph, place, journaled=not given.no_journal))
    print(json.dumps(figures))


async def measure(graph: ExecutionGraph, place: Path, journaled: bool) -> dict[str, float]:
    """Seconds from the call of the engine to its result, and the peak of memory in MiB."""
    world = World.create(place / "world", WorldSettings())
    hosts = [HostConfig(name, world.connector(name)) for name in graph.hosts]
    async with Runtime.build(RuntimeConfig(hosts)) as runtime:
        with _journal(graph, place, journaled) as journal:
            gc.collect()
            start = time.perf_counter()
            result = await execute(graph, runtime, Options(), load=Loader(), journal=journal)
            seconds = time.perf_counter() - start
    if result.status != "Success" or result.changed != graph.unit_count:
        raise SystemExit(f"the run did not do its work: {result.status}, {result.counts}")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"seconds": seconds, "units": graph.unit_count, "mib": peak}


@contextmanager
def _journal(graph: ExecutionGraph, place: Path, journaled: bool) -> Iterator[Journal]:
    if not journaled:
        yield MemoryJournal()
        return
    with Store.open(place / "store" / "kubexm.db") as store:
        _, lease = store.start_run(graph.name, Documents(graph))
        with lease:
            yield store.journal(lease)


def bare_commits(place: Path, count: int) -> float:
    """Seconds for so many transactions of one small row each, with nothing around them."""
    connection = sqlite3.connect(place / "bare.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE lock (name TEXT PRIMARY KEY, token INTEGER)")
    connection.execute("INSERT INTO lock VALUES ('x', 1)")
    connection.execute("CREATE TABLE record (place INTEGER PRIMARY KEY, token INTEGER, body BLOB)")
    body = b"x" * 330
    start = time.perf_counter()
    for number in range(count):
        connection.execute(
            "INSERT INTO record SELECT ?, 1, ? WHERE EXISTS"
            " (SELECT 1 FROM lock WHERE name = 'x' AND token = 1)",
            (number, body),
        )
    seconds = time.perf_counter() - start
    connection.close()
    return seconds


if __name__ == "__main__":
    main()
