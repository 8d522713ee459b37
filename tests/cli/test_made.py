"""What a creation tells at its end: the cluster, the way in, and commands that work."""

from __future__ import annotations

import json
import shlex
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.app.test_kubeconfig import of
from tests.cli.answers import Kubexm
from tests.cli.test_clusters import FILE

from kubexm.app import brought, kubectl_config, planning
from kubexm.app.known import KnownCluster
from kubexm.app.params import ClusterParams, OperationParams, PlanParams
from kubexm.cli.cluster import let_in
from kubexm.cli.made import Made
from kubexm.common.about import About
from kubexm.common.paths import Home
from kubexm.sim import SimHost, World
from kubexm.spec.inventory import InventoryHost

RUNC = "/usr/local/bin/runc"
CREATE = ("create", "cluster", "--simulate", "-f")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "cluster.yaml"
    path.write_text(FILE)
    return path


def real(kubeconfig: Path) -> KnownCluster:
    roles: dict[str, tuple[str, ...]] = {"control-plane": ("c1",), "etcd": ("e1",)}
    server, outside = "https://api.demo.kubexm.internal:6443", ("https://10.0.0.11:6443",)
    about = About("v1.36.4", "haproxy", server, outside, "own", "routed", roles, str(kubeconfig))
    hosts = [
        InventoryHost("c1", "10.0.0.11", roles=("control-plane",)),
        InventoryHost("e1", "10.0.0.31", roles=("etcd",)),
    ]
    return KnownCluster("demo", "created", about, hosts, datetime.now(UTC), "t", "t")


def spoiled(home: Path, file: Path) -> SimHost:
    """The worker of a new world, with a directory where a program of its own belongs."""
    params = PlanParams(OperationParams(ClusterParams(file)))
    host = World.create(home / "data/worlds/demo", planning.plan(params).world).host("worker1")
    host.transfer(lambda files: files.make_directory(RUNC, parents=True), full=False)
    return host


def test_a_person_sees_nodes_the_endpoint_and_that_it_is_simulated(
    kubexm: Kubexm, file: Path
) -> None:
    told = kubexm(*CREATE, file).out

    assert "cluster `demo` is there, simulated" in told
    assert "endpoint:    https://10.0.0.11:6443 (single)" in told
    assert "control1  10.0.0.11  control-plane  v1.36.4" in told
    assert "worker1   10.0.0.21  worker         v1.36.4" in told
    assert "kubexm delete cluster demo --simulate  take the cluster away" in told
    assert "kubexm health" not in told
    assert "kubexm kubeconfig" not in told


@pytest.mark.parametrize("elsewhere", [False, True])
def test_every_command_that_is_offered_works(
    kubexm: Kubexm, file: Path, tmp_path: Path, elsewhere: bool
) -> None:
    world = ("--world", tmp_path / "a world") if elsewhere else ()
    made = json.loads(kubexm(*CREATE, file, *world, "-o", "json").out)["cluster"]

    assert [word.split()[1] for word in made["next"]] == ["get", "delete"]
    for command in made["next"]:
        assert kubexm(*shlex.split(command)[1:]).code == 0, command
    assert "there are no clusters" in kubexm("get", "clusters").out


def test_a_program_gets_the_same(kubexm: Kubexm, file: Path) -> None:
    made = json.loads(kubexm(*CREATE, file, "-o", "json").out)["cluster"]

    assert (made["name"], made["state"], made["kubernetes"]) == ("demo", "created", "v1.36.4")
    assert made["kubeconfig"] is None
    assert made["endpoint"]["servers"] == ["https://10.0.0.11:6443"]
    assert made["hosts"][1] == {
        "name": "worker1",
        "address": "10.0.0.21",
        "roles": ["worker"],
        "version": "v1.36.4",
        "leftOut": False,
    }


@pytest.mark.slow
def test_a_host_is_left_out_and_comes_in_when_the_run_is_opened_again(
    kubexm: Kubexm, file: Path, home: Path
) -> None:
    worker = spoiled(home, file)
    without = kubexm(*CREATE, file, "-o", "json")
    told = json.loads(without.out)
    worker.transfer(lambda files: files.remove_tree(RUNC), full=False)
    again = kubexm("task", "retry", told["task"]["id"])

    assert (without.code, again.code) == (5, 0)
    assert [(host["version"], host["leftOut"]) for host in told["cluster"]["hosts"]] == [
        ("v1.36.4", False),
        (None, True),
    ]
    assert "cluster `demo` is there, simulated\n" in again.out


def test_a_host_that_was_left_out_is_told_twice(tmp_path: Path) -> None:
    told = Made(real(tmp_path / "none"), ("e1",), {"kubexm": ""}).text()

    assert told.startswith("cluster `demo` is there, without e1\n")
    assert "e1    10.0.0.31  etcd           left out" in told


@pytest.mark.parametrize("words", [("--only", "system"), ("--check",)])
def test_what_makes_no_whole_cluster_tells_of_none(
    kubexm: Kubexm, file: Path, words: tuple[str, ...]
) -> None:
    told = kubexm(*CREATE, file, *words)

    assert told.code == 0
    assert "cluster `demo`" not in told.out


def test_neither_does_a_failure_nor_a_deletion(kubexm: Kubexm, file: Path) -> None:
    file.write_text(f"{FILE}  preflight: {{controlPlaneMemoryMib: 999999}}\n")
    failed = kubexm(*CREATE, file)
    deleted = kubexm("delete", "cluster", "demo", "--simulate")

    assert (failed.code, deleted.code) == (1, 0)
    assert "is there" not in failed.out + deleted.out


def test_a_real_cluster_has_a_way_in_and_more_commands(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "admin.conf"
    commands = {"kubexm health demo": "ask it how it is"}
    made = Made(real(kubeconfig), (), commands)
    assert "kubeconfig" not in made.text()
    assert made.data()["kubeconfig"] is None
    kubeconfig.touch()

    lines = made.text().splitlines()

    assert lines[0] == "cluster `demo` is there"
    assert "endpoint:    https://api.demo.kubexm.internal:6443 (haproxy)" in lines
    assert "reached at:  https://10.0.0.11:6443" in lines
    assert f"kubeconfig:  {kubeconfig}" in lines
    assert "e1    10.0.0.31  etcd           -" in lines
    assert lines[-1] == "  kubexm health demo  ask it how it is"


@pytest.mark.parametrize(
    ("flag", "why"),
    [("--simulate", "a simulated cluster lets nobody in"), ("--check", "nothing is made")],
)
def test_who_wants_to_merge_a_kubeconfig_that_can_not_be_is_told(
    kubexm: Kubexm, file: Path, home: Path, flag: str, why: str
) -> None:
    refused = kubexm("create", "cluster", "-f", file, "--merge-kubeconfig", flag)

    assert refused.code == 2
    assert f"`--merge-kubeconfig` has no effect with `{flag}`: {why}" in refused.err
    assert not home.exists()


def test_a_file_that_nothing_can_be_merged_into_refuses_before_anything_begins(
    kubexm: Kubexm, file: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = file.with_name("other")
    other.write_text("- no kubeconfig\n")
    monkeypatch.setenv("KUBECONFIG", str(other))

    refused = kubexm("create", "cluster", "-f", file, "--merge-kubeconfig")

    assert refused.code == 2
    assert f"`{other}` is no kubeconfig" in refused.err
    assert not home.exists()


def test_kubectls_entries_of_another_cluster_of_the_name_refuse_before_anything_begins(
    kubexm: Kubexm, file: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = file.with_name("other")
    kubectl_config.merge(of("demo"), other)
    monkeypatch.setenv("KUBECONFIG", str(other))

    refused = kubexm("create", "cluster", "-f", file, "--merge-kubeconfig")

    assert refused.code == 2
    assert "the cluster `demo` is at `https://10.0.0.1:6443`" in refused.err
    assert "delete-cluster demo" in refused.err
    assert not home.exists()


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("known_by", ["server", "authority", "note"])
def test_kubectls_entries_of_the_same_cluster_are_no_hindrance(
    file: Path, tmp_path: Path, known_by: str
) -> None:
    there, about, home = tmp_path / "there", planned(file), Home.from_environment()
    config = of("demo")
    if known_by == "server":
        config["clusters"][0]["cluster"]["server"] = about.servers[0]
    if known_by == "authority":
        kubectl_config.merge(config, Path(about.kubeconfig))
    if known_by == "note":
        brought.bring(home, "demo", config, there)
    else:
        kubectl_config.merge(config, there)

    brought.refuse_others(home, "demo", about, there)


def planned(file: Path) -> About:
    about = planning.plan(PlanParams(OperationParams(ClusterParams(file)))).about
    assert about is not None
    return about


@pytest.mark.usefixtures("home")
def test_a_way_in_that_can_not_be_merged_is_a_warning_once_the_cluster_is_made(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    let_in(ClusterParams(file))
    of_nobody = capsys.readouterr().err
    file.unlink()
    let_in(ClusterParams(file))
    of_no_file = capsys.readouterr().err

    assert of_nobody.startswith("warning: kubectl is not let in: ")
    assert of_nobody.endswith("; try again with: kubexm kubeconfig demo --merge\n")
    assert of_no_file.startswith("warning: kubectl is not let in: can't read")
    assert of_no_file.endswith("; try again with: kubexm kubeconfig NAME --merge\n")
