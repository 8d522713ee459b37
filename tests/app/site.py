"""A site for tests of the use cases: a pipeline file, a state directory, a simulated world."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.started import started

from kubexm.app import planning, runs
from kubexm.app.execution import Front
from kubexm.app.params import PipelineParams, PlanParams, ResumeParams, RetryParams, RunParams
from kubexm.app.runs import RunOutcome
from kubexm.common.paths import Home
from kubexm.engine.bus import Subscription
from kubexm.engine.undo import is_undo
from kubexm.plan.events import UnitStarted
from kubexm.plan.graph import ExecutionGraph
from kubexm.plan.records import UnitDone, UnitIntended
from kubexm.plan.result import GraphExecutionResult
from kubexm.sim import SimHost, World
from kubexm.store import Run, Store

HEAD = "apiVersion: kubexm.io/v1alpha1\nkind: Pipeline\nmetadata: {name: site}\nspec:\n"
_SHORT_LEASE = (
    "from kubexm.app import places; places.LEASE_SECONDS = {};"
    " from kubexm.cli.main import main; main()"
)


class Site:
    """One pipeline and all that belongs to its runs."""

    def __init__(self, root: Path, *, simulated: bool = True) -> None:
        self.root = root
        self.simulated = simulated
        self.home = Home(root / "home/state", root / "home/data", root / "home/cache")
        self.file = root / "site.yaml"

    def write(self, body: str) -> None:
        """Say what the pipeline is, from `hosts` on."""
        self.file.write_text(HEAD + textwrap.indent(textwrap.dedent(body), "  "))

    def make_world(self) -> None:
        """Have the simulated hosts there before anybody works on them."""
        planned = planning.plan(self._params().plan)
        World.create(self.world, planned.world).close()

    # What users ask for.

    def run(self, *, front: Front | None = None, **params: Any) -> RunOutcome:
        return _now(runs.run(self._params(**params), front or Front(), self.home))

    def resume(self, task: str, *, front: Front | None = None, **params: Any) -> RunOutcome:
        return _now(runs.resume(ResumeParams(task, **params), front or Front(), self.home))

    def retry(
        self, task: str, *, corrected: bool = False, front: Front | None = None, **params: Any
    ) -> RunOutcome:
        pipeline = PipelineParams(self.file) if corrected else None
        retried = RetryParams(task, pipeline, **params)
        return _now(runs.retry(retried, front or Front(), self.home))

    def stopped_at(self, node: str, **params: Any) -> str:
        """The id of a run that was cancelled when it came to this node."""
        outcome = self.run(front=stopping_at(node), **params)
        assert outcome.result.status == "Cancelled"
        return task_of(outcome)

    def _params(self, **params: Any) -> RunParams:
        return RunParams(PlanParams(PipelineParams(self.file)), simulate=self.simulated, **params)

    # What is there afterwards.

    @property
    def world(self) -> Path:
        return self.home.worlds / "site"

    @property
    def database(self) -> Path:
        return self.world / "kubexm.db" if self.simulated else self.home.database

    @contextmanager
    def hosts(self) -> Iterator[Callable[[str], SimHost]]:
        """The simulated hosts, to look at and to change while nobody works on them."""
        world = World.open(self.world)
        try:
            yield world.host
        finally:
            world.close()

    def read(self, host: str, path: str) -> str | None:
        """A file of a simulated host."""
        with self.hosts() as found:
            try:
                return found(host).read(path).decode()
            except FileNotFoundError:
                return None

    def put(self, host: str, path: str, text: str) -> None:
        """Change a simulated host behind the back of kubexm."""
        world = World.open(self.world)
        asyncio.run(world.connector(host).put(path, text.encode()))
        world.close()

    def ran(self, *argv: str) -> dict[str, int]:
        """How often a scripted command was run, by host."""
        world = World.open(self.world)
        found = {
            host: changes[f"script:{' '.join(argv)}"]
            for host, changes in world.mutations().items()
            if f"script:{' '.join(argv)}" in changes
        }
        world.close()
        return found

    def stored(self) -> list[Run]:
        with Store.open(self.database) as store:
            return store.runs()

    def tries(self, task: str) -> Counter[tuple[str, str]]:
        """How often each unit set out to change its host."""
        with Store.open(self.database) as store:
            found = [record for _, record in store.records(task)]
        return Counter(
            (_name(record.node), record.host)
            for record in found
            if isinstance(record, UnitIntended)
        )

    def finished(self) -> set[tuple[str, str]]:
        """The units of the latest run that are final, while it may still be going on."""
        if not self.database.exists():
            return set()
        with Store.open(self.database) as store:
            if not (found := store.runs(limit=1)):
                return set()
            records = [record for _, record in store.records(found[0].id)]
        return {(_name(r.node), r.host) for r in records if isinstance(r, UnitDone)}

    # Other processes.

    @contextmanager
    def process(
        self, *arguments: str | Path, program: Sequence[str] = ("-m", "kubexm")
    ) -> Iterator[Process]:
        """A kubexm of its own, which is gone when the block ends."""
        environment = {**os.environ, "KUBEXM_HOME": str(self.root / "home")}
        with started([sys.executable, *program, *arguments], env=environment) as process:
            yield Process(process)

    def running(self, *, lease: float | None = None) -> Any:
        """A process that runs the pipeline; with a lease that ends sooner than usual."""
        given = ("-c", _SHORT_LEASE.format(lease)) if lease is not None else ("-m", "kubexm")
        how = ["--simulate"] if self.simulated else []
        return self.process("run", "-f", self.file, *how, program=given)


class Process:
    """A kubexm that was started by a test."""

    def __init__(self, popen: subprocess.Popen[str]) -> None:
        self.popen = popen

    @property
    def pid(self) -> int:
        return self.popen.pid

    def until(self, holds: Callable[[], bool]) -> None:
        """Wait for something to hold while the process is at work."""
        while not holds():
            if self.popen.poll() is not None:
                raise AssertionError(f"it ended: {self.popen.communicate()}")
            time.sleep(0.05)

    def kill(self) -> None:
        self.popen.send_signal(signal.SIGKILL)
        self.popen.wait()

    def ended(self) -> tuple[int, str]:
        """Its exit code and what it complained about, when it has ended by itself."""
        _, errors = self.popen.communicate()
        return self.popen.returncode, errors


def stopping_at(node: str, *, undo: bool = False) -> Front:
    """Watches a run, and stops it when a unit of this node starts, or the undo of one."""
    front = Front()

    async def watch(subscription: Subscription, graph: ExecutionGraph) -> None:
        async for event in subscription:
            if not isinstance(event, UnitStarted) or is_undo(event.node) != undo:
                continue
            if _name(event.node) == node:
                front.control.cancel("stopped by the test")

    front.shows = (watch,)
    return front


def stopping_at_start(number: int, *, undo: bool = False) -> Front:
    """Watches a run, and stops it when so many units have started, or undos."""
    front = Front()

    async def watch(subscription: Subscription, graph: ExecutionGraph) -> None:
        left = number
        async for event in subscription:
            if isinstance(event, UnitStarted) and is_undo(event.node) == undo:
                left -= 1
                if left == 0:
                    front.control.cancel("stopped by the test")

    front.shows = (watch,)
    return front


def task_of(outcome: RunOutcome) -> str:
    assert outcome.task is not None
    return outcome.task


def statuses(result: GraphExecutionResult) -> dict[str, dict[str, str]]:
    """What came of every host, by the last word of the node's path."""
    return {
        _name(id): {
            name: "Satisfied" if host.satisfied else host.status
            for name, host in node.host_results.items()
        }
        for id, node in result.node_results.items()
    }


def _name(id: str) -> str:
    return id.rpartition("/")[2]


def _now(work: Coroutine[Any, Any, RunOutcome]) -> RunOutcome:
    return asyncio.run(work)
