"""How long it takes to read, check and plan a large cluster, and how much memory that needs.

    python bench/plan.py [--hosts 1000] [--rounds 5]

Prints a table; docs/benchmarks.md has what was measured.
"""

from __future__ import annotations

import argparse
import gc
import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kubexm.app import clusters, planning
from kubexm.app.params import ClusterParams, OperationParams, PlanParams
from kubexm.plan.codec import encode

_PLANES, _ETCD = 5, 5


def text(hosts: int, plugin: str) -> str:
    """A cluster of so many hosts: five control planes, five members of etcd, workers."""
    workers = hosts - _PLANES - _ETCD
    return f"""
apiVersion: kubexm.io/v1alpha1
kind: Cluster
metadata: {{name: large}}
spec:
  hosts:
    - {{name: "control[1:{_PLANES}]", address: "10.0.0.[1:{_PLANES}]", arch: amd64}}
    - {{name: "etcd[1:{_ETCD}]", address: "10.0.1.[1:{_ETCD}]", arch: amd64}}
{workers_text(workers)}
  roleGroups:
    control-plane: ["control[1:{_PLANES}]"]
    etcd: ["etcd[1:{_ETCD}]"]
  kubernetes: {{version: v1.36.4}}
  network: {{plugin: {plugin}, podCIDR: 10.128.0.0/10, serviceCIDR: 10.96.0.0/16}}
"""


def workers_text(count: int) -> str:
    """An entry for each worker, as inventories that were exported have them."""
    return "\n".join(
        f"    - {{name: worker{n}, address: 10.{16 + n // 65536}.{n // 256 % 256}.{n % 256},"
        f" arch: amd64, labels: {{rack: r{n % 40}}}}}"
        for n in range(1, count + 1)
    )


def timed(work: Callable[[], Any], rounds: int) -> tuple[float, Any]:
    """The median of some rounds in seconds, and what came out of the last."""
    seconds, found = [], None
    for _ in range(rounds):
        gc.collect()
        begun = time.perf_counter()
        found = work()
        seconds.append(time.perf_counter() - begun)
    return statistics.median(seconds), found


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--hosts", type=int, default=1000)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--plugin", default="routed")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "large.yaml"
        file.write_text(text(chosen.hosts, chosen.plugin))
        cluster = ClusterParams(file)
        params = PlanParams(OperationParams(cluster))
        validated, _ = timed(lambda: clusters.validate(cluster), chosen.rounds)
        planned, plan = timed(lambda: planning.plan(params), chosen.rounds)
    graph = plan.graph
    size = len(encode(graph))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    rows = (
        ("read and checked", f"{validated:.2f} s", "2 s"),
        ("read, checked and planned", f"{planned:.2f} s", "5 s"),
        ("memory of the whole process", f"{peak:.0f} MiB", ""),
        ("the graph as JSON", f"{size / 2**20:.1f} MiB", ""),
    )
    print(f"{chosen.hosts} hosts: {len(graph)} nodes, {graph.unit_count} units")
    for name, found, wanted in rows:
        print(f"  {name:<30}{found:>10}{'  want under ' + wanted if wanted else ''}")


if __name__ == "__main__":
    main()
