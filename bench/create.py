"""How long a real cluster takes to make, beside a hand-written script that does only what it must.

    python bench/create.py             both clusters: about half an hour
    python bench/create.py 1+2         only one of them

Clusters: 1+2, one control plane and two workers; 3+2, three control planes with etcd on them.
Every worker has a haproxy of its own in front of the API servers. The script is the floor:
`bench/floor` lays the same programs, images and settings on the same hosts by ssh and kubeadm, in
the best order, without a look at anything. Each run has hosts that nobody has used; who comes first
changes from round to round. It needs root, for the lab. Every figure is of this machine, now;
compare within one run, never across runs. It ends with 1 unless every goal is met; where kubexm was
quicker than the floor, nothing is known and nothing met.
"""

from __future__ import annotations

import argparse
import asyncio
import compileall
import os
import platform
import shutil
import signal
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from time import perf_counter
from typing import Any, ClassVar

import sshbed  # noqa: F401 - finds the lab
from engine import table
from sshmeter import SECONDS, RunFailed, alone
from tests.lab.cluster_control import Answer, ClusterControl

from kubexm.resource import bundle
from kubexm.resource.store import Store
from lab import building, demolition, network, requirements, roster
from lab.errors import LabError
from lab.software import making
from lab.software.bundles import NAME as BUNDLE
from lab.software.making import Wish
from lab.testing import Lab

HERE = Path(__file__).parent
PLACE = HERE.parent / ".lab-bench"
GOAL = 1.15
AGAIN = 0.1
"""Of the time of the first run, for the same command right after it."""
_MET = "met"
CLUSTERS = {"1+2": (1, 2), "3+2": (3, 2)}
FLOOR, KUBEXM = "floor", "kubexm"
_ARTIFACTS = "home/data/artifacts"
"""Where kubexm looks for its store, from the place of a control machine."""
_PIECE = 1 << 20


@dataclass(frozen=True, slots=True)
class Cluster:
    """What both are to make, and of what."""

    name: str
    planes: tuple[str, ...]
    workers: tuple[str, ...]
    software: Path
    store: Path
    """What was in the bundle, as kubexm keeps it: the floor need not unpack one either."""

    @property
    def hosts(self) -> tuple[str, ...]:
        return (*self.planes, *self.workers)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the medians of a contest say."""

    floor: float
    first: float
    again: float

    HEADERS: ClassVar = (
        *("floor s", "kubexm s", "ratio", "goal", ""),
        *("kubexm again s", "of the first", "goal", ""),
    )

    @property
    def is_met(self) -> bool:
        return {self._beside, self._again} == {_MET}

    @property
    def row(self) -> tuple[str, ...]:
        beside, again = self.first / self.floor, self.again / self.first
        return (
            *(f"{self.floor:.1f}", f"{self.first:.1f}", f"{beside:.2f} ×", f"≤ {GOAL}"),
            *(self._beside, f"{self.again:.1f}", f"{again:.2f} ×", f"≤ {AGAIN}", self._again),
        )

    @property
    def _beside(self) -> str:
        """Whoever is quicker than the floor was not measured beside one."""
        if self.first < self.floor:
            return "no floor: measure again, with nothing else running"
        return _judged(self.first, GOAL * self.floor)

    @property
    def _again(self) -> str:
        return _judged(self.again, AGAIN * self.first)


@dataclass(slots=True)
class Contest:
    """What came of one cluster so far."""

    cluster: Cluster
    seconds: dict[str, list[float]] = field(default_factory=lambda: {FLOOR: [], KUBEXM: []})
    loads: dict[str, list[float]] = field(default_factory=lambda: {FLOOR: [], KUBEXM: []})
    """Of the machine at the end of each run: two under different ones can't be compared."""
    again: list[float] = field(default_factory=list)
    """Seconds of the same command right after, which finds nothing to change."""
    told: list[tuple[float, Any]] = field(default_factory=list)
    """What kubexm said of each of its runs, with the seconds that it took."""

    def run(self, rounds: int) -> None:
        for number in range(rounds):
            turns = (self._floor, self._kubexm) if number % 2 == 0 else (self._kubexm, self._floor)
            for turn in turns:
                self._turn(turn)

    @property
    def verdict(self) -> Verdict:
        floor, ours = (statistics.median(self.seconds[who]) for who in (FLOOR, KUBEXM))
        return Verdict(floor, ours, statistics.median(self.again))

    def print(self) -> None:
        runs = len(self.told)
        print(f"\n{self.cluster.name}: {runs} round{'s' * (runs > 1)}\n")
        table(Verdict.HEADERS, [self.verdict.row])
        for who, seconds in self.seconds.items():
            runs_of = zip(seconds, self.loads[who], strict=True)
            print(
                f"\n{who}: {', '.join(f'{one:.1f} s (load {load:.0f})' for one, load in runs_of)}"
            )
        wall, told = sorted(self.told, key=lambda one: one[0])[runs // 2]
        print(f"\nof the run of {wall:.1f} s, before its first unit {_before(wall, told):.1f} s:\n")
        table(("module", "units", "from s", "to s", "work s"), list(_modules(told["result"])))
        print()
        table(("on the critical path", "host", "from s", "s", "waited s"), list(_path(told)))

    def _turn(self, turn: Callable[[Lab, Path], float]) -> None:
        """Once more by one of them, on new hosts; what is read is in memory, the disk at rest."""
        beside = self.cluster.store.parent
        with TemporaryDirectory(dir=beside) as home, _hosts(self.cluster) as hosts:
            control = ClusterControl(hosts, self.cluster.software, Path(home))
            _settle(self.cluster)
            with network.entered(hosts.site.netns):
                seconds = turn(hosts, Path(home))
            _require_cluster(control, self.cluster)
            self.loads[turn.__name__.strip("_")].append(os.getloadavg()[0])
        print(f"{self.cluster.name}, {turn.__name__.strip('_')}: {seconds:.1f} s", file=sys.stderr)

    def _floor(self, hosts: Lab, home: Path) -> float:
        members = [f"{name}={hosts.address(name)}" for name in self.cluster.hosts]
        script = (HERE / "floor" / "create.sh", self.cluster.software, hosts.site.ssh_config, home)
        seconds = _timed("bash", *map(str, script), str(len(self.cluster.planes)), *members)
        self.seconds[FLOOR].append(seconds)
        return seconds

    def _kubexm(self, hosts: Lab, home: Path) -> float:
        control = ClusterControl(hosts, self.cluster.software, home)
        roles = {"control-plane": [*self.cluster.planes], "worker": [*self.cluster.workers]}
        control.declare(roles, endpoint={"kind": "haproxy"})
        shutil.copytree(self.cluster.store, home / _ARTIFACTS, copy_function=os.link)
        seconds, answer = _created(control)
        self.seconds[KUBEXM].append(seconds)
        self.told.append((seconds, answer.data))
        again, nothing = _created(control)
        if nothing.changed():
            raise RunFailed(f"a second run changed {sorted(nothing.changed())}")
        self.again.append(again)
        return seconds


def main() -> int:
    """Hold the contests; the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("clusters", nargs="*", choices=[[], *CLUSTERS], default=[])
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    requirements.check(requirements.this_machine())
    # As an installed program is.
    compileall.compile_dir(HERE.parent / "src", quiet=1)
    software = making.make(Wish(renews=True), lambda line: print(line, file=sys.stderr))
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    print(f"{software.name}, load before: {os.getloadavg()[0]:.1f}")
    with alone(), TemporaryDirectory(prefix="kubexm-create-") as place:
        store = Path(place) / "store"
        _unpack(software, store)
        clusters = (_cluster(name, software, store) for name in options.clusters or CLUSTERS)
        verdicts = [_held(cluster, options.rounds) for cluster in clusters]
    return 0 if all(verdict.is_met for verdict in verdicts) else 1


def _held(cluster: Cluster, rounds: int) -> Verdict:
    contest = Contest(cluster)
    contest.run(rounds)
    contest.print()
    return contest.verdict


def _cluster(name: str, software: Path, store: Path) -> Cluster:
    planes, workers = CLUSTERS[name]
    names = [host.name for host in roster.roster(planes + workers)]
    return Cluster(name, tuple(names[:planes]), tuple(names[planes:]), software, store)


def _unpack(software: Path, store: Path) -> None:
    began = perf_counter()
    asyncio.run(bundle.load(software / BUNDLE, Store(store)))
    print(f"the bundle in an empty store: {perf_counter() - began:.1f} s, in no figure below")


@contextmanager
def _hosts(cluster: Cluster) -> Iterator[Lab]:
    """Hosts that nobody has used; nothing of them stays."""
    demolition.down(PLACE)
    try:
        yield Lab(building.up(PLACE, roster.roster(len(cluster.hosts)), lambda _: None))
    finally:
        demolition.down(PLACE)


def _settle(cluster: Cluster) -> None:
    for folder in (cluster.software, cluster.store):
        for path in (one for one in folder.rglob("*") if one.is_file()):
            with path.open("rb", buffering=0) as file:
                while file.read(_PIECE):
                    pass
    os.sync()


def _timed(*command: str) -> float:
    """How long a command takes; nothing that it started goes on if it fails."""
    with TemporaryFile("w+") as said:
        began = perf_counter()
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = process.wait(SECONDS)
            seconds = perf_counter() - began
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        if code:
            said.seek(0)
            raise RunFailed(f"{command[1]} exited with {code}:\n{said.read()[-1500:]}")
    return seconds


def _created(control: ClusterControl) -> tuple[float, Answer]:
    began = perf_counter()
    answer = control.create()
    seconds = perf_counter() - began
    if answer.code:
        raise RunFailed(f"kubexm exited with {answer.code}:\n{answer.err[-1500:]}")
    return seconds, answer


def _require_cluster(control: ClusterControl, cluster: Cluster) -> None:
    """Both have made the same: every node takes pods, and names are answered."""
    ready = '{.items[*].status.conditions[?(@.type=="Ready")].status}'
    nodes = control.kubectl("get", "nodes", "-o", f"jsonpath={ready}")
    answering = control.kubectl(
        *("-n", "kube-system", "get", "deployment", "coredns"),
        *("-o", "jsonpath={.status.availableReplicas}"),
    )
    if nodes.split() != ["True"] * len(cluster.hosts) or answering != "2":
        raise RunFailed(f"the cluster is not whole: nodes ready {nodes}, CoreDNS {answering} of 2")


def _judged(seconds: float, most: float) -> str:
    return _MET if seconds <= most else "missed"


def _before(wall: float, told: Any) -> float:
    """Seconds of a run in which files were read, plans made and hosts called."""
    return wall - float(told["report"]["duration"])


def _modules(result: Any) -> Iterator[tuple[str, ...]]:
    begun = datetime.fromisoformat(result["startTime"])
    units: dict[str, list[tuple[float, float]]] = {}
    for node, found in result["nodeResults"].items():
        module = node.split("/")[1]
        for unit in found["hostResults"].values():
            span = (datetime.fromisoformat(unit[end]) for end in ("startTime", "endTime"))
            start, end = ((time - begun).total_seconds() for time in span)
            units.setdefault(module, []).append((start, end))
    for module, spans in sorted(units.items(), key=lambda one: min(one[1])):
        first, last = min(start for start, _ in spans), max(end for _, end in spans)
        work = sum(end - start for start, end in spans)
        yield module, str(len(spans)), f"{first:.1f}", f"{last:.1f}", f"{work:.1f}"


def _path(told: Any) -> Iterator[tuple[str, ...]]:
    for unit in told["report"]["criticalPath"]:
        name = unit["node"].partition("/")[2]
        figures = (f"{unit[key]:.1f}" for key in ("start", "duration", "waited"))
        yield name, unit["host"], *figures


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (LabError, RunFailed) as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        sys.exit("interrupted; nothing of the lab stays")
