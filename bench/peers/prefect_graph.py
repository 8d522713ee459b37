"""Run WIDTH lanes of DEPTH Prefect tasks; print the time to the return and to all stored."""

import asyncio
import json
import sqlite3
import sys
import time

from prefect import flow, task

width, depth, database = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]


@task
async def unit() -> None:
    """Do nothing: only the engine's own cost is of interest."""


@flow
async def lanes() -> None:
    """Await each lane's tasks in order, all lanes at once."""

    async def lane() -> None:
        for _ in range(depth):
            await unit()

    await asyncio.gather(*(lane() for _ in range(width)))


def stored() -> int:
    """Count the task runs the server has written as completed."""
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True, timeout=30) as connection:
        query = "select count(*) from task_run where state_type = 'COMPLETED'"
        return connection.execute(query).fetchone()[0]


start = time.perf_counter()
asyncio.run(lanes())
returned = time.perf_counter() - start
# The client hands its states to a background worker and the server stores them
# later; the parent's timeout bounds this wait.
while stored() < width * depth:
    time.sleep(0.05)
print(json.dumps({"returned": returned, "seconds": time.perf_counter() - start}))
