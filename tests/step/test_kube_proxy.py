"""kube-proxy in a cluster that lives: new settings, pods that are replaced, what is undone."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.step.listening import Cluster, answering, kubectl, shown

from kubexm.errors import StepFailed
from kubexm.runner import kubeadm
from kubexm.sim import Effects, Script
from kubexm.step.kube_proxy import ProxyConfigured
from kubexm.step.kubeadm import Initialised

Make = Callable[..., Cluster]
CONFIG = "/etc/kubernetes/kubexm/kubeadm.yaml"
MEMBER = Effects(files={"/etc/kubernetes/kubelet.conf": "kubeconfig"})
INIT = answering("kubeadm", "init", "--skip-token-print", "**", effects=MEMBER)
FAILS_ONCE = answering("kubeadm", "init", "--skip-token-print", "**", exit=1, times=1)
PHASE = answering("kubeadm", "init", "phase", "addon", "kube-proxy", "**")
PATCH = kubectl("patch", "**")
GET = ("get", "--ignore-not-found", "-o", "json")


def nodes(*ready: bool) -> Script:
    """Kube nodes of which some take pods."""
    found = [{"type": "Ready", "status": "True" if one else "Unknown"} for one in ready]
    items = [{"metadata": {"name": "n"}, "status": {"conditions": [one]}} for one in found]
    return kubectl(*GET, "nodes", stdout=shown({"items": items}))


def pods(updated: int, available: int, **settings: Any) -> Script:
    """The daemon set of kube-proxy, of which so many pods of three are as far as this."""
    status = {
        "desiredNumberScheduled": 3,
        "updatedNumberScheduled": updated,
        "numberAvailable": available,
    }
    found = {"kind": "DaemonSet", "metadata": {"name": "kube-proxy"}, "status": status}
    return kubectl(
        *GET, "-n", "kube-system", "daemonset/kube-proxy", stdout=shown(found), **settings
    )


def patched(place: Cluster) -> Any:
    (told,) = [words for words in place.told if words.startswith("kubectl patch")]
    assert told.startswith("kubectl patch -n kube-system daemonset kube-proxy --type merge -p {")
    return json.loads(told.partition(" -p ")[2])["spec"]


def test_a_cluster_begins_with_its_settings(cluster: Make) -> None:
    place = cluster(INIT)
    place.run(Initialised(proxy_settings="a"))

    assert place.verdict(ProxyConfigured("a")).satisfied
    assert place.verdict(ProxyConfigured("b")).reason == "its settings were changed"


def test_what_another_attempt_began_may_have_other_settings(cluster: Make) -> None:
    place = cluster(INIT)
    place.wait(kubeadm.mark(place.host, kubeadm.Marker("begun", "init")))
    place.run(Initialised(proxy_settings="a"))

    found = place.verdict(ProxyConfigured("a"))

    assert found.reason == "there is no record of its settings"


@pytest.mark.parametrize(("now", "is_so"), [("a", True), ("b", False)])
def test_what_an_attempt_leaves_that_failed_has_its_settings(
    now: str, is_so: bool, cluster: Make
) -> None:
    place = cluster(FAILS_ONCE, INIT)
    with pytest.raises(StepFailed):
        place.run(Initialised(proxy_settings="a"))
    place.run(Initialised(proxy_settings=now))

    assert place.verdict(ProxyConfigured(now)).satisfied is is_so


def test_other_settings_are_stored_and_all_pods_replaced_once(cluster: Make) -> None:
    place = cluster(PHASE, PATCH, nodes(True, True, True), pods(2, 3, times=1), pods(3, 3))

    place.run(ProxyConfigured("a"))

    assert place.told[0] == f"kubeadm init phase addon kube-proxy --config {CONFIG}"
    assert [words.split()[1] for words in place.told[1:]] == ["get", "patch", *["get"] * 4]
    assert patched(place)["updateStrategy"]["rollingUpdate"]["maxUnavailable"] == 1
    assert place.verdict(ProxyConfigured("a")).satisfied


def test_nobody_waits_for_the_pod_of_a_host_that_is_down(cluster: Make) -> None:
    place = cluster(PHASE, PATCH, nodes(True, False, True), pods(2, 2))

    place.run(ProxyConfigured("a"))

    assert patched(place)["updateStrategy"]["rollingUpdate"]["maxUnavailable"] == 2
    assert place.verdict(ProxyConfigured("a")).satisfied


def test_pods_that_do_not_come_are_told_and_tried_again(cluster: Make) -> None:
    place = cluster(PHASE, PATCH, nodes(True, True, True), pods(1, 2))

    with pytest.raises(StepFailed, match="kube-proxy: after 600 s 1 of 3 pods are up to date"):
        place.run(ProxyConfigured("a"))

    assert not place.verdict(ProxyConfigured("a")).satisfied


def test_after_a_rollback_it_goes_by_the_old_settings_again(cluster: Make) -> None:
    place = cluster(INIT, PHASE, PATCH, nodes(True, True, True), pods(3, 3))
    place.run(Initialised(proxy_settings="a"))
    place.run(ProxyConfigured("b"))
    place.forget()

    place.undo(ProxyConfigured("b"))
    nothing_yet = list(place.told)
    settled = place.wait(ProxyConfigured("b").settle(place.context()))

    assert nothing_yet == []
    assert settled
    assert place.told[0].startswith("kubeadm init phase addon kube-proxy")
    assert place.verdict(ProxyConfigured("a")).satisfied
    assert not place.wait(ProxyConfigured("b").settle(place.context()))


def test_without_a_cluster_nothing_is_left_of_it(cluster: Make) -> None:
    place = cluster(PHASE, PATCH, nodes(True, True, True), pods(3, 3))
    place.run(ProxyConfigured("a"))
    place.forget()

    assert not place.wait(ProxyConfigured("a").settle(place.context()))
    assert place.told == []
    assert place.ask("ls", "/var/lib/kubexm/services") == ""
