"""The examples of clusters: their plans as text, and each of them made on simulated hosts.

`python -m tests.clusters.test_examples` writes the plans anew.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
import yaml
from tests import virtual

from kubexm.app import health, known, places, planning, runs
from kubexm.app.execution import Front
from kubexm.app.params import (
    ClusterParams,
    Operation,
    OperationParams,
    PlanParams,
    ResumeParams,
    RunParams,
)
from kubexm.app.reaching import Reach
from kubexm.app.runs import RunOutcome
from kubexm.common.paths import Home
from kubexm.engine.bus import Subscription
from kubexm.plan import events
from kubexm.plan.graph import ExecutionGraph
from kubexm.plan.text import as_text
from kubexm.resource import bundle_archive
from kubexm.resource.bundle_manifest import Manifest
from kubexm.resource.store import Store
from kubexm.runtime.build import Runtime, RuntimeConfig
from kubexm.sim import World
from kubexm.spec.description import as_known, describe
from kubexm.step.health_look import Told

EXAMPLES = sorted((Path(__file__).parents[2] / "examples" / "clusters").glob("*.yaml"))
PLANS = Path(__file__).parent / "plans"
BUNDLED = frozenset({"air-gapped"})
"""Examples that are made out of a bundle."""
UNCONNECTED = frozenset({"no-network"})
"""Examples to which the operator still has to bring a network of pods."""
SECRETS = {"ETCD_CLIENT_KEY": "a key", "REGISTRY_PASSWORD": "a password"}
HOME = "/srv/kubexm"

each_example = pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)


@pytest.fixture(autouse=True, scope="module")
def environment() -> Iterator[None]:
    """The same for everybody, since some of it is part of plans."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**SECRETS, "KUBEXM_HOME": HOME, "HOME": "/srv"}.items():
            patch.setenv(name, value)
        yield


def source(
    path: Path, operation: Operation = "create-cluster", bundle: Path = Path("bundle.tar.zst")
) -> PlanParams:
    given = bundle if path.stem in BUNDLED else None
    return PlanParams(OperationParams(ClusterParams(path), operation, given))


def bundle_in(home: Path) -> Path:
    """A bundle with nothing in it: simulated hosts get stand-ins of what it would bring."""
    home.mkdir(parents=True, exist_ok=True)
    empty = Manifest(kubernetes=(), architectures=(), artifacts={}, images={}, blobs={})
    for _ in bundle_archive.written(empty, Store(home / "artifacts"), home / "b.tar.zst"):
        pass
    return home / "b.tar.zst"


def drawn(path: Path) -> str:
    planned = planning.plan(source(path))
    lines = [as_text(as_known(planned.graph, planned.hosts), describe)]
    lines += [f"warning: {warning.message}\n" for warning in planned.warnings]
    return "\n".join(lines)


def test_there_are_enough_of_them() -> None:
    assert len(EXAMPLES) >= 20


@each_example
def test_the_plan_of_an_example_is_as_it_was_read(path: Path) -> None:
    assert drawn(path) == (PLANS / f"{path.stem}.txt").read_text()


class Example(msgspec.Struct, frozen=True):
    """An example that was made on simulated hosts, and what it has changed on them."""

    file: Path
    home: Path
    outcome: RunOutcome
    difference: dict[str, set[str]]

    def made(self, operation: Operation = "create-cluster") -> RunOutcome:
        return made(self.file, self.home, operation)


@pytest.fixture(
    scope="module",
    params=[pytest.param(path, marks=pytest.mark.xdist_group(path.stem)) for path in EXAMPLES],
    ids=[path.stem for path in EXAMPLES],
)
def example(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Example:
    home = tmp_path_factory.mktemp(request.param.stem)
    file = hastened(request.param, home)
    outcome = made(file, home)
    return Example(file, home, outcome, difference(outcome))


def hastened(path: Path, place: Path) -> Path:
    """The same cluster with keys that are made in no time, beside the files that its file names."""
    data = yaml.safe_load(path.read_text())
    data["spec"]["kubernetes"].setdefault("certificates", {})["algorithm"] = "ECDSA-P256"
    (place / "files").symlink_to(path.parent / "files")
    (place / path.name).write_text(yaml.safe_dump(data))
    return place / path.name


def made(path: Path, home: Path, operation: Operation = "create-cluster") -> RunOutcome:
    params = RunParams(source(path, operation, bundle_in(home)), simulate=True)
    return virtual.hurried(runs.run(params, Front(), Home(home, home, home)))


def told(outcome: RunOutcome, home: Home) -> list[Told]:
    """What a cluster says of its health, but for what simulated hosts have no sense of."""

    async def asked(world: World) -> list[Told]:
        cluster = known.cluster(home, outcome.graph.name)
        with closing(Reach(home, None, Front().vault, world)) as reach:
            ways = [reach.host(host) for host in cluster.hosts]
            async with Runtime.build(RuntimeConfig(hosts=ways)) as runtime:
                return await health.asked(runtime, cluster)

    assert outcome.world is not None
    with closing(World.open(outcome.world)) as world:
        found = asyncio.run(asked(world))
    return [one for one in found if one.check not in ("certificates", "dns")]


def difference(outcome: RunOutcome) -> dict[str, set[str]]:
    """What of each host is not as it was delivered; the notes of kubexm itself set aside."""
    assert outcome.world is not None
    world = World.open(outcome.world)
    try:
        names = ("control-node", *sorted(outcome.graph.hosts))
        found = {name: {*world.host(name).difference()} for name in names}
    finally:
        world.close()
    return {
        name: {key for key in _counted(keys) if not key.startswith("/var/lib/kubexm")}
        for name, keys in found.items()
    }


def _counted(keys: set[str]) -> Iterator[str]:
    """The same with routes numbered: which pods are where goes by who happens to join first."""
    routes = sorted(key for key in keys if key.startswith("route:"))
    yield from keys.difference(routes)
    yield from (f"route {number} of {len(routes)}" for number, _ in enumerate(routes, 1))


@pytest.mark.slow
def test_an_example_is_made_once_and_taken_away_without_a_trace(example: Example) -> None:
    first, again = example.outcome, example.made()
    found = told(first, Home(example.home, example.home, example.home))
    gone, twice = example.made("delete-cluster"), example.made("delete-cluster")

    assert (first.result.status, first.result.degraded) == ("Success", False)
    assert first.result.changed > 0
    assert (again.result.status, again.result.changed) == ("Success", 0)
    ill = {one.check for one in found if one.grade != "well"}
    assert ill == ({"node", "workloads", "pods"} if example.file.stem in UNCONNECTED else set())
    assert {one.check for one in found} >= {"api", "endpoint", "node", "workloads", "pods"}
    assert gone.result.status == "Success"
    assert {host: keys for host, keys in difference(gone).items() if keys} == {}
    assert (twice.result.status, twice.result.changed) == ("Success", 0)


@pytest.mark.slow
def test_an_example_that_was_killed_in_the_middle_ends_like_any_other(
    example: Example, tmp_path: Path
) -> None:
    file, graph = hastened(example.file, tmp_path), example.outcome.graph
    home = tmp_path / "killed"
    half = len([*_units(graph)]) // 2
    assert _killed(file, home, after=half) == signal.SIGKILL
    (task,) = _tasks(home, graph.name)

    resumed = virtual.hurried(runs.resume(ResumeParams(task), Front(), Home(home, home, home)))

    assert resumed.result.status == "Success"
    assert difference(resumed) == example.difference
    assert made(file, home).result.changed == 0


def _units(graph: ExecutionGraph) -> Iterator[tuple[str, str]]:
    return ((node.id, host) for node in graph for host in node.hosts)


def _tasks(home: Path, name: str) -> list[str]:
    with places.open_store(home / "worlds" / name / places.DATABASE) as store:
        return [run.id for run in store.runs()]


def _killed(path: Path, home: Path, *, after: int) -> int:
    """Make an example in a process that is killed after so many units; the signal it ended by."""
    if (pid := os.fork()) == 0:
        try:
            front = Front(shows=(_Killer(after).show,))
            params = RunParams(source(path, bundle=bundle_in(home)), simulate=True)
            virtual.hurried(runs.run(params, front, Home(home, home, home)))
        finally:
            os._exit(0)
    return os.WTERMSIG(os.waitpid(pid, 0)[1])


class _Killer:
    """Ends its own process without a word."""

    def __init__(self, after: int) -> None:
        self._left = after

    async def show(self, subscription: Subscription, _: ExecutionGraph) -> None:
        async for event in subscription:
            if isinstance(event, events.UnitFinished):
                self._left -= 1
            if self._left <= 0:
                os.kill(os.getpid(), signal.SIGKILL)


def write_anew() -> None:
    os.environ.update(SECRETS, KUBEXM_HOME=HOME, HOME="/srv")
    for path in EXAMPLES:
        (PLANS / f"{path.stem}.txt").write_text(drawn(path))


if __name__ == "__main__":
    write_anew()
