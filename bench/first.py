"""How long it takes from the start of the process until the first unit of a run starts."""

from __future__ import annotations

import asyncio
import json
import os
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from kubexm.app import runs
from kubexm.app.execution import Front
from kubexm.app.params import PipelineParams, PlanParams, RunParams
from kubexm.common.paths import Home
from kubexm.engine.bus import Subscription
from kubexm.plan.events import UnitStarted
from kubexm.plan.graph import ExecutionGraph


def main() -> None:
    with TemporaryDirectory() as directory:
        file = Path(directory) / "one.yaml"
        file.write_text(
            "apiVersion: kubexm.io/v1alpha1\nkind: Pipeline\nmetadata: {name: one}\nspec:\n"
            "  modules: [{name: m, runOnRoles: [control-node], tasks: [{name: t, steps:"
            " [{name: s, noop: {}}]}]}]\n"
        )
        print(json.dumps({"seconds": asyncio.run(until_first_unit(file))}))


async def until_first_unit(file: Path) -> float:
    """Seconds by the clock that the kernel started for this process."""
    moments: list[float] = []

    async def watch(subscription: Subscription, _graph: ExecutionGraph) -> None:
        moments.extend([event.at async for event in subscription if isinstance(event, UnitStarted)])

    params = RunParams(PlanParams(PipelineParams(file)))
    await runs.run(params, Front(shows=(watch,)), Home.from_environment())
    return moments[0] - _started()


def _started() -> float:
    """When this process started, in seconds since the epoch."""
    ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    booted = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    return booted + ticks / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
