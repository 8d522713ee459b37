"""What becomes of a cluster when something is wrong with a host."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.clusters.test_examples import EXAMPLES, made, source

from kubexm.app import planning
from kubexm.errors import KubexmError
from kubexm.sim import World

_RUNC = "/usr/local/bin/runc"
_EXAMPLE = next(path for path in EXAMPLES if path.stem == "three-and-two")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A world for the example that somebody may tamper with before the cluster is made."""
    monkeypatch.setenv("KUBEXM_HOME", str(tmp_path))
    World.create(tmp_path / "worlds" / _EXAMPLE.stem, planning.plan(source(_EXAMPLE)).world).close()
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

    without = made(_EXAMPLE, home).result
    host = world(home).host("worker2")
    host.transfer(lambda files: files.remove_tree(_RUNC), full=False)
    mended = made(_EXAMPLE, home).result

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
    without = made(_EXAMPLE, home).result
    world(home).host("worker2").revive()
    mended = made(_EXAMPLE, home).result

    assert (without.status, without.degraded) == ("Success", True)
    assert (mended.status, mended.degraded) == ("Success", False)


def test_a_dead_control_plane_refuses_the_run_before_the_first_change(home: Path) -> None:
    world(home).host("control2").stop()
    before = changed(home)

    try:
        status = made(_EXAMPLE, home).result.status
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

    result = made(_EXAMPLE, home).result

    assert result.status == "Failed"
    assert "memory" in result.message
    assert {name: count for name, count in changed(home).items() if count != before.get(name)} == {}


def test_two_hosts_that_are_one_are_refused(home: Path) -> None:
    for name in ("worker1", "worker2"):
        host = world(home).host(name)
        host.transfer(lambda files: files.write("/etc/machine-id", b"a" * 32 + b"\n"), full=False)

    with pytest.raises(KubexmError, match="unique-machine-ids"):
        made(_EXAMPLE, home)
