"""What runs in a cluster: rollouts, nodes and their marks, pod networks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from tests.step.listening import Cluster, kubectl, shown

from kubexm.errors import InvalidInput, StepFailed
from kubexm.sim import Script
from kubexm.step import registry
from kubexm.step.contract import NotYet, Outcome
from kubexm.step.kube import NodeReady, PodNetworks, RolledOut
from kubexm.step.kube_node import MarkedNode

Make = Callable[..., Cluster]
DNS = {
    "kind": "Deployment",
    "metadata": {"name": "coredns", "generation": 2},
    "spec": {"replicas": 2, "selector": {"matchLabels": {"k8s-app": "kube-dns", "x": "y"}}},
    "status": {"observedGeneration": 2, "updatedReplicas": 2, "replicas": 2},
}
GET = ("get", "--ignore-not-found", "-o", "json")
DONE = {**DNS, "status": {**DNS["status"], "availableReplicas": 2}}  # type: ignore[dict-item]
ROLLOUT = RolledOut("deployment/coredns")


def test_a_rollout_is_awaited(cluster: Make) -> None:
    place = cluster(
        kubectl("get", "**", stdout=shown(DNS), times=1), kubectl("get", "**", stdout=shown(DONE))
    )

    first, second = place.run(ROLLOUT), place.run(ROLLOUT)

    assert first == NotYet(2.0, "0 of 2 pods are available")
    assert isinstance(second, Outcome)
    assert not second.changed
    assert place.told[0] == (
        "kubectl get --ignore-not-found -o json -n kube-system deployment/coredns"
    )
    assert place.verdict(ROLLOUT).satisfied


def test_pods_on_lost_hosts_are_not_waited_for(cluster: Make) -> None:
    status = {**DNS["status"], "availableReplicas": 1}  # type: ignore[dict-item]
    gone = {"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]}
    pod = {"metadata": {"name": "coredns-1"}, "spec": {"nodeName": "w2"}, "status": gone}
    place = cluster(
        kubectl(*GET, "pods", "**", stdout=shown({"items": [pod]})),
        kubectl("get", "**", stdout=shown({**DNS, "status": status})),
    )

    here, elsewhere = (place.run(ROLLOUT, lost={host}) for host in ("w2", "w1"))

    said = "1 of 2 pods are available, the others are on lost hosts"
    assert here == Outcome(changed=False, message=said)
    assert elsewhere == NotYet(2.0, "1 of 2 pods are available")


def test_what_does_not_exist_yet_is_awaited_too(cluster: Make) -> None:
    place = cluster(kubectl("get", "**"))

    assert place.run(ROLLOUT) == NotYet(2.0, "does not exist")
    assert place.verdict(ROLLOUT).sign == "?"


def test_a_rollout_that_failed_tells_which_pods_do_not_run_and_why(cluster: Make) -> None:
    pending = {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}
    status = {"phase": "Pending", "containerStatuses": [{"name": "coredns", "state": pending}]}
    named = {"name": "coredns-1", "namespace": "kube-system"}
    pods = {"items": [{"metadata": named, "status": status}]}
    event = {"involvedObject": {"name": "coredns-1"}, "reason": "Failed", "message": "pull"}
    place = cluster(
        kubectl("get", "--ignore-not-found", "-o", "json", "pods", "**", stdout=shown(pods)),
        kubectl(
            "get",
            "--ignore-not-found",
            "-o",
            "json",
            "events",
            "**",
            stdout=shown({"items": [event]}),
        ),
        kubectl("get", "**", stdout=shown(DNS)),
    )

    said = place.wait(ROLLOUT.diagnose(place.context()))

    assert said.splitlines()[0] == "cause: an image can't be had"
    assert said.splitlines()[1].startswith("remedy: bring it with the bundle")
    assert said.splitlines()[2:] == [
        "pods:",
        "  pod coredns-1: container coredns: ImagePullBackOff; no such image",
        "events:",
        "  coredns-1: Failed: pull",
    ]
    assert "-l k8s-app=kube-dns,x=y" in place.told[1]


def test_a_rollout_that_failed_tells_what_its_containers_said_last(cluster: Make) -> None:
    crashed = {"terminated": {"exitCode": 1, "reason": "Error"}}
    container = {
        "name": "coredns",
        "state": {"waiting": {"reason": "CrashLoopBackOff"}},
        "lastState": crashed,
    }
    named = {"name": "coredns-1", "namespace": "kube-system"}
    pods = [{"metadata": named, "status": {"containerStatuses": [container]}}]
    loop = "[FATAL] plugin/loop: Loop (127.0.0.1:53 -> :53) detected for zone"
    log = ("logs", "-n", "kube-system", "coredns-1", "-c", "coredns", "--tail", "40", "--previous")
    place = cluster(
        kubectl(*log, stdout=f"well\n{loop}\n"),
        kubectl(*GET, "pods", "**", stdout=shown({"items": pods})),
        kubectl(*GET, "events", "**"),
        kubectl("get", "**", stdout=shown(DNS)),
    )

    said = place.wait(ROLLOUT.diagnose(place.context())).splitlines()

    assert said[0] == "cause: names can't be looked up"
    assert said[-2:] == ["log of coredns in kube-system/coredns-1:", f"  {loop}"]


def test_a_log_that_can_not_be_had_is_left_out(cluster: Make) -> None:
    ended = {"name": "coredns", "state": {"terminated": {"exitCode": 1}}}
    named = {"name": "coredns-1", "namespace": "kube-system"}
    pods = [{"metadata": named, "status": {"containerStatuses": [ended]}}]
    place = cluster(
        kubectl("logs", "**", exit=1, stderr="Error from server: no such container\n"),
        kubectl(*GET, "pods", "**", stdout=shown({"items": pods})),
        kubectl(*GET, "events", "**"),
        kubectl("get", "**", stdout=shown(DNS)),
    )

    said = place.wait(ROLLOUT.diagnose(place.context()))

    assert said == "pods:\n  pod coredns-1: container coredns: exit 1"
    assert not any("--previous" in told for told in place.told)


def node(name: str = "w1", **parts: Any) -> dict[str, Any]:
    return {"kind": "Node", "metadata": {"name": name}, "spec": {}, **parts}


def test_a_node_is_awaited_until_it_is_ready(cluster: Make) -> None:
    unready = {"conditions": [{"type": "Ready", "status": "False", "reason": "NoCni"}]}
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    place = cluster(
        kubectl("get", "**", times=1),
        kubectl("get", "**", stdout=shown(node(status=unready)), times=1),
        kubectl("get", "**", stdout=shown(node(status=ready))),
    )
    step = NodeReady("w1")

    seen = [place.run(step) for _ in range(2)]

    assert seen == [
        NotYet(2.0, "the cluster has no such node"),
        NotYet(2.0, "is not ready: NoCni"),
    ]
    assert place.verdict(step).satisfied


def networks(*nodes: Any) -> Script:
    return kubectl("get", "**", stdout=shown({"kind": "List", "items": nodes}))


def test_pod_networks_are_read_when_every_node_has_some(cluster: Make) -> None:
    place = cluster(
        networks(
            node("a", spec={"podCIDRs": ["10.1.0.0/24", "fd00:1::/64"]}),
            node("b", spec={"podCIDRs": ["10.1.1.0/24"]}),
        )
    )

    outcome = place.run(PodNetworks(("a", "b")))

    assert isinstance(outcome, Outcome)
    assert outcome.values == {
        "pod_networks": {"a": ["10.1.0.0/24", "fd00:1::/64"], "b": ["10.1.1.0/24"]}
    }
    assert not outcome.changed


def test_pod_networks_are_awaited_but_not_where_nothing_is_done(cluster: Make) -> None:
    what = "certificatesigningrequests.certificates.k8s.io"
    nobody = kubectl("get", "--ignore-not-found", "-o", "json", what, stdout=shown({"items": []}))
    place = cluster(nobody, networks(node("a")))
    step = PodNetworks(("a", "b"))

    assert place.run(step) == NotYet(2.0, "no addresses for pods yet: a")
    with pytest.raises(StepFailed, match="no addresses for pods yet: a"):
        place.run(step, dry_run=True)


def test_pod_networks_that_do_not_come_are_explained_by_events_of_the_nodes(cluster: Make) -> None:
    full = {"involvedObject": {"name": "a"}, "reason": "CIDRNotAvailable", "message": "is now"}
    place = cluster(
        kubectl(*GET, "events", "**", stdout=shown({"items": [full]})),
        kubectl(*GET, "pods", "**"),
        networks(node("a"), node("b", spec={"podCIDRs": ["10.1.1.0/24"]})),
    )

    said = place.wait(PodNetworks(("a", "b")).diagnose(place.context())).splitlines()

    assert said[0] == "cause: there are no addresses left for the pods of a host"
    assert "`spec.network.nodeMask`" in said[1]
    assert said[2:] == [
        "nodes:",
        "  node a has no addresses for pods",
        "nodes:",
        "  a: has not told of itself yet",
        "events:",
        "  a: CIDRNotAvailable: is now",
    ]


# Labels and taints.

MARKS = MarkedNode("w1", labels={"disk": "ssd"}, taints=("db=yes:NoSchedule", "slow:NoExecute"))
MARKED = {
    "labels": {"disk": "ssd", "other": "mine"},
    "annotations": {
        "kubexm.io/labels": "disk",
        "kubexm.io/taints": "db:NoSchedule,slow:NoExecute",
    },
}
TAINTS = [
    {"key": "db", "value": "yes", "effect": "NoSchedule"},
    {"key": "slow", "effect": "NoExecute"},
    {"key": "others", "effect": "NoSchedule"},
]
CHANGES = (kubectl("label", "**"), kubectl("taint", "**"), kubectl("annotate", "**"))


def with_node(found: Mapping[str, Any]) -> tuple[Script, ...]:
    return (kubectl("get", "**", stdout=shown(found)), *CHANGES)


def test_a_node_gets_the_marks_that_it_lacks(cluster: Make) -> None:
    place = cluster(*with_node(node()))
    verdict = place.verdict(MARKS)
    place.forget()

    place.run(MARKS)

    ours = "db:NoSchedule,slow:NoExecute"
    assert not verdict.satisfied
    assert place.told[1:] == [
        "kubectl label --overwrite node w1 disk=ssd",
        "kubectl taint --overwrite node w1 db=yes:NoSchedule slow:NoExecute",
        f"kubectl annotate --overwrite node w1 kubexm.io/labels=disk kubexm.io/taints={ours}",
    ]


def test_a_node_that_has_its_marks_is_left_alone(cluster: Make) -> None:
    marked = node(metadata={"name": "w1", **MARKED}, spec={"taints": TAINTS})

    assert cluster(*with_node(marked)).verdict(MARKS).satisfied


def test_marks_of_ours_go_when_they_are_not_wanted_any_more_and_those_of_others_stay(
    cluster: Make,
) -> None:
    marked = node(metadata={"name": "w1", **MARKED}, spec={"taints": TAINTS})
    place = cluster(*with_node(marked))
    step = MarkedNode("w1", taints=("db=no:NoSchedule",))
    reason = place.verdict(step).reason
    place.forget()

    place.run(step)

    assert reason.startswith("lacks disk-, db=no:NoSchedule, slow:NoExecute-")
    assert place.told[1:] == [
        "kubectl label --overwrite node w1 disk-",
        "kubectl taint --overwrite node w1 db=no:NoSchedule slow:NoExecute-",
        "kubectl annotate --overwrite node w1 kubexm.io/labels- kubexm.io/taints=db:NoSchedule",
    ]


def test_marks_of_a_node_are_put_back(cluster: Make) -> None:
    before = node(metadata={"name": "w1", "labels": {"disk": "hdd"}})
    marked = node(metadata={"name": "w1", **MARKED}, spec={"taints": TAINTS})
    place = cluster(kubectl("get", "**", stdout=shown(before), times=1), *with_node(marked))
    place.run(MARKS)
    place.forget()

    place.undo(MARKS)

    assert place.told[1:] == [
        "kubectl label --overwrite node w1 disk=hdd",
        "kubectl taint --overwrite node w1 db:NoSchedule- slow:NoExecute-",
        "kubectl annotate --overwrite node w1 kubexm.io/labels- kubexm.io/taints-",
    ]


def test_a_node_that_is_not_there_yet_is_awaited(cluster: Make) -> None:
    place = cluster(kubectl("get", "**"), *CHANGES)

    assert place.run(MARKS) == NotYet(2.0, "the cluster has no such node")
    assert place.verdict(MARKS).sign == "?"
    assert place.ledger.entries == {}


def test_a_node_that_did_not_join_because_its_host_is_lost_is_not_waited_for(
    cluster: Make,
) -> None:
    place = cluster(kubectl("get", "**"), *CHANGES)

    verdict = place.wait(MARKS.precheck(place.context(lost={"w1"})))

    assert (verdict.satisfied, verdict.reason) == (True, "without `w1`, which did not join")


@pytest.mark.parametrize(
    ("kind", "params", "said"),
    [
        ("rollout", {"resource": "coredns"}, "`resource` is `coredns`, want one of `deployment/"),
        ("rollout", {"resource": "job/x"}, "want one of `deployment/NAME`, `daemonset/NAME`"),
        ("rollout", {"resource": "deployment/--x"}, "`--x` is no name of a deployment"),
        ("node-ready", {"node": ""}, "`` is no name of a node"),
        ("pod-networks", {"nodes": ["a"], "value": "a-b"}, "`value` is `a-b`"),
        ("kube-node", {"node": "a", "taints": ["x"]}, "`taints` has `x`, want NAME=VALUE:EFFECT"),
        ("kube-node", {"node": "a", "taints": ["x:Never"]}, "`taints` has `x:Never`"),
        ("kube-node", {"node": "a", "labels": {"-x": "y"}}, "`-x` is no name of a label"),
        ("manifest", {"name": "x"}, "give one of `template`, `text`, `content`; found none"),
        ("manifest-file", {"name": "a/b", "artifact": "x", "resource": "x/y"}, "without `/`"),
        ("helm-release", {"name": "-x", "artifact": "a", "version": "1"}, "`-x` is no name"),
        ("kubeadm-init", {"config": "kubeadm.yaml"}, "`config` is `kubeadm.yaml`"),
        ("kubeadm-init", {"records": {"kubelet": []}}, r"`records\.kubelet` is ``, want an"),
        ("kubeadm-join", {}, "give one of `template`, `text`; found none"),
        ("kubeadm-reset", {"paths": ["/"]}, r"`paths\[0\]` is `/`, want an absolute path below"),
        ("kubeadm-phase", {"record": "x", "phases": [], "files": ["/x"]}, "`phases` or `files` is"),
        ("kubeadm-phase", {"record": "x", "phases": [[]], "files": ["/x"]}, r"`phases\[0\]` is em"),
        ("join-token", {"ttl": 0}, "`ttl` is 0, want 1 or more"),
    ],
)
def test_parameters_that_can_not_be_meant_are_refused(
    kind: str, params: Mapping[str, Any], said: str
) -> None:
    with pytest.raises(InvalidInput, match=said):
        registry.load(kind, params)
