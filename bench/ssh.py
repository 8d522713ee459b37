"""What work by SSH costs, beside peers, floors and goals, all measured in one run.

    python bench/ssh.py             everything: about half an hour
    python bench/ssh.py w1 w5       only some of the sections

Sections, on 50 hosts unless said: w1 connect and one command; w2 twenty commands; w3 1 MiB to
each; w3b 200 MiB to one; w4 facts; w5 twenty operations with nothing to change, also op by op;
w6 fifty steps left out by a condition; few: w2 and w5 on 3 hosts. Then single figures: command,
far, first, cores, crowd. It needs root, for the lab. Every figure is of this machine, now; compare
within one run, never across runs.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import peers
import sshbed
import sshmeter
import sshrails
import sshtools
from engine import table
from sshbed import FEW, HOSTS, Bed
from sshmeter import Figures, RunFailed
from sshtools import ONE_BY_ONE, Job, Tool

from lab import network
from lab.errors import LabError

HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Goal:
    """How many times as much the peers are to take: wall and client CPU."""

    ansible: float | None = None
    pyinfra: float | None = None
    ansible_cpu: float | None = None
    pyinfra_cpu: float | None = None


@dataclass(frozen=True, slots=True)
class Work:
    """Work that everybody does, and what it is called in the tables."""

    name: str
    title: str
    goal: Goal
    count: int = HOSTS
    one_by_one: Goal | None = None
    """For kubexm without asking ahead."""


@dataclass(frozen=True, slots=True)
class Median:
    """The middle of several runs of one tool."""

    wall: float
    cpu: float
    imports: float
    peak: float | None
    runs: int

    @property
    def own_cpu(self) -> float:
        """Without what the imports cost."""
        return max(self.cpu - self.imports, 0.001)


@dataclass(slots=True)
class Entry:
    """A tool in the competition for one work."""

    tool: Tool
    job: Job
    importing: Job | None
    """Imports what the job imports, and nothing else; None for what is no Python."""
    figures: list[Figures] = field(default_factory=list)
    imports: list[float] = field(default_factory=list)

    def run(self) -> None:
        """Once more; a tool that fails has one figure less, and is told of."""
        try:
            self.figures.append(self.job.run())
            self.imports.append(self.importing.run().cpu if self.importing else 0.0)
        except RunFailed as error:
            _complain(self.tool, error)


WORKS = {
    "w1": [Work("w1", "connect, one command", Goal(8, 1.2, 15, 1.5))],
    "w2": [Work("w2", "20 commands", Goal(60, 3, 70, 4.5))],
    "w3": [Work("w3", "1 MiB to each", Goal(10, 1.6, 17, 2))],
    "w3b": [Work("w3b", "200 MiB to one", Goal(2.5, 2.3), 1)],
    "w4": [Work("w4", "facts", Goal(8, 6.5, 15, 6))],
    "w5": [
        Work(
            "w5",
            "20 operations, no change",
            Goal(120, 7, 120, 10),
            one_by_one=Goal(80, 4.5, 100, 8),
        )
    ],
    "w6": [
        Work("w6-one", "1 step left out", Goal()),
        Work("w6", "50 steps left out", Goal(50)),
    ],
    "few": [
        Work("w2", "20 commands", Goal(15, 3), FEW),
        Work("w5", "20 operations, no change", Goal(25, 5.5), FEW),
    ],
}


class Bench:
    """A bed, who works on it, and how often."""

    def __init__(self, bed: Bed, home: Path, rounds: int, slow_rounds: int) -> None:
        self.bed = bed
        self.home = home
        self._rounds = rounds
        self._slow_rounds = slow_rounds
        self._tools = sshtools.tools(bed, home)
        # What the second runs find done: by kubexm, and alike by all others.
        self._converged: set[int] = set()

    def compare(self, work: Work) -> dict[str, Median]:
        """One work, done by everybody in turn, and the goals beside it."""
        self._converge(work)
        medians = dict(self._medians(work))
        print(f"\n{work.title} ({work.count} host{'s' * (work.count > 1)})\n")
        columns = ("", "wall s", "client CPU s", "of it imports", "peak MiB", "runs")
        table(columns, list(_rows(medians)))
        if judged := list(_judged(work, medians)):
            print()
            table(("", "beside", "ratio", "goal", ""), judged)
        return medians

    def _converge(self, work: Work) -> None:
        if work.name == "w5" and work.count not in self._converged:
            job = self._tools[0].job("w5", work.count)
            assert job is not None
            sshmeter.measure(job.command, job.env, job.cwd)
            self._converged.add(work.count)

    def _medians(self, work: Work) -> Iterator[tuple[str, Median]]:
        tools = [tool for tool in self._tools if self._turns(tool)]
        entries = [entry for tool in tools if (entry := self._entry(tool, work))]
        for turn in range(max(self._rounds, self._slow_rounds)):
            for entry in entries:
                if turn < self._turns(entry.tool):
                    self._clear()
                    entry.run()
        for entry in entries:
            if entry.figures:
                yield entry.tool.name, _median(entry.figures, statistics.median(entry.imports))

    def _turns(self, tool: Tool) -> int:
        return self._slow_rounds if tool.slow else self._rounds

    def _entry(self, tool: Tool, work: Work) -> Entry | None:
        """A tool with its job, warmed up on a few hosts; None if it does no such work."""
        job = tool.job(work.name, work.count)
        few = tool.job(work.name, min(FEW, work.count))
        if job is None or few is None:
            return None
        self._clear()
        try:
            return Entry(tool, job, tool.importing(few, self.home))
        except RunFailed as error:
            _complain(tool, error)
            return None

    def _clear(self) -> None:
        """Take away what the works with files have brought, and let the disk come to rest.

        Who waits until a file is on the disk would else wait for what others have left unwritten.
        """
        for payload in self.bed.root.glob("srv/bench/*/payload"):
            payload.unlink()
        os.sync()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    names = [*WORKS, *sshrails.SECTIONS]
    parser.add_argument("sections", nargs="*", choices=[[], *names], default=[])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--slow-rounds", type=int, default=2, help="of Ansible; 0 leaves it out")
    options = parser.parse_args()
    _print_machine()
    with TemporaryDirectory(prefix="kubexm-ssh-") as home, _bed() as bed:
        bench = Bench(bed, Path(home), options.rounds, options.slow_rounds)
        with network.entered(bed.site.netns):
            for name in options.sections or names:
                found = [bench.compare(work) for work in WORKS.get(name, ())]
                if name == "w6":
                    _print_marginal(*found)
                if name in sshrails.SECTIONS:
                    sshrails.SECTIONS[name](bed, Path(home))


@contextmanager
def _bed() -> Iterator[Bed]:
    """A bed of our own; one that is there is taken away first."""
    with sshmeter.alone():
        sshbed.down()
        try:
            yield sshbed.up(HOSTS)
        finally:
            sshbed.down()


def _print_machine() -> None:
    client = subprocess.run(["ssh", "-V"], capture_output=True, text=True, check=True).stderr
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    print(f"{client.partition(',')[0]}, {sshtools.versions()}")
    print(f"load before: {os.getloadavg()[0]:.1f}")


def _print_marginal(one: dict[str, Median], fifty: dict[str, Median]) -> None:
    """What one more step that is left out costs the client."""
    if not {"kubexm", "ansible"} <= one.keys() & fifty.keys():
        return
    skips = 49 * HOSTS
    cost = {name: (fifty[name].cpu - one[name].cpu) / skips * 1e6 for name in ("kubexm", "ansible")}
    ratio = cost["ansible"] / cost["kubexm"]
    print(
        f"\nCPU of one more step left out on one host: kubexm {cost['kubexm']:.0f} µs (≤ 37),"
        f" Ansible {cost['ansible']:.0f} µs: {ratio:.0f} × (≥ 500)"
    )


def _complain(tool: Tool, error: RunFailed) -> None:
    print(f"{tool.name} failed, and is left out: {error}", file=sys.stderr)


def _rows(medians: dict[str, Median]) -> Iterator[tuple[str, ...]]:
    for name, found in medians.items():
        peak = f"{found.peak:.0f}" if found.peak is not None else "-"
        figures = (f"{value:.2f}" for value in (found.wall, found.cpu, found.imports))
        yield name, *figures, peak, str(found.runs)


def _judged(work: Work, medians: dict[str, Median]) -> Iterator[tuple[str, ...]]:
    for name, goal in (("kubexm", work.goal), (ONE_BY_ONE, work.one_by_one)):
        if goal is not None and name in medians:
            yield from _beside_peers(name, medians, goal)
    if work.name == "w3b" and {"kubexm", "openssh"} <= medians.keys():
        times = medians["kubexm"].wall / medians["openssh"].wall
        yield "kubexm", "openssh, wall", f"1 / {times:.2f}", "≥ 1 / 1.9", _word(times <= 1.9)


def _beside_peers(name: str, medians: dict[str, Median], goal: Goal) -> Iterator[tuple[str, ...]]:
    mine = medians[name]
    wall = {"pyinfra": goal.pyinfra, "ansible": goal.ansible}
    cpu = {"pyinfra": goal.pyinfra_cpu, "ansible": goal.ansible_cpu}
    for other in (other for other in wall if other in medians):
        peer = medians[other]
        yield name, *_ratio(f"{other}, wall", peer.wall / mine.wall, wall[other])
        yield name, *_ratio(f"{other}, CPU", peer.own_cpu / mine.own_cpu, cpu[other])


def _ratio(what: str, ratio: float, goal: float | None) -> tuple[str, ...]:
    if goal is None:
        return what, f"{ratio:.1f} ×", "-", ""
    return what, f"{ratio:.1f} ×", f"≥ {goal:g}", _word(ratio >= goal)


def _word(met: bool) -> str:
    return "met" if met else "missed"


def _median(figures: Sequence[Figures], imports: float) -> Median:
    peaks = [one.peak for one in figures if one.peak is not None]
    return Median(
        statistics.median(one.wall for one in figures),
        statistics.median(one.cpu for one in figures),
        imports,
        statistics.median(peaks) if peaks else None,
        len(figures),
    )


if __name__ == "__main__":
    try:
        main()
    except (LabError, peers.PeerFailed, RunFailed) as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        sys.exit("interrupted; nothing of the bed stays")
