"""A deleted cluster leaves nothing behind, whatever became of its file and of its hosts."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.app.test_kubeconfig import names, of
from tests.cli.answers import Answer, Kubexm

from kubexm.app import brought, planning
from kubexm.app.params import ClusterParams, OperationParams, PlanParams
from kubexm.app.runs import RunOutcome
from kubexm.cli import asking, running
from kubexm.common.paths import Home
from kubexm.plan import GraphExecutionResult, build
from kubexm.plan.result import Status
from kubexm.sim import World
from kubexm.store import Run, Store

FILE = """
apiVersion: kubexm.io/v1alpha1
kind: Cluster
metadata: {{name: demo}}
spec:
  hosts:
    - {{name: control1, address: 10.0.0.11, arch: amd64}}
{hosts}
  kubernetes: {{version: v1.36.4, certificates: {{algorithm: ECDSA-P256}}}}
  network: {{plugin: routed}}
{more}
"""
WORKER = "    - {{name: worker{0}, address: 10.0.0.2{0}, arch: amd64}}"
BACKUP = "  etcd: {kind: systemd, backup: {every: 6h, keep: 3, directory: %s}}"
MIRROR = "  containerRuntime: {registries: {docker.io: {mirrors: ['https://mirror.example']}}}"
DELETE = ("delete", "cluster", "demo", "--simulate")
CREATE = ("create", "cluster", "--simulate", "-f")


class Site:
    """A cluster file, and the simulated hosts of its cluster."""

    def __init__(self, kubexm: Kubexm, home: Path, file: Path) -> None:
        self.kubexm = kubexm
        self.home = home
        self.file = file
        self.world = home / "data" / "worlds" / "demo"

    def write(self, *workers: int, more: str = "") -> Path:
        hosts = "\n".join(WORKER.format(number) for number in workers)
        self.file.write_text(FILE.format(hosts=hosts, more=more))
        self._settle()
        return self.file

    def _settle(self) -> None:
        """Have the world be that of the file, with the hosts as they are."""
        (self.world / "world.json").unlink(missing_ok=True)
        planned = planning.plan(PlanParams(OperationParams(ClusterParams(self.file))))
        World.create(self.world, planned.world).close()

    def create(self, *workers: int, more: str = "") -> Answer:
        return self.kubexm(*CREATE, self.write(*workers, more=more))

    @contextmanager
    def opened(self) -> Iterator[World]:
        world = World.open(self.world)
        try:
            yield world
        finally:
            world.close()

    def stop(self, host: str) -> None:
        with self.opened() as world:
            world.host(host).stop()

    def left(self) -> dict[str, list[str]]:
        """What of each host is not as it was delivered."""
        names = ("control-node", "control1", "worker1", "worker2")
        with self.opened() as world:
            found = {name: sorted(world.host(name).difference()) for name in names}
        return {name: keys for name, keys in found.items() if keys}

    def in_ledger(self) -> dict[str, frozenset[str]]:
        with Store.open(self.world / "kubexm.db") as store:
            return store.in_ledger("demo")

    def known(self) -> list[str]:
        found = json.loads(self.kubexm("get", "clusters", "-o", "json").out)["clusters"]
        return [one["state"] for one in found]


@pytest.fixture
def site(kubexm: Kubexm, home: Path, tmp_path: Path) -> Site:
    return Site(kubexm, home, tmp_path / "cluster.yaml")


@pytest.mark.slow
@pytest.mark.parametrize("by_file", [False, True])
def test_what_the_file_has_no_more_is_deleted_too(site: Site, by_file: bool) -> None:
    site.create(1, more="\n".join((BACKUP % "/var/backups/first", MIRROR)))
    site.create(1, more=BACKUP % "/var/backups/second")
    assert site.create(1, more="  etcd: {kind: systemd}").code == 0
    for left in ("backups/first", "certs.d/docker.io"):
        assert any(left in key for key in site.left()["control1"])

    given = ("-f", site.file, "--simulate") if by_file else ("demo", "--simulate")
    gone = site.kubexm("delete", "cluster", *given)

    assert gone.code == 0
    assert site.left() == {}
    assert site.in_ledger() == {}
    assert site.known() == []


@pytest.mark.slow
def test_a_host_that_was_dropped_before_there_was_a_control_plane_is_deleted_too(
    site: Site,
) -> None:
    never = "  hooks: {container-runtime: {post: [{name: no, command: {argv: ['false']}}]}}"
    assert site.create(1, 2, more=never).code == 1
    assert site.create(1).code == 0
    assert "worker2" in site.left()

    assert site.kubexm(*DELETE).code == 0
    assert site.left() == {}
    assert site.in_ledger() == {}


@pytest.mark.slow
def test_a_host_that_a_corrected_file_has_no_more_is_named_unless_it_is_gone(site: Site) -> None:
    never = "  hooks: {container-runtime: {post: [{name: no, command: {argv: ['false']}}]}}"
    failed = site.kubexm(*CREATE, site.write(1, 2, more=never), "-o", "json")
    task = json.loads(failed.out)["task"]["id"]
    assert site.kubexm("task", "retry", task, "-f", site.write(1)).code == 0

    refused = site.kubexm(*DELETE)

    assert refused.code == 2
    assert "has changed `worker2` for the cluster" in refused.err
    assert site.kubexm("delete", "cluster", "-f", site.write(1, 2), "--simulate").code == 0
    assert site.left() == {}


@pytest.mark.slow
def test_what_nothing_has_undone_is_not_forgotten(site: Site) -> None:
    site.create(1, more=BACKUP % "/var/backups/first")
    for part in site.world.glob("kubexm.db*"):
        part.unlink()
    site.write(1, more="  etcd: {kind: systemd}")

    kept = site.kubexm("delete", "cluster", "-f", site.file, "--simulate")

    assert kept.code == 1
    assert "directory:/var/backups/first" in kept.out
    site.write(1, more=BACKUP % "/var/backups/first")
    assert site.kubexm("delete", "cluster", "-f", site.file, "--simulate").code == 0
    assert site.left() == {}


@pytest.mark.slow
def test_a_host_that_is_gone_for_good_does_not_keep_its_cluster(site: Site) -> None:
    site.create(1, 2)
    site.stop("worker2")
    half = site.kubexm(*DELETE)
    assert half.code == 5
    assert "delete the cluster with `--without worker2` added" in half.out
    assert site.known() == ["half deleted"]

    unknown = site.kubexm(*DELETE, "--without", "wroker2")
    gone = site.kubexm(*DELETE, "--without", "worker2")

    assert (unknown.code, gone.code) == (2, 0)
    assert "did you mean `worker2`?" in unknown.err
    assert "worker2" not in gone.out
    assert (site.known(), site.in_ledger()) == ([], {})
    assert [*site.left()] == ["worker2"]
    assert site.create(1).code == 0


@pytest.mark.slow
def test_a_cluster_of_which_no_host_is_left_can_be_forgotten(site: Site) -> None:
    site.create(1)

    gone = site.kubexm(*DELETE, "--without", "worker1", "--without", "control1")

    assert gone.code == 0
    assert (site.known(), site.in_ledger()) == ([], {})


@pytest.mark.slow
def test_who_has_deleted_half_of_a_cluster_may_make_another_of_other_hosts(site: Site) -> None:
    site.create(1)
    site.stop("worker1")
    site.kubexm(*DELETE)

    refused = site.create(1)
    other = site.create(2, more="  dns: {domain: other.local}")

    assert refused.code == 2
    assert "`worker1` is still a member of the cluster that was half deleted" in refused.err
    assert "kubexm delete cluster demo" in refused.err
    assert other.code == 0
    assert "but the cluster has" in site.create(2).err
    assert "`worker1` is still a member" in site.create(1, 2).err
    assert site.kubexm(*DELETE, "--without", "worker1").code == 0
    assert [*site.left()] == ["worker1"]


@pytest.mark.slow
def test_a_cluster_stays_half_deleted_when_a_part_of_another_is_made(site: Site) -> None:
    site.create(1)
    site.stop("worker1")
    site.kubexm(*DELETE)

    part = site.kubexm(*CREATE, site.write(2), "--only", "preflight")

    assert part.code == 0
    assert site.known() == ["half deleted"]


@pytest.mark.slow
def test_a_damaged_world_is_nobody_elses_trouble(site: Site) -> None:
    bad = site.home / "data" / "worlds" / "bad" / "kubexm.db"
    bad.parent.mkdir(parents=True)
    bad.write_bytes(b"garbage" * 1000)

    made = site.create(1)
    listed = site.kubexm("get", "clusters")

    assert (made.code, listed.code) == (0, 1)
    assert "warning: " in listed.err
    assert "demo" in listed.out
    assert str(bad) in listed.err
    assert site.kubexm("get", "cluster", "demo").code == 0
    assert site.kubexm("get", "cluster", "other").code == 1
    assert site.kubexm(*DELETE).code == 0


def test_what_is_wrong_is_told_before_it_is_asked_whether_that_is_meant(site: Site) -> None:
    neither = site.kubexm("delete", "cluster")
    both = site.kubexm("delete", "cluster", "demo", "-f", site.write())

    unknown = site.kubexm("delete", "cluster", "-f", site.file, "--without", "wroker1")
    half = site.kubexm("delete", "cluster", "-f", site.file, "--world", site.world)

    assert (neither.code, both.code, unknown.code, half.code) == (2, 2, 2, 2)
    assert "found neither of the name of a cluster and `--file`" in neither.err
    assert "found both of the name of a cluster and `--file`" in both.err
    assert "the cluster has no host of that name" in unknown.err
    assert "`--world` has no effect without `--simulate`" in half.err


@pytest.mark.parametrize(
    ("of_theirs", "of_ours", "told"),
    [
        (
            "address: 10.0.0.21",
            "address: 10.9.0.21",
            "8:7: spec.hosts[1]: `worker1` has `10.9.0.21`, but the cluster knows it by `10.0",
        ),
        (
            "{name: control1, address: 10.0.0.11, arch: amd64}",
            "{name: 'front[1:2]', address: '10.0.0.1[1:2]', arch: amd64}",
            "7:5: spec.hosts: none of these hosts is one of the cluster, which has `control1`",
        ),
    ],
    ids=["elsewhere", "others"],
)
def test_no_cluster_is_deleted_by_the_file_of_another_of_its_name(
    site: Site, of_theirs: str, of_ours: str, told: str
) -> None:
    site.create(*([1] if "10.0.0.21" in of_theirs else []))
    site.file.write_text(site.file.read_text().replace(of_theirs, of_ours))

    refused = site.kubexm("delete", "cluster", "-f", site.file, "--simulate")

    assert refused.code == 2
    assert "is of another cluster than the `demo` that is known" in refused.err
    assert f"cluster.yaml:{told}" in refused.err
    assert "kubexm delete cluster demo" in refused.err
    assert site.known() == ["created"]


@pytest.mark.slow
def test_a_file_that_won_and_lost_hosts_deletes_its_cluster(site: Site) -> None:
    site.create(1)
    file = site.write(2)

    assert site.kubexm("delete", "cluster", "-f", file, "--simulate").code == 0
    assert site.left() == {}


def test_a_host_that_is_gone_may_have_another_address_by_now(site: Site) -> None:
    site.create(1)
    site.file.write_text(site.file.read_text().replace("10.0.0.21", "10.9.0.21"))
    given = ("-f", site.file, "--simulate", "--check")

    another = "is of another cluster"
    assert another in site.kubexm("delete", "cluster", *given).err
    gone = site.kubexm("delete", "cluster", *given, "--without", "worker1")
    assert another not in gone.err


def test_who_is_asked_for_the_name_of_a_cluster_is_told_where_it_lies(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def answered(question: str, option: str) -> str:
        asked.append(question)
        return "other"

    monkeypatch.setattr(asking, "answer", answered)

    refused = site.kubexm("delete", "cluster", "-f", site.write(1, 2, 3))

    assert refused.code == 1
    hosts = "`control1 (10.0.0.11)`, `worker1 (10.0.0.21)`, `worker2 (10.0.0.22)` and 1 more"
    assert asked == [f"delete cluster `demo` with all its data, on {hosts}? Type its name:"]


def ended(status: Status = "Success", **of_run: object) -> RunOutcome:
    """The end of a deletion, of a cluster on real hosts unless it is said otherwise."""
    run = Run("t", "demo", status, "forward", datetime.now(UTC), **of_run)  # type: ignore[arg-type]  # as given
    result = GraphExecutionResult("demo", status, {}, degraded=run.degraded)
    return RunOutcome(build("demo", [], hosts=()), result, run, operation="delete-cluster")


@pytest.fixture
def kubectl(home: Path, tmp_path: Path) -> Path:
    """A file by which kubectl was let in to the cluster."""
    path = tmp_path / "config"
    brought.bring(Home.from_environment(), "demo", of("demo"), path)
    return path


def test_kubectl_forgets_a_cluster_that_was_deleted(
    kubectl: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asyncio.run(running.forget(ended(), Home.from_environment()))
    asyncio.run(running.forget(ended(), Home.from_environment()))

    assert capsys.readouterr().err == f"`demo` was taken out of {kubectl}\n"
    assert names(kubectl) == {"clusters": [], "users": [], "contexts": []}


@pytest.mark.parametrize(
    "outcome",
    [ended("Failed"), ended(degraded=True), ended(world="/w")],
    ids=["failed", "half", "simulated"],
)
def test_kubectl_forgets_nothing_of_which_something_is_left(
    kubectl: Path, outcome: RunOutcome
) -> None:
    asyncio.run(running.forget(outcome, Home.from_environment()))

    assert names(kubectl)["contexts"] == ["demo"]


def test_a_file_of_kubectl_that_stays_as_it_is_is_a_warning_once_the_cluster_is_deleted(
    kubectl: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kubectl.write_text("- no kubeconfig\n")

    asyncio.run(running.forget(ended(), Home.from_environment()))

    said = capsys.readouterr().err
    assert said.startswith(f"warning: `demo` is still in `{kubectl}`: ")
    assert "delete-context demo" in said
