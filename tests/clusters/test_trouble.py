"""What becomes of a cluster when something is wrong with a host."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests import virtual
from tests.clusters.test_examples import EXAMPLES, difference, hastened, made, source
from tests.task import planned

from kubexm.app import planning, runs
from kubexm.app.execution import Front
from kubexm.app.params import DeletionParams, PlanParams, RunParams
from kubexm.common.paths import Home
from kubexm.errors import KubexmError
from kubexm.plan.result import GraphExecutionResult
from kubexm.sim import World

_RUNC = "/usr/local/bin/runc"
_EXAMPLE = next(path for path in EXAMPLES if path.stem == "three-and-two")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A world for the example that somebody may tamper with before the cluster is made."""
    monkeypatch.setenv("KUBEXM_HOME", str(tmp_path))
    planned_for = planning.plan(source(hastened(_EXAMPLE, tmp_path)))
    World.create(tmp_path / "worlds" / _EXAMPLE.stem, planned_for.world).close()
    return tmp_path


def world(home: Path) -> World:
    return World.open(home / "worlds" / _EXAMPLE.stem)


def changed(home: Path) -> dict[str, int]:
    """How often each host was changed."""
    found = world(home)
    return {name: len(cells) for name, cells in found.mutations().items() if cells}


@pytest.mark.slow
def test_a_worker_that_fails_leaves_the_others_alone_and_comes_in_later(home: Path) -> None:
    host = world(home).host("worker2")
    host.transfer(lambda files: files.make_directory(_RUNC, parents=True), full=False)

    without = made(home / _EXAMPLE.name, home).result
    host = world(home).host("worker2")
    host.transfer(lambda files: files.remove_tree(_RUNC), full=False)
    mended = made(home / _EXAMPLE.name, home).result

    assert (without.status, without.degraded) == ("Success", True)
    assert [*without.quarantined] == ["worker2"]
    assert (mended.status, mended.degraded) == ("Success", False)
    joined = mended.node_results["create-cluster/workers/join/node"].host_results
    assert {name: one.changed for name, one in joined.items()} == {
        "worker1": False,
        "worker2": True,
    }


@pytest.mark.slow
def test_a_worker_that_is_dead_is_left_out_and_comes_in_later(home: Path) -> None:
    world(home).host("worker2").stop()
    without = made(home / _EXAMPLE.name, home).result
    world(home).host("worker2").revive()
    mended = made(home / _EXAMPLE.name, home).result

    assert (without.status, without.degraded) == ("Success", True)
    assert (mended.status, mended.degraded) == ("Success", False)


def test_a_dead_control_plane_refuses_the_run_before_the_first_change(home: Path) -> None:
    world(home).host("control2").stop()
    before = changed(home)

    try:
        status = made(home / _EXAMPLE.name, home).result.status
    except KubexmError:
        status = "Failed"

    assert status == "Failed"
    assert changed(home) == before


def test_a_host_that_does_not_pass_its_checks_stops_all_before_the_first_change(
    home: Path,
) -> None:
    host = world(home).host("worker1")
    host.transfer(lambda files: files.write("/proc/meminfo", b"MemTotal: 204800 kB\n"), full=False)
    before = changed(home)

    result = made(home / _EXAMPLE.name, home).result

    assert result.status == "Failed"
    assert "memory" in result.message
    assert {name: count for name, count in changed(home).items() if count != before.get(name)} == {}


def test_hosts_of_a_cluster_are_not_taken_for_another_that_the_file_calls_otherwise(
    home: Path,
) -> None:
    file = home / _EXAMPLE.name
    made(file, home)
    before = changed(home)
    other = f"name: {_EXAMPLE.stem}"
    file.write_text(file.read_text().replace(other, "name: renamed", 1))
    (home / "worlds" / _EXAMPLE.stem).rename(home / "worlds" / "renamed")

    result = made(file, home).result

    assert result.status == "Failed"
    said = f"other-cluster: a member of another cluster that kubexm has made: `{_EXAMPLE.stem}`"
    assert said in result.message
    found = World.open(home / "worlds" / "renamed").mutations()
    assert {name: len(cells) for name, cells in found.items() if cells} == before


def test_two_hosts_that_are_one_are_refused(home: Path) -> None:
    for name in ("worker1", "worker2"):
        host = world(home).host(name)
        host.transfer(lambda files: files.write("/etc/machine-id", b"a" * 32 + b"\n"), full=False)

    with pytest.raises(KubexmError, match="unique-machine-ids"):
        made(home / _EXAMPLE.name, home)


@pytest.mark.slow
def test_half_a_member_is_taken_out_before_what_that_needs_goes(tmp_path: Path) -> None:
    argv = ["rm", "/etc/kubernetes/pki/ca.key"]
    lost = {"name": "lost", "runOnRoles": ["control-plane"], "command": {"argv": argv}}
    file = planned.written(tmp_path, onFailure="rollback", hooks={"pki": {"post": [lost]}})

    back = planned.made(file)
    left = {host: keys for host, keys in difference(back).items() if keys}
    gone = planned.made(file, operation="delete-cluster")

    assert back.result.status == "RolledBack"
    assert "create-cluster/control-plane/init/cluster" in back.result.message
    assert left == {}
    assert gone.result.status == "Success"
    assert {host: keys for host, keys in difference(gone).items() if keys} == {}


@pytest.mark.slow
def test_a_cluster_that_was_rolled_back_can_be_deleted_and_leaves_no_trace(tmp_path: Path) -> None:
    never = {"name": "never", "runOnRoles": ["control-plane"], "command": {"argv": ["false"]}}
    hooks = {"control-plane": {"post": [never]}}
    file = planned.written(tmp_path, onFailure="rollback", hooks=hooks)

    back = planned.made(file).result
    gone = planned.made(file, operation="delete-cluster")

    assert back.status == "RolledBack"
    assert back.node_results["create-cluster/control-plane/join/cp2"].host_results["cp2"].changed
    assert gone.result.status == "Success"
    assert {host: keys for host, keys in difference(gone).items() if keys} == {}


@pytest.mark.slow
def test_a_deletion_that_fails_takes_nothing_back_whatever_the_file_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBEXM_HOME", str(tmp_path))
    file = planned.written(tmp_path, onFailure="rollback")
    created = virtual.hurried(
        runs.run(RunParams(source(file), simulate=True), Front(), Home.from_environment())
    )

    by_file = planning.plan(source(file, "delete-cluster"))
    by_name = planning.plan(PlanParams(DeletionParams("demo", created.world)))

    assert created.graph.on_failure == "rollback"
    assert by_file.graph.on_failure == by_name.graph.on_failure == "isolate"


@pytest.mark.slow
def test_a_worker_that_dies_later_holds_up_nobody_and_catches_up(tmp_path: Path) -> None:
    before = planned.made(_one_and_two(tmp_path))
    with planned.world(before) as hosts:
        hosts.host("w2").stop()
    file = _one_and_two(tmp_path, system={"sysctl": {"vm.swappiness": "5"}})

    without = planned.made(file).result
    with planned.world(before) as hosts:
        hosts.host("w2").revive()
    whole = planned.made(file).result

    ready = without.node_results["create-cluster/network/ready/nodes"].host_results["cp1"]
    assert (without.status, without.degraded) == ("Success", True)
    assert [*without.quarantined] == ["w2"]
    assert (ready.message, ready.attempts) == ("without `w2`, lost in this run", 1)
    assert _set_on(without) == {"cp1", "w1"}
    assert (whole.status, whole.degraded) == ("Success", False)
    assert _set_on(whole) == {"w2"}


@pytest.mark.slow
def test_a_worker_whose_kubelet_does_not_start_again_holds_up_nobody(tmp_path: Path) -> None:
    before = planned.made(_one_and_two(tmp_path))
    with planned.world(before) as hosts:
        authority = "/etc/kubernetes/pki/ca.crt"
        hosts.host("w2").transfer(lambda files: files.remove(authority), full=False)
    file = _one_and_two(tmp_path, kubernetes={"kubelet": {"config": {"maxPods": 50}}})

    without = planned.made(file).result

    ready = without.node_results["create-cluster/network/ready/nodes"].host_results["cp1"]
    assert (without.status, without.degraded) == ("Success", True)
    assert [*without.quarantined] == ["w2"]
    assert ready.message == "without `w2`, lost in this run"


def _one_and_two(folder: Path, **spec: Any) -> Path:
    return planned.written(
        folder,
        **{
            "hosts": [
                {"name": "cp1", "address": "10.0.0.11"},
                {"name": "w[1:2]", "address": "10.0.0.[21:22]"},
            ],
            "roleGroups": {"control-plane": ["cp1"], "worker": ["w[1:2]"]},
            "network": {"plugin": "routed"},
            **spec,
        },
    )


def _set_on(result: GraphExecutionResult) -> set[str]:
    """The hosts on which settings of the kernel were changed."""
    return {
        host
        for id, found in result.node_results.items()
        if id.endswith("/kernel/settings")
        for host, one in found.host_results.items()
        if one.changed
    }
