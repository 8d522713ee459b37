"""What stands in the way of a real cluster, on hosts of the lab: nothing is lost by any of it.

The tests are in this order: what is refused on hosts that nobody has touched, then hosts that are
dead from the start, then a creation that is killed again and again.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.lab.belongings import belongings
from tests.lab.cluster_control import Answer, ClusterControl
from tests.lab.enclosure import enclosed

from kubexm.app import tasks
from kubexm.plan.result import HostResult
from lab import faults
from lab.testing import Lab

pytestmark = [pytest.mark.lab, pytest.mark.timeout(2400)]

HOSTS = ("node1", "node2", "node3", "node4")
ROLES = {"control-plane": ["node1"], "worker": ["node2", "node3", "node4"]}
MORE: dict[str, Any] = {"endpoint": {"kind": "haproxy"}}
KERNEL = {"sysctl": {"net.ipv4.tcp_keepalive_time": "1234"}}
KILLED = -9
# Shares of all units: most come before there is a control plane, and half of the time after them.
PREPARING, BEGINNING = (0.0, 0.85), (0.86, 0.94)
INIT = "create-cluster/control-plane/init/cluster"
Fault = Callable[[ClusterControl], Iterator[None]]


@pytest.fixture(scope="module")
def control(
    cluster_hosts: Lab, software: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ClusterControl]:
    with enclosed(cluster_hosts):
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
    try:
        yield
    finally:
        control.on("node3", "systemctl", "stop", "squatter")


def _residue(control: ClusterControl) -> Iterator[None]:
    control.on("node4", "mkdir", "-p", "/etc/kubernetes")
    control.on("node4", "touch", "/etc/kubernetes/kubelet.conf")
    try:
        yield
    finally:
        control.on("node4", "rm", "-r", "/etc/kubernetes")


def _wrong_clock(control: ClusterControl) -> Iterator[None]:
    faults.skew(control.lab.site, "node2", 300)
    try:
        yield
    finally:
        faults.skew(control.lab.site, "node2", 0)


def _same_name(control: ClusterControl) -> Iterator[None]:
    control.on("node3", "hostname", "node2")
    try:
        yield
    finally:
        control.on("node3", "hostname", "node3")


class Wrong(msgspec.Struct, frozen=True):
    """An input that can't become a cluster, and what is said of it."""

    said: str
    remedy: str
    hosts: tuple[str, ...]
    """Those that it is said of; none if it is of no host."""
    fault: Fault = _nothing
    settings: Mapping[str, Any] = {}
    code: int = 1


WRONG = {
    "a bundle without an image": Wrong(
        "nfs-subdir-external-provisioner:v4.0.2` for amd64 is missing: volumes are made by nfs",
        "kubexm bundle build -f FILE -o BUNDLE",
        hosts=(),
        settings={"storage": {"nfs": {"server": "10.99.0.1", "path": "/srv"}}},
        code=2,
    ),
    "an endpoint that nobody reaches": Wrong(
        "site-reachable: no answer from what the site has: endpoint 10.99.0.250 6443",
        "see that it is up and lets the hosts in, or correct `endpoint`",
        hosts=HOSTS,
        settings={"endpoint": {"kind": "external", "address": "10.99.0.250"}},
    ),
    "a port that is taken": Wrong(
        "ports-free: tcp/10250 is for the kubelet: `python3` has it",
        "stop who listens there, or give the part another port",
        hosts=("node3",),
        fault=_occupied_port,
    ),
    "what an earlier cluster has left": Wrong(
        "leftovers: files of another cluster: `/etc/kubernetes/kubelet.conf`",
        "take the host out of that cluster first, such as with `kubeadm reset`",
        hosts=("node4",),
        fault=_residue,
    ),
    "a clock that is five minutes off": Wrong(
        "clock-skew: clocks are more than 5 s apart: 300",
        "have them keep the time by the same servers, with chrony",
        hosts=("node2",),
        fault=_wrong_clock,
    ),
    "too little memory": Wrong(
        "memory: less than 999,999 MiB of memory",
        "give the host more, or want less",
        hosts=("node2", "node3", "node4"),
        settings={"preflight": {"workerMemoryMib": 999_999}},
    ),
    "two hosts of one name": Wrong(
        "unique-hostnames: hosts with the same name: `node2`",
        "rename one of them, with `hostnamectl hostname NAME`",
        hosts=("node2", "node3"),
        fault=_same_name,
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_it_is_refused_before_the_first_change(
    control: ClusterControl, untouched: dict[str, frozenset[str]], case: str
) -> None:
    wrong = WRONG[case]
    more: dict[str, Any] = {**MORE, **wrong.settings}
    control.declare(ROLES, **more)

    with contextmanager(wrong.fault)(control):
        refused = control.create()

    assert refused.code == wrong.code
    told = refused.told()
    assert {*told} == {*(wrong.hosts or ("",))}
    for said in told.values():
        assert wrong.said in said
        assert wrong.remedy in said
    _as_before(control, untouched)


def test_without_its_control_plane_it_is_refused(
    control: ClusterControl, untouched: dict[str, frozenset[str]]
) -> None:
    control.declare(ROLES, **MORE)
    with _off(control, "node1"):
        refused = control.create()

    assert refused.code == 1
    why = "node1, which could not be reached: group `control-plane` has 0 hosts left, needs 1"
    assert refused.data["task"]["message"].startswith(why)
    assert refused.changed() == set()
    _as_before(control, untouched)


def test_a_worker_that_is_dead_from_the_start_comes_in_later(control: ClusterControl) -> None:
    control.declare(ROLES, **MORE)
    with _off(control, "node4"):
        without = control.create()
        assert _ready(control) == {"node1", "node2", "node3"}
        ill = _await_only_ill(control, "node4")

    assert without.code == 5, without.err
    assert without.data["result"]["degraded"]
    assert without.left_out() == {"node4"}
    assert ill.code == 1

    whole = control.create()

    assert whole.code == 0, whole.err
    assert whole.left_out() == set()
    # Others learn the way to its pods, and one of them lets it in.
    of_others = {node.partition("/")[0] for node, host in whole.changed() if host != "node4"}
    assert of_others == {"control-plane", "network"}
    assert _ready(control) == {*HOSTS}
    control.await_health()


def test_a_worker_that_dies_later_holds_up_nobody_and_catches_up(control: ClusterControl) -> None:
    control.declare(ROLES, **MORE, system=KERNEL)
    with _off(control, "node4"):
        # Only then would anybody wait for it: for a while the cluster takes it for alive.
        _await_ready(control, {"node1", "node2", "node3"})
        without = control.create()
        assert _keepalive(control, "node1", "node2", "node3") == {"1234"}

    assert without.code == 5, without.err
    assert without.data["result"]["degraded"]
    assert without.left_out() == {"node4"}
    assert without.changed() == {
        ("system/core/kernel/settings", "node1"),
        *(("system/workers/kernel/settings", host) for host in ("node2", "node3")),
    }

    whole = control.create()

    assert whole.code == 0, whole.err
    assert whole.left_out() == set()
    assert ("system/workers/kernel/settings", "node4") in whole.changed()
    assert _keepalive(control, *HOSTS) == {"1234"}
    assert _ready(control) == {*HOSTS}
    control.await_health()


def test_what_is_made_is_taken_away(
    control: ClusterControl, untouched: dict[str, frozenset[str]]
) -> None:
    control.delete()

    _as_before(control, untouched)


def test_half_a_cluster_is_taken_away(
    control: ClusterControl, untouched: dict[str, frozenset[str]]
) -> None:
    control.declare(ROLES, **MORE)
    with control.running(*control.creation()) as begun:
        _await_membership(control)
        begun.kill()

    control.delete()

    _as_before(control, untouched)


def test_killed_ten_times_it_goes_on_and_does_nothing_twice(control: ClusterControl) -> None:
    control.declare(ROLES, **MORE)
    chance, before = random.Random(2026), control.tasks()
    begun, left, done = list[bool](), list[bool](), dict[str, str]()
    for share in sorted(chance.uniform(*stretch) for stretch in (PREPARING, BEGINNING) * 5):
        is_due = partial(_has_come_to, control, before, share)
        answer = control.killed(is_due, chance.uniform(0, 2), *_next(control, before))
        assert answer.code == KILLED
        done = _still_done(control, before, done)
        begun.append(_is_begun(control, before))
        left.append(not _has_come_to(control, before, 1))

    last = control.kubexm(*_next(control, before))

    assert last.code == 0, last.err
    assert {*begun} == {False, True}
    # Each time something was left to do, though not always a change.
    assert done
    assert all(left)
    _still_done(control, before, done)
    control.await_health()
    assert control.create().changed() == set()


def _next(control: ClusterControl, before: list[str]) -> tuple[str, ...]:
    """What a person types next: that which began it, or what goes on with it."""
    begun = [task for task in control.tasks() if task not in before]
    return ("task", "resume", *begun, "-o", "json") if begun else control.creation()


def _has_come_to(control: ClusterControl, before: list[str], share: float) -> bool:
    """Whether a creation has got through such a share of its units."""
    units = _units(control, before)
    over = sum(unit.end_time is not None for _, unit in units)
    return bool(units) and over >= share * len(units)


def _is_begun(control: ClusterControl, before: list[str]) -> bool:
    """Whether there is a control plane by now."""
    return any(id == INIT and unit.status == "Success" for id, unit in _units(control, before))


def _still_done(control: ClusterControl, before: list[str], done: dict[str, str]) -> dict[str, str]:
    """What has changed something by now, and when each began to; nothing was begun once more."""
    now = {
        f"{id} {unit.host_name}": str(unit.start_time)
        for id, unit in _units(control, before)
        if unit.status == "Success" and unit.changed
    }
    assert {unit: now[unit] for unit in done} == done
    return now


def _units(control: ClusterControl, before: list[str]) -> list[tuple[str, HostResult]]:
    """All units of the creation that was begun since, as its journal knows them."""
    listed = tasks.list_runs(control.home, 1)
    return [
        (id, unit)
        for line in listed
        if line.run.id not in before
        for id, node in control.so_far(line.run.id).node_results.items()
        for unit in node.host_results.values()
    ]


def _await_membership(control: ClusterControl) -> None:
    """Wait until the first worker is about to become a member."""
    script = "for i in $(seq 600); do [ -e /etc/kubernetes/kubelet.conf ] && exit; sleep 0.2; done"
    control.on("node2", "sh", "-c", f"{script}; exit 1")


def _as_before(control: ClusterControl, untouched: dict[str, frozenset[str]]) -> None:
    for host in HOSTS:
        assert sorted(untouched[host] ^ belongings(control.lab, host)) == [], host


def _await_only_ill(control: ClusterControl, host: str) -> Answer:
    """What the cluster says of itself when one host is ill, and all others have come to rest."""
    end = time.monotonic() + 120
    while True:
        found = control.kubexm("health", "lab", "-o", "json")
        ill = {one["where"] for one in found.data["checks"] if one["grade"] != "well"}
        if ill == {host}:
            return found
        assert time.monotonic() < end, found.out
        time.sleep(1)


def _await_ready(control: ClusterControl, hosts: set[str]) -> None:
    """Wait until just these are nodes that take pods, as far as the cluster knows."""
    end = time.monotonic() + 120
    while (found := _ready(control)) != hosts:
        assert time.monotonic() < end, found
        time.sleep(1)


def _keepalive(control: ClusterControl, *hosts: str) -> set[str]:
    """What hosts have of the setting that is changed."""
    key = "net.ipv4.tcp_keepalive_time"
    return {control.on(host, "sysctl", "-n", key).strip() for host in hosts}


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
    try:
        yield
    finally:
        faults.start(control.lab.site, host)
