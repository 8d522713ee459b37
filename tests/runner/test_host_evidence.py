"""What a simulated host tells of units and pods that do not run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.step.listening import Cluster, answering

from kubexm.runner import host_evidence
from kubexm.runner.diagnosis import Section, report
from kubexm.sim import Script

PODS = "/var/log/pods"
ETCD = f"{PODS}/kube-system_etcd-node1_a0b1/etcd"
FATAL = '{"level":"fatal","error":"member 8e9e has already been bootstrapped"}'
CONTAINERS = """\
CONTAINER    IMAGE                                     RUNTIME
aaa          registry.k8s.io/etcd:3.6.8-0              io.containerd.runc.v2
bbb          registry.k8s.io/pause:3.10.2              io.containerd.runc.v2
ccc          registry.k8s.io/pause:3.10.2              io.containerd.runc.v2
ddd          registry.k8s.io/kube-proxy@sha256:0123    io.containerd.runc.v2
"""
TASKS = """\
TASK    PID     STATUS
bbb     1234    RUNNING
ddd     1235    STOPPED
"""
Make = Callable[..., Cluster]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Make]:
    with ExitStack() as stack:

        def make(*scripts: Script) -> Cluster:
            made = Cluster(tmp_path, *scripts)
            stack.callback(made.close)
            return made

        yield make


def ctr(containers: str = "", tasks: str = "") -> tuple[Script, Script]:
    return (
        answering("ctr", "-n", "k8s.io", "containers", "ls", stdout=containers),
        answering("ctr", "-n", "k8s.io", "tasks", "ls", stdout=tasks),
    )


def log(place: Cluster, path: str, *lines: str) -> None:
    place.ask("mkdir", "-p", path.rpartition("/")[0])
    text = "".join(f"2026-11-18T08:04:05.123456789Z stderr F {line}\n" for line in lines)
    place.wait(place.host.put(path, text.encode()))


def told(place: Cluster) -> dict[str, list[str]]:
    sections = place.wait(host_evidence.of_pods(place.host, 10.0))
    return {section.title: [*section.lines] for section in sections if section.lines}


def test_the_journal_is_asked_for_what_was_said_since_the_step_began(cluster: Make) -> None:
    asked = ("journalctl", "--unit", "etcd", "--since=-151s", "--lines", "400", "--no-pager")
    place = cluster(Script((*asked, "--output", "cat"), stdout=f"well\n{FATAL}\n"))

    (found,) = place.wait(host_evidence.of_units(place.host, ("etcd",), 90.2))

    assert found == Section("journal of etcd", [FATAL])


def test_a_journal_without_entries_or_without_a_journal_tells_nothing(cluster: Make) -> None:
    empty = Script(("journalctl", "--unit", "a", "**"), stdout="-- No entries --\n")
    none = Script(("journalctl", "--unit", "b", "**"), exit=127, stderr="not found\n")
    place = cluster(empty, none)

    assert report(place.wait(host_evidence.of_units(place.host, ("a", "b"), 1.0))) == ""


def test_images_of_which_no_container_runs_are_told(cluster: Make) -> None:
    assert told(cluster(*ctr(CONTAINERS, TASKS))) == {
        "containers that do not run": [
            "of registry.k8s.io/etcd:3.6.8-0",
            "of registry.k8s.io/kube-proxy@sha256:0123",
        ]
    }


def test_without_containerd_there_is_nothing_to_tell(cluster: Make) -> None:
    assert told(cluster()) == {}


def test_the_log_of_a_static_pod_that_ended_is_told(cluster: Make) -> None:
    place = cluster(*ctr(CONTAINERS, TASKS))
    log(place, f"{ETCD}/0.log", '{"level":"info"}', FATAL)
    log(place, f"{PODS}/kube-system_kube-scheduler-node1_ff/kube-scheduler/0.log", "E1118 bad")

    assert told(place)["log of etcd in kube-system/etcd-node1"] == [FATAL]
    assert not any("kube-scheduler" in title for title in told(place))


def test_of_one_that_was_started_anew_both_last_logs_are_told(cluster: Make) -> None:
    place = cluster(*ctr())
    for start in range(3):
        log(place, f"{ETCD}/{start}.log", f"Error: of {'abc'[start]}")

    assert told(place) == {"log of etcd in kube-system/etcd-node1": ["Error: of b", "Error: of c"]}


def test_logs_are_read_from_their_end_and_what_is_cut_off_is_left_out(cluster: Make) -> None:
    place = cluster(*ctr(CONTAINERS, TASKS))
    log(place, f"{ETCD}/0.log", "Error: too long ago", "Error: " + "x" * 9000, "Error: last")

    assert told(place)["log of etcd in kube-system/etcd-node1"] == ["Error: last"]


def test_not_more_than_some_logs_are_told(cluster: Make) -> None:
    place = cluster(*ctr())
    for name in "abcdefgh":
        log(place, f"{PODS}/default_{name}_0/{name}/1.log", "Error: bad")

    assert [*told(place)] == [f"log of {name} in default/{name}" for name in "abcd"]


def test_of_what_runs_pods_all_is_told_and_of_another_unit_its_journal(cluster: Make) -> None:
    journal = Script(("journalctl", "**"), stdout="Error: bad\n")
    place = cluster(journal, *ctr(CONTAINERS, TASKS))

    both = [
        [section.title for section in place.wait(host_evidence.of_service(place.host, unit, 1.0))]
        for unit in ("kubelet", "haproxy")
    ]

    assert both == [
        ["status", "containers that do not run", "journal of kubelet", "journal of containerd"],
        ["status", "journal of haproxy"],
    ]
