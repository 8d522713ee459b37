"""What stands in the way of a real cluster, on hosts of the lab: nothing is lost by any of it.

The tests are in this order: what is refused on hosts that nobody has touched, then hosts that are
dead from the start, then a creation that is killed again and again.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.lab.belongings import belongings
from tests.lab.cluster_control import ClusterControl

from lab import faults, network
from lab.testing import Lab

pytestmark = [pytest.mark.lab, pytest.mark.timeout(900)]

HOSTS = ("node1", "node2", "node3", "node4")
ROLES = {"control-plane": ["node1"], "worker": ["node2", "node3", "node4"]}
MORE = {"endpoint": {"kind": "haproxy"}}
KILLS = 10
KILLED = -9
Fault = Callable[[ClusterControl], Iterator[None]]


@pytest.fixture(scope="module")
def control(
    cluster_hosts: Lab, software: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ClusterControl]:
    with network.entered(cluster_hosts.site.netns):
        yield ClusterControl(cluster_hosts, software, tmp_path_factory.mktemp("control"))


@pytest.fixture(scope="module")
def untouched(control: ClusterControl) -> dict[str, frozenset[str]]:
    """What each host had before kubexm came."""
    return {host: belongings(control.lab, host) for host in HOSTS}


def _nothing(control: ClusterControl) -> Iterator[None]:
    yield


def _occupied_port(control: ClusterControl) -> Iterator[None]:
    listening = ("python3", "-m", "http.server", "10250")
    control.on("node3", "systemd-run", "--quiet", "--unit=squatter", *listening)
    yield
    control.on("node3", "systemctl", "stop", "squatter")


def _residue(control: ClusterControl) -> Iterator[None]:
    control.on("node4", "mkdir", "-p", "/etc/kubernetes")
    control.on("node4", "touch", "/etc/kubernetes/kubelet.conf")
    yield
    control.on("node4", "rm", "-r", "/etc/kubernetes")


def _wrong_clock(control: ClusterControl) -> Iterator[None]:
    faults.skew(control.lab.site, "node2", 300)
    yield
    faults.skew(control.lab.site, "node2", 0)


def _same_name(control: ClusterControl) -> Iterator[None]:
    control.on("node3", "hostname", "node2")
    yield
    control.on("node3", "hostname", "node3")


WRONG: dict[str, tuple[Fault, dict[str, Any], tuple[str, ...]]] = {
    "a bundle without an image": (
        _nothing,
        {"storage": {"nfs": {"server": "10.99.0.1", "path": "/srv"}}},
        ("nfs-subdir-external-provisioner:v4.0.2` for amd64 is missing", "kubexm bundle build"),
    ),
    "an endpoint that nobody reaches": (
        _nothing,
        {"endpoint": {"kind": "external", "address": "10.99.0.250"}},
        ("site-reachable: no answer from what the site has: endpoint 10.99.0.250 6443",),
    ),
    "a port that is taken": (
        _occupied_port,
        {},
        ("ports-free: tcp/10250 is for the kubelet: `python3", "node3"),
    ),
    "what an earlier cluster has left": (
        _residue,
        {},
        ("leftovers: files of another cluster: `/etc/kubernetes", "kubeadm reset"),
    ),
    "a clock that is five minutes off": (
        _wrong_clock,
        {},
        ("clock-skew: clocks are more than 5 s apart: 300", "node2", "chrony"),
    ),
    "too little memory": (
        _nothing,
        {"preflight": {"workerMemoryMib": 999_999}},
        ("memory: less than 999,999 MiB of memory",),
    ),
    "two hosts of one name": (
        _same_name,
        {},
        ("unique-hostnames: hosts with the same name: `node2`", "hostnamectl"),
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_it_is_refused_before_the_first_change(
    control: ClusterControl, untouched: dict[str, frozenset[str]], case: str
) -> None:
    fault, settings, told = WRONG[case]
    more: dict[str, Any] = {**MORE, **settings}
    control.declare(ROLES, **more)

    with contextmanager(fault)(control):
        refused = control.create()

    assert refused.code in (1, 2)
    said = refused.out + refused.err
    assert [text for text in told if text not in said] == [], said
    for host in HOSTS:
        assert untouched[host] ^ belongings(control.lab, host) == set(), host


def test_without_its_control_plane_it_is_refused(
    control: ClusterControl, untouched: dict[str, frozenset[str]]
) -> None:
    control.declare(ROLES, **MORE)
    with _off(control, "node1"):
        refused = control.create()

    assert refused.code == 1
    assert "node1" in refused.out + refused.err
    for host in HOSTS[1:]:
        assert untouched[host] ^ belongings(control.lab, host) == set(), host


def test_a_worker_that_is_dead_from_the_start_comes_in_later(control: ClusterControl) -> None:
    control.declare(ROLES, **MORE)
    with _off(control, "node4"):
        without = control.create()
        assert _ready(control) == {"node1", "node2", "node3"}
        ill = control.kubexm("health", "lab", "-o", "json")

    assert without.code == 5, without.err
    assert without.data["result"]["degraded"]
    assert "node4" in without.out
    assert ill.code == 1
    assert "node4" in {one["where"] for one in ill.data["checks"] if one["grade"] == "ill"}

    whole = control.create()

    assert whole.code == 0, whole.err
    # Others learn the way to its pods, and one of them lets it in.
    of_others = {node.partition("/")[0] for node, host in whole.changed() if host != "node4"}
    assert of_others == {"control-plane", "network"}
    assert _ready(control) == {*HOSTS}
    control.await_health()


def test_what_is_made_is_taken_away(
    control: ClusterControl, untouched: dict[str, frozenset[str]]
) -> None:
    deleted = control.kubexm("delete", "cluster", "lab", "--yes", "-o", "json")

    assert deleted.code == 0, deleted.err
    _as_before(control, untouched)


def test_half_a_cluster_is_taken_away(
    control: ClusterControl, untouched: dict[str, frozenset[str]]
) -> None:
    control.declare(ROLES, **MORE)
    begun = control.begin(*control.creation())
    _await_membership(control)
    begun.kill()
    begun.communicate()

    deleted = control.kubexm("delete", "cluster", "lab", "--yes", "-o", "json")

    assert deleted.code == 0, deleted.err
    _as_before(control, untouched)


def test_killed_ten_times_it_goes_on_and_does_nothing_twice(control: ClusterControl) -> None:
    control.declare(ROLES, **MORE)
    instants, before = random.Random(2026), _tasks(control)
    killed, done = 0, dict[str, str]()
    for _ in range(KILLS):
        answer = control.killed_after(instants.uniform(0.5, 3.5), *_next(control, before))
        killed += answer.code == KILLED
        done = _still_done(control, before, done)

    last = control.kubexm(*_next(control, before))

    assert killed == KILLS
    assert last.code == 0, last.err
    assert len(_still_done(control, before, done)) > len(done)
    control.await_health()
    assert control.create().changed() == set()


def _tasks(control: ClusterControl) -> list[str]:
    return [task["id"] for task in control.kubexm("task", "list", "-o", "json").data]


def _next(control: ClusterControl, before: list[str]) -> tuple[str, ...]:
    """What a person types next: that which began it, or what goes on with it."""
    begun = [task for task in _tasks(control) if task not in before]
    return ("task", "resume", *begun, "-o", "json") if begun else control.creation()


def _still_done(control: ClusterControl, before: list[str], done: dict[str, str]) -> dict[str, str]:
    """What is done by now; nothing that was done before was begun once more."""
    now: dict[str, str] = {}
    for task in (task for task in _tasks(control) if task not in before):
        now |= _finished(control, task)
    assert {unit: now[unit] for unit in done} == done
    return now


def _finished(control: ClusterControl, task: str) -> dict[str, str]:
    """The units of a run that have changed something, and when each began to."""
    nodes = control.kubexm("task", "show", task, "-o", "json").data["result"]["nodeResults"]
    return {
        f"{id} {host}": result["startTime"]
        for id, node in nodes.items()
        for host, result in node["hostResults"].items()
        if result["status"] == "Success" and result.get("changed")
    }


def _await_membership(control: ClusterControl) -> None:
    """Wait until the first worker is about to become a member."""
    script = "for i in $(seq 600); do [ -e /etc/kubernetes/kubelet.conf ] && exit; sleep 0.2; done"
    control.on("node2", "sh", "-c", f"{script}; exit 1")


def _as_before(control: ClusterControl, untouched: dict[str, frozenset[str]]) -> None:
    for host in HOSTS:
        differing = untouched[host] ^ belongings(control.lab, host)
        assert sorted(differing) == [], host


def _ready(control: ClusterControl) -> set[str]:
    form = (
        "jsonpath={range .items[*]}{.metadata.name}="
        '{.status.conditions[?(@.type=="Ready")].status}{"\\n"}{end}'
    )
    lines = control.kubectl("get", "nodes", "-o", form).splitlines()
    return {line.removesuffix("=True") for line in lines if line.endswith("=True")}


@contextmanager
def _off(control: ClusterControl, host: str) -> Iterator[None]:
    faults.kill(control.lab.site, host)
    yield
    faults.start(control.lab.site, host)
