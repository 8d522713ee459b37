"""Lives of one run: real processes, forked from one that has everything imported already.

Nothing in the parent runs in a thread, so a child starts as clean as a new process would, only
a hundred times faster.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import sqlite3
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, NoReturn

from tests.chaos.steps import provider_known

from kubexm.app import runs
from kubexm.app.execution import Front
from kubexm.app.params import PipelineParams, PlanParams, ResumeParams, RunParams
from kubexm.common.paths import Home
from kubexm.errors import LeaseLost

ENDED, DEFECT, LEASE_LOST = 0, 1, 3
PAUSE = 0.0005
PR_SET_PDEATHSIG = 1


class Place:
    """Where one run lives: its pipeline, its state, its simulated world."""

    def __init__(self, root: Path, file: Path) -> None:
        self.root = root
        self.file = file
        self.home = Home(root / "state", root / "data", root / "cache")
        self.world = self.home.worlds / "chaos"
        self.database = self.world / "kubexm.db"

    def task(self) -> tuple[str, str] | None:
        """Id and status of the run, once there is one."""
        row = self._ask("SELECT id, status FROM run")
        return None if row is None else (row[0], row[1])

    def records(self) -> int:
        """How many lines the journal has."""
        row = self._ask("SELECT count(*) FROM record")
        return 0 if row is None else row[0]

    def is_locked(self) -> bool:
        """Whether some process is amid a write to the database."""
        with closing(sqlite3.connect(self.database, 0, isolation_level=None)) as connection:
            try:
                connection.execute("BEGIN IMMEDIATE")
                connection.execute("ROLLBACK")
            except sqlite3.OperationalError:
                return True
        return False

    def _ask(self, query: str) -> tuple[Any, ...] | None:
        if not self.database.exists():
            return None
        with closing(sqlite3.connect(self.database)) as connection:
            try:
                row: tuple[Any, ...] | None = connection.execute(query).fetchone()
            except sqlite3.OperationalError:
                return None  # killed before there were tables
        return row

    @property
    def is_over(self) -> bool:
        """Whether the run has ended, however the process that ended it did."""
        task = self.task()
        return task is not None and task[1] not in ("Pending", "Running", "Cancelled")

    @property
    def is_cancelled(self) -> bool:
        task = self.task()
        return task is not None and task[1] == "Cancelled"

    def errors(self) -> str:
        """What went wrong in children, for whoever looks into a failed test."""
        path = self.root / "errors.txt"
        return path.read_text() if path.exists() else ""

    def last_commit(self) -> int:
        """When the database was last written to."""
        return _written(self.world / "kubexm.db-wal")

    def last_change(self, host: str) -> int:
        """When a simulated host was last changed."""
        return _written(self.world / "hosts" / f"{host}.jsonl")


def _written(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return 0


class Life:
    """One process that works on the run until it ends or is ended."""

    def __init__(self, place: Place) -> None:
        task = place.task()
        self.status: int | None = None
        self.pid = os.fork()
        if not self.pid:
            _live(place, None if task is None else task[0])

    @property
    def is_over(self) -> bool:
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.status = status if pid else None
        return self.status is not None

    def wait(self) -> int:
        """Its exit code, when it has ended; minus the signal if one ended it."""
        if self.status is None:
            self.status = os.waitpid(self.pid, 0)[1]
        return os.waitstatus_to_exitcode(self.status)

    def kill(self) -> int:
        """End it at once; its exit code, which may come from before."""
        self._send(signal.SIGKILL)
        return self.wait()

    def freeze(self) -> None:
        """Stop it; returns when it stands still, or has ended."""
        self._send(signal.SIGSTOP)
        if self.status is None:
            os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def wake(self) -> None:
        self._send(signal.SIGCONT)

    def _send(self, number: signal.Signals) -> None:
        if not self.is_over:
            os.kill(self.pid, number)

    def until(self, holds: Callable[[], bool]) -> None:
        """Wait for something to hold, or for the end of this life."""
        while not self.is_over and not holds():
            time.sleep(PAUSE)


def _live(place: Place, task: str | None) -> NoReturn:
    code = DEFECT
    # Whatever becomes of the parent, nothing that it has started or frozen outlives it.
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    try:
        asyncio.run(work(place, task))
        code = ENDED
    except LeaseLost:
        code = LEASE_LOST
    except BaseException:  # noqa: BLE001  # whatever it is, the parent has to hear of it
        with (place.root / "errors.txt").open("a") as file:
            traceback.print_exc(file=file)
    finally:
        # No clean-up that belongs to the parent.
        sys.stdout.flush()
        os._exit(code)


async def work(place: Place, task: str | None = None) -> None:
    """Begin the run, or go on with it, and return when it has ended."""
    with provider_known():
        if task is None:
            plan = PlanParams(PipelineParams(place.file))
            await runs.run(RunParams(plan, simulate=True), Front(), place.home)
        else:
            await runs.resume(ResumeParams(task), Front(), place.home)
