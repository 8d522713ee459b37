"""Run a fleet of simulated hosts and compare the time it took with its critical path."""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from kubexm.app import runs
from kubexm.app.execution import Front
from kubexm.app.params import PipelineParams, PlanParams, RunParams
from kubexm.cli.live import LiveView
from kubexm.common.paths import Home
from kubexm.plan.report import report
from kubexm.sim.world import World

MODULES = 4


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("hosts", type=int)
    parser.add_argument("steps", type=int)
    parser.add_argument("--median", type=float, default=0.2)
    given = parser.parse_args()
    with TemporaryDirectory() as directory:
        file = Path(directory) / "fleet.yaml"
        file.write_text(pipeline(given.hosts, given.steps, given.median))
        print(json.dumps(asyncio.run(measure(file, given.hosts, given.steps))))


def pipeline(hosts: int, steps: int, median: float) -> str:
    """Lanes of commands with barriers between the modules; a command's time is lognormal."""
    lines = [
        "apiVersion: kubexm.io/v1alpha1",
        "kind: Pipeline",
        "metadata: {name: fleet}",
        "spec:",
        "  simulate:",
        f"    latency: {{kind: lognormal, median: {median}, sigma: 0.5}}",
        "    scripts: [{argv: [work, '*']}]",
        "  hosts:",
        *(f"    - {{name: host{number:05}}}" for number in range(hosts)),
        "  modules:",
    ]
    for module in range(MODULES):
        lines.append(
            f"    - name: module{module}\n      tasks:\n        - name: lane\n          steps:"
        )
        lines += (
            f"            - {{name: s{step}, command: {{argv: [work, s{step}]}}}}"
            for step in range(steps // MODULES)
        )
    return "\n".join(lines) + "\n"


def critical_path(place: Path, hosts: int, steps: int) -> float:
    """The longest way through the graph, by the times that the simulation drew for the commands.

    Nothing of the engine is in it: each module takes as long as the slowest of its lanes.
    """
    world = World.open(place)
    each = steps // MODULES
    lanes = []
    for number in range(hosts):
        host = world.host(f"host{number:05}")
        first = host.commands - each * MODULES + 1  # those before asked for the facts
        lanes.append([host.latency(at) for at in range(first, host.commands + 1)])
    return sum(
        max(sum(lane[module * each : (module + 1) * each]) for lane in lanes)
        for module in range(MODULES)
    )


async def measure(file: Path, hosts: int, steps: int) -> dict[str, float]:
    """Seconds, the critical path of the realised durations, units and peak memory."""
    params = RunParams(PlanParams(PipelineParams(file)), simulate=True)
    began = time.perf_counter()
    front = Front()
    front.shows = (LiveView(front.control).show,)
    outcome = await runs.run(params, front, Home.from_environment())
    took = time.perf_counter() - began
    if outcome.result.status != "Success":
        raise SystemExit(f"the run did not do its work: {outcome.result.status}")
    assert outcome.world is not None
    return {
        "seconds": report(outcome.graph, outcome.result).duration,
        "whole": took,
        "critical": critical_path(outcome.world, hosts, steps),
        "units": outcome.graph.unit_count,
        "mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


if __name__ == "__main__":
    main()
