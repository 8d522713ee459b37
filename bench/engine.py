"""What the engine costs, beside its limits and beside its peers, all measured in one run.

    python bench/engine.py              everything: about ten minutes
    python bench/engine.py cost fleet   only some of the sections

Sections: cost, chain, fleet, start, peers, crowd. Every figure is a wall time of this machine,
now; compare within one run, never across runs.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import peers

HERE = Path(__file__).parent
SHAPES = ("chain", "fan", "layers", "lanes")
SIZES = (1_000, 10_000, 100_000)
REPEATS = 3
SECONDS = 1_800
Row = tuple[str, ...]


def main() -> None:
    sections: dict[str, Callable[[], None]] = {
        "cost": cost,
        "chain": chain,
        "fleet": fleet,
        "start": start,
        "peers": beside_peers,
        "crowd": crowd,
    }
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("sections", nargs="*", choices=[[], *sections], default=[])
    chosen = parser.parse_args().sections or list(sections)
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    print(f"load before: {os.getloadavg()[0]:.1f}")
    for name in chosen:
        sections[name]()


def cost() -> None:
    """Microseconds per unit and peak memory, with and without the journal."""
    rows: list[Row] = []
    per_unit: dict[tuple[str, int], float] = {}
    for shape in SHAPES:
        for units in SIZES:
            bare = best("one.py", shape, str(units), "--no-journal")
            kept = best("one.py", shape, str(units))
            per_unit[shape, units] = micros(kept)
            rows.append(
                (
                    shape,
                    f"{units:,}",
                    f"{micros(bare):.0f}",
                    f"{micros(kept):.0f}",
                    f"{1e6 / micros(kept):,.0f}",
                    f"{kept['mib']:.0f}",
                )
            )
    table(("shape", "units", "µs/unit", "µs/unit, journal", "units/s, journal", "peak MiB"), rows)
    for shape in ("fan", "layers", "lanes"):
        ratio = per_unit[shape, SIZES[-1]] / per_unit[shape, SIZES[0]]
        print(f"{shape}: a unit of {SIZES[-1]:,} costs {ratio:.2f} × one of {SIZES[0]:,} (≤ 1.5)")


def chain() -> None:
    """A chain, where every unit waits for the commit of the one before, beside bare commits."""
    ratios = []
    for _ in range(9):
        commits = run("one.py", "commit", "2000")["seconds"] / 2000
        unit = run("one.py", "chain", "2000")
        ratios.append((unit["seconds"] / unit["units"]) / commits)
        print(f"bare commit {commits * 1e6:.0f} µs, unit of a chain {micros(unit):.0f} µs")
    print(f"a unit of a chain costs {statistics.median(ratios):.2f} × a bare commit (≤ 1.3)")


def fleet() -> None:
    """500 simulated hosts, 60 steps each, step time lognormal with a median of 200 ms."""
    figures = run("fleet.py", "500", "60")
    excess = 100 * (figures["seconds"] / figures["critical"] - 1)
    print(
        f"500 hosts × 60 steps: {figures['seconds']:.2f} s, critical path"
        f" {figures['critical']:.2f} s, {excess:.1f} % more (≤ 5), {figures['mib']:.0f} MiB"
    )


def start() -> None:
    """`kubexm --help` beside an empty Python, and a run up to its first unit."""
    empty = quickest([sys.executable, "-c", "pass"])
    helped = quickest([sys.executable, "-m", "kubexm", "--help"])
    ratio = helped / empty
    print(
        f"python -c pass {empty * 1e3:.0f} ms, kubexm --help {helped * 1e3:.0f} ms:"
        f" {ratio:.1f} × (≤ 15)"
    )
    first = min(run("first.py")["seconds"] for _ in range(REPEATS))
    print(f"from the start of the process to the first unit of a run: {first * 1e3:.0f} ms")


def beside_peers() -> None:
    """1,000 units, 10 wide and 100 deep, every one run and persisted; 200 of them on Ansible."""
    ours = best("one.py", "lanes", "1000", "--width", "10")
    fewer = best("one.py", "lanes", "200", "--width", "10")
    rows: list[Row] = []
    for measure in (peers.prefect, peers.dagster, peers.ansible):
        found = min((measure() for _ in range(REPEATS)), key=lambda result: result.seconds)
        mine = ours if found.units == 1000 else fewer
        ratio = found.seconds / mine["seconds"]
        rows.append(
            (
                f"{found.peer} {found.version}",
                f"{found.units:,}",
                f"{found.seconds:.2f}",
                f"{mine['seconds']:.3f}",
                f"{ratio:.0f} ×",
                found.how,
            )
        )
    table(("peer", "units", "seconds", "kubexm", "ratio (≥ 30)", "how"), rows)


def crowd() -> None:
    """10,000 simulated hosts, 40 steps each, with the live view."""
    figures = run("fleet.py", "10000", "40", "--median", "0.02")
    print(
        f"10,000 hosts × 40 steps: {figures['units']:,} units in {figures['seconds']:.0f} s,"
        f" {figures['mib']:.0f} MiB (< 2,048)"
    )


def best(*arguments: str) -> dict[str, float]:
    """The quickest of a few runs: whatever else the machine does can only add."""
    return min((run(*arguments) for _ in range(REPEATS)), key=lambda figures: figures["seconds"])


def run(script: str, *arguments: str) -> dict[str, float]:
    """One measurement in a process of its own, with a state directory of its own."""
    with tempfile.TemporaryDirectory() as home:
        done = subprocess.run(
            [sys.executable, str(HERE / script), *arguments],
            env={**os.environ, "KUBEXM_HOME": home},
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    if done.returncode:
        raise SystemExit(f"{script} {' '.join(arguments)} failed:\n{done.stderr[-2000:]}")
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


def quickest(command: Sequence[str], times: int = 15) -> float:
    """Seconds of the quickest of several runs of a command."""
    took = []
    for _ in range(times):
        began = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True, timeout=60)
        took.append(time.perf_counter() - began)
    return min(took)


def micros(figures: dict[str, float]) -> float:
    """Microseconds per unit."""
    return figures["seconds"] / figures["units"] * 1e6


def table(headers: Row, rows: Sequence[Row]) -> None:
    """A table in Markdown."""
    print(f"| {' | '.join(headers)} |\n|{'---|' * len(headers)}")
    for row in rows:
        print(f"| {' | '.join(row)} |")


if __name__ == "__main__":
    main()
