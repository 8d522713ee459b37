"""What workloads, pods, nodes and events tell of how far they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from kubexm.runner import workloads

DEPLOYMENT = {"updatedReplicas": 2, "replicas": 2, "availableReplicas": 2}
DAEMON_SET = {"desiredNumberScheduled": 3, "updatedNumberScheduled": 3, "numberAvailable": 3}
STATEFUL_SET = {"currentRevision": "a", "updateRevision": "a", "readyReplicas": 2}


def workload(kind: str, status: Mapping[str, Any], **changed: Any) -> dict[str, Any]:
    seen = {"observedGeneration": 3, **status, **changed}
    return {"kind": kind, "metadata": {"generation": 3}, "spec": {"replicas": 2}, "status": seen}


@pytest.mark.parametrize(
    ("kind", "status", "changed", "missing"),
    [
        ("Deployment", DEPLOYMENT, {}, ""),
        ("Deployment", DEPLOYMENT, {"observedGeneration": 2}, "its controller has not seen it yet"),
        ("Deployment", DEPLOYMENT, {"updatedReplicas": 1}, "1 of 2 pods are up to date"),
        ("Deployment", DEPLOYMENT, {"replicas": 3}, "1 of its old pods are still there"),
        ("Deployment", DEPLOYMENT, {"availableReplicas": 0}, "0 of 2 pods are available"),
        ("DaemonSet", DAEMON_SET, {}, ""),
        ("DaemonSet", DAEMON_SET, {"updatedNumberScheduled": 1}, "1 of 3 pods are up to date"),
        ("DaemonSet", DAEMON_SET, {"numberAvailable": 2}, "2 of 3 pods are available"),
        ("StatefulSet", STATEFUL_SET, {}, ""),
        ("StatefulSet", STATEFUL_SET, {"currentRevision": "b"}, "0 of 2 pods are up to date"),
        ("StatefulSet", STATEFUL_SET, {"readyReplicas": 1}, "1 of 2 pods are available"),
        ("Job", {}, {}, "is a Job, want a Deployment, DaemonSet or StatefulSet"),
    ],
)
def test_a_workload_is_rolled_out_when_nothing_is_missing(
    kind: str, status: Mapping[str, Any], changed: Mapping[str, Any], missing: str
) -> None:
    assert workloads.unfinished(workload(kind, status, **changed)) == missing


def test_pods_that_are_only_replaced_by_hand_may_be_old() -> None:
    found = workload("DaemonSet", DAEMON_SET, updatedNumberScheduled=0)
    found["spec"]["updateStrategy"] = {"type": "OnDelete"}

    assert workloads.unfinished(found) == ""


def test_a_workload_that_nobody_has_looked_at_is_not_rolled_out() -> None:
    new = {"kind": "DaemonSet", "metadata": {"generation": 1}, "spec": {}}

    assert workloads.unfinished(new) == "its controller has not seen it yet"


@pytest.mark.parametrize(
    ("kind", "status", "changed", "missing"),
    [
        ("Deployment", DEPLOYMENT, {"availableReplicas": 1}, ""),
        ("Deployment", DEPLOYMENT, {"availableReplicas": 0}, "0 of 1 pods are available"),
        ("Deployment", DEPLOYMENT, {"updatedReplicas": 1}, "1 of 2 pods are up to date"),
        ("DaemonSet", DAEMON_SET, {"updatedNumberScheduled": 2, "numberAvailable": 2}, ""),
        ("DaemonSet", DAEMON_SET, {"numberAvailable": 1}, "1 of 2 pods are available"),
        ("StatefulSet", STATEFUL_SET, {"readyReplicas": 1}, ""),
    ],
)
def test_a_workload_may_have_to_do_without_a_pod(
    kind: str, status: Mapping[str, Any], changed: Mapping[str, Any], missing: str
) -> None:
    assert workloads.unfinished(workload(kind, status, **changed), without=1) == missing


def placed(node: str, ready: str = "False", **metadata: Any) -> dict[str, Any]:
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": ready}]}
    return {"metadata": metadata, "spec": {"nodeName": node}, "status": status}


def test_pods_that_are_not_ready_on_nodes_that_are_gone_are_stranded() -> None:
    pods = [placed("a"), placed("b"), placed("b", ready="True"), placed("c")]

    assert workloads.stranded(workload("Deployment", DEPLOYMENT), pods, {"b", "c"}) == 2


def test_one_that_goes_is_stranded_only_where_no_other_takes_its_place() -> None:
    going = [placed("b", deletionTimestamp="2026-01-01T00:00:00Z")]

    assert workloads.stranded(workload("Deployment", DEPLOYMENT), going, {"b"}) == 0
    assert workloads.stranded(workload("DaemonSet", DAEMON_SET), going, {"b"}) == 1


def test_pods_of_a_set_are_counted_by_nodes_and_only_where_it_still_wants_one() -> None:
    pods = [placed("b"), placed("b"), placed("c")]
    beside = workload("DaemonSet", DAEMON_SET, numberMisscheduled=1)

    assert workloads.stranded(workload("DaemonSet", DAEMON_SET), pods, {"b", "c"}) == 2
    assert workloads.stranded(beside, pods, {"b", "c"}) == 1


def pod(**status: Any) -> dict[str, Any]:
    return {"metadata": {"name": "web"}, "status": status}


def waiting(reason: str, message: str = "", **more: Any) -> dict[str, Any]:
    return {"name": "main", "state": {"waiting": {"reason": reason, "message": message}}, **more}


UNSCHEDULED = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "Unschedulable",
    "message": "no node",
}
CRASHED: dict[str, Any] = {"lastState": {"terminated": {"exitCode": 1, "reason": "Error"}}}
READY = {"type": "Ready", "status": "True"}
ENDED: dict[str, Any] = {
    "state": {"terminated": {"exitCode": 2, "reason": "Error", "message": "no such flag"}}
}


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (pod(phase="Running", conditions=[READY]), []),
        (pod(phase="Succeeded", conditions=[{"type": "Ready", "status": "False"}]), []),
        (
            pod(phase="Pending", conditions=[UNSCHEDULED]),
            ["pod web: Pending: Unschedulable: no node"],
        ),
        (
            pod(phase="Pending", containerStatuses=[waiting("ImagePullBackOff", "no such image")]),
            ["pod web: container main: ImagePullBackOff; no such image"],
        ),
        (
            pod(phase="Running", containerStatuses=[waiting("CrashLoopBackOff", **CRASHED)]),
            ["pod web: container main: CrashLoopBackOff; before: Error, exit 1"],
        ),
        (
            pod(phase="Pending", initContainerStatuses=[{"name": "first", **ENDED}]),
            ["pod web: container first: Error, exit 2, no such flag"],
        ),
        (
            pod(phase="Pending", containerStatuses=[waiting("ContainerCreating")]),
            ["pod web: Pending"],
        ),
    ],
)
def test_a_pod_tells_why_it_does_not_run(found: Any, expected: list[str]) -> None:
    assert workloads.troubles(found) == expected


def test_the_last_events_of_some_objects_are_told_each_once_in_their_order() -> None:
    events = [
        {
            "involvedObject": {"name": name},
            "reason": "Failed",
            "message": text,
            "lastTimestamp": f"2026-01-0{day}",
        }
        for name, text, day in [
            ("web", "late", 9),
            ("web", "early", 1),
            ("other", "never mind", 5),
            ("web", "early", 2),
        ]
    ]

    assert workloads.warnings(events, ["web"]) == ["web: Failed: early", "web: Failed: late"]


@pytest.mark.parametrize(
    ("ready", "missing"),
    [
        ({"status": "True"}, ""),
        ({"status": "False", "reason": "KubeletNotReady", "message": "no cni"}, "KubeletNotReady"),
        ({"status": "Unknown", "reason": "NodeStatusUnknown"}, "NodeStatusUnknown"),
    ],
)
def test_a_node_tells_why_it_takes_no_pods(ready: Mapping[str, str], missing: str) -> None:
    node = {"status": {"conditions": [{"type": "Ready", **ready}]}}

    assert workloads.not_ready(node).partition(":")[0] == missing


def test_a_node_that_is_new_has_told_nothing() -> None:
    assert workloads.not_ready({"metadata": {"name": "n"}}) == "has not told of itself yet"


GONE = {"reason": "NodeStatusUnknown", "message": "Kubelet stopped posting node status."}


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ([{"type": "Ready", "status": "True"}, {"type": "DiskPressure", "status": "False"}], [""]),
        (
            [
                {"type": "DiskPressure", "status": "True", "reason": "KubeletHasDiskPressure"},
                {"type": "Ready", "status": "False", "reason": "KubeletNotReady"},
            ],
            ["KubeletHasDiskPressure", "KubeletNotReady"],
        ),
        (
            [
                {"type": "MemoryPressure", "status": "Unknown", **GONE},
                {"type": "Ready", "status": "Unknown", **GONE},
            ],
            ["NodeStatusUnknown: Kubelet stopped posting node status."],
        ),
        ([], ["has not told of itself yet"]),
    ],
)
def test_a_node_tells_each_trouble_once(conditions: list[Any], expected: list[str]) -> None:
    node = {"metadata": {"name": "w1"}, "status": {"conditions": conditions}}

    assert workloads.node_troubles(node) == [f"w1: {said}" for said in expected]


@pytest.mark.parametrize(
    ("container", "expected"),
    [
        (waiting("CrashLoopBackOff", **CRASHED), [("main", True)]),
        ({"name": "first", **ENDED}, [("first", False)]),
        ({"name": "main", "state": {"running": {}}, **CRASHED}, [("main", True)]),
        ({"name": "main", "ready": True, "state": {"running": {}}, **CRASHED}, []),
        (waiting("ImagePullBackOff"), []),
    ],
)
def test_containers_that_have_failed_are_known(container: Any, expected: list[Any]) -> None:
    assert workloads.ended(pod(containerStatuses=[container])) == expected
    assert workloads.ended(pod(initContainerStatuses=[container])) == expected
