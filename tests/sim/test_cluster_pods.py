"""Nodes are ready and pods run if all that they stand on is there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.sim.clusters import IMAGES, PLUGINS, ClusterSite, config_map, container, workload

from kubexm.common import layout
from kubexm.sim import stored
from kubexm.templates import formats, render
from kubexm.templates.contexts.dns import CoreDnsManifest
from kubexm.templates.contexts.network import FlannelManifest

IMAGE = "docker.io/library/web:1"
FLANNEL = FlannelManifest(image="f:1", plugin_image="p:1", ipv4_cidr="10.233.64.0/18")


@pytest.fixture
def site(tmp_path: Path) -> Iterator[ClusterSite]:
    made = ClusterSite(tmp_path)
    for host in ("cp1", "w1", "w2"):
        made.lay(host)
        made.lay_images(host, [IMAGE])
    assert made.init().ok
    assert made.join("w1").ok
    assert made.join("w2").ok
    yield made
    made.close()


def networked(site: ClusterSite) -> None:
    for number, host in enumerate(("cp1", "w1", "w2")):
        site.lay_network(host, f"10.233.{64 + number}.0/24")


def trouble(site: ClusterSite, node: str) -> str:
    (ready,) = site.get("node", node)["status"]["conditions"]
    return "" if ready["status"] == "True" else ready["message"]


def available(site: ClusterSite, resource: str, namespace: str = "default") -> int:
    status = site.get("-n", namespace, resource)["status"]
    return int(status.get("numberAvailable", status.get("availableReplicas", 0)))


def test_a_node_is_ready_once_its_network_is_laid(site: ClusterSite) -> None:
    assert "no network config found" in trouble(site, "w1")

    networked(site)
    assert trouble(site, "w1") == ""
    assert site.kubectl("wait", "--for=condition=Ready", "node", "w1").ok

    site.do("rm", f"{layout.CNI_PLUGINS}/host-local", host="w1")
    assert 'plugin "host-local"' in trouble(site, "w1")


@pytest.mark.parametrize(
    ("break_it", "named"),
    [
        (("systemctl", "stop", "kubelet"), "kubelet.service is not started"),
        (("systemctl", "stop", "containerd"), "CRI"),
        (("rm", "/etc/hosts"), "no such host"),
        (("modprobe", "-r", "br_netfilter"), "bridge-nf-call-iptables"),
    ],
)
def test_a_node_that_lacks_something_is_not_ready(
    site: ClusterSite, break_it: tuple[str, ...], named: str
) -> None:
    networked(site)
    site.do(*break_it, host="w1")

    assert named in trouble(site, "w1")


def test_a_host_that_is_down_is_no_node_that_is_ready(site: ClusterSite) -> None:
    networked(site)
    site.world.host("w1").stop()

    assert trouble(site, "w1") == "the host does not answer"


def test_pods_run_on_nodes_that_are_ready_and_have_their_image(site: ClusterSite) -> None:
    wanted = workload("Deployment", "web", {"containers": [container(IMAGE)]}, replicas=2)
    site.apply(wanted)
    assert available(site, "deployment/web") == 0

    networked(site)
    assert available(site, "deployment/web") == 2
    assert site.kubectl("rollout", "status", "deployment/web").ok

    wanted["spec"]["template"]["spec"]["containers"][0]["image"] = "docker.io/library/web:2"
    site.apply(wanted)
    assert available(site, "deployment/web") == 0
    assert not site.kubectl("rollout", "status", "deployment/web").ok
    (pod, _) = site.get("pods", "-l", "app=web")["items"]
    waiting = pod["status"]["containerStatuses"][0]["state"]["waiting"]["message"]
    assert 'Failed to pull image "docker.io/library/web:2"' in waiting


@pytest.mark.parametrize(("number", "running"), [(15, 1), (16, 0)])
def test_a_coredns_asks_no_more_than_it_takes(site: ClusterSite, number: int, running: int) -> None:
    networked(site)
    servers = tuple(f"10.9.0.{at + 1}" for at in range(number))
    context = CoreDnsManifest(image=IMAGE, addresses=("10.233.0.10",), upstream=servers, replicas=1)

    site.apply(*formats.documents(render.render("coredns/manifest", context.data())))

    assert available(site, "deployment/coredns", "kube-system") == running


def test_images_are_pulled_by_nodes_that_reach_the_outside(tmp_path: Path) -> None:
    site = ClusterSite(tmp_path, outside=True)
    site.begin("cp1", "w1")
    site.apply(workload("Deployment", "web", {"containers": [container(IMAGE)]}))

    assert available(site, "deployment/web") == 1
    site.close()


@pytest.mark.parametrize(
    ("pod", "named"),
    [
        ({"volumes": [{"name": "v", "configMap": {"name": "no"}}]}, 'configmap "no" not found'),
        ({"volumes": [{"name": "v", "secret": {"secretName": "no"}}]}, 'secret "no" not found'),
        ({"serviceAccountName": "no"}, 'serviceaccount "no" not found'),
        ({"priorityClassName": "no"}, 'priorityclass "no" not found'),
        (
            {"volumes": [{"name": "v", "hostPath": {"path": "/srv/no", "type": "File"}}]},
            "/srv/no is not a file",
        ),
    ],
)
def test_what_a_pod_refers_to_has_to_be_there(
    site: ClusterSite, pod: dict[str, Any], named: str
) -> None:
    networked(site)
    site.apply(workload("DaemonSet", "web", {"containers": [container(IMAGE)], **pod}))

    (first, *_) = site.get("pods", "-l", "app=web")["items"]

    assert available(site, "daemonset/web") == 0
    message = first["status"]["containerStatuses"][0]["state"]["waiting"]["message"]
    assert named in message


def test_a_config_map_that_comes_later_lets_pods_run(site: ClusterSite) -> None:
    networked(site)
    volumes = [{"name": "v", "configMap": {"name": "settings"}}]
    site.apply(workload("DaemonSet", "web", {"containers": [container(IMAGE)], "volumes": volumes}))
    assert available(site, "daemonset/web") == 0

    site.apply(config_map("settings"))
    assert available(site, "daemonset/web") == 2


def test_taints_selectors_and_rest_keep_pods_away(site: ClusterSite) -> None:
    networked(site)
    pod = {"containers": [container(IMAGE)]}
    everywhere = {**pod, "tolerations": [{"operator": "Exists"}]}
    chosen = {**pod, "nodeSelector": {"disk": "fast"}}
    site.apply(
        workload("DaemonSet", "usual", pod),
        workload("DaemonSet", "everywhere", everywhere),
        workload("DaemonSet", "chosen", chosen),
        workload("Deployment", "one", pod),
    )
    site.kubectl("label", "--overwrite", "node", "w2", "disk=fast")

    names = ("daemonset/usual", "daemonset/everywhere", "daemonset/chosen", "deployment/one")
    assert [available(site, name) for name in names] == [2, 3, 1, 1]

    site.kubectl("drain", "--ignore-daemonsets", "w1")
    site.kubectl("cordon", "w2")
    assert [available(site, name) for name in names] == [2, 3, 1, 0]


def test_pods_need_somebody_who_makes_and_places_them(site: ClusterSite) -> None:
    networked(site)
    site.apply(workload("DaemonSet", "web", {"containers": [container(IMAGE)]}))
    assert available(site, "daemonset/web") == 2

    site.do("rm", f"{layout.MANIFESTS}/kube-controller-manager.yaml", host="cp1")

    assert site.get("daemonset", "web")["status"] == {}


def test_pods_need_kube_proxy_to_reach_the_api(site: ClusterSite) -> None:
    networked(site)
    site.apply(workload("DaemonSet", "web", {"containers": [container(IMAGE)]}))
    site.kubectl("delete", "daemonset", "kube-proxy", "-n", "kube-system")

    assert available(site, "daemonset/web") == 0


def test_flannel_lays_the_network_of_every_node_that_has_its_images(site: ClusterSite) -> None:
    for host in ("cp1", "w1"):
        site.lay_images(host, ["f:1", "p:1"])
    for host in ("cp1", "w1", "w2"):
        for name in PLUGINS:
            site.put(f"{layout.CNI_PLUGINS}/{name}", "plugin\n", 0o755, host)
    manifest = render.render("flannel/manifest", FLANNEL.data()).encode()

    done = site.kubectl("apply", "--server-side", "--force-conflicts", "--field-manager", "kubexm",
                        "-f", "-", stdin=manifest)  # fmt: skip

    assert done.ok, done
    assert [trouble(site, name) for name in ("cp1", "w1")] == ["", ""]
    assert "no network config" in trouble(site, "w2")
    assert available(site, "daemonset/flannel", "kube-flannel") == 2
    assert site.ask("test", "-f", f"{layout.CNI_CONFIG}/10-flannel.conflist", host="w1").ok


def test_flannel_needs_the_plugins_that_it_hands_on_to(site: ClusterSite) -> None:
    site.lay_images("w1", ["f:1", "p:1"])
    manifest = render.render("flannel/manifest", FLANNEL.data()).encode()
    site.kubectl("apply", "--server-side", "--force-conflicts", "--field-manager", "kubexm",
                 "-f", "-", stdin=manifest)  # fmt: skip

    assert 'plugin "portmap"' in trouble(site, "w1")


def test_calico_needs_its_kinds(site: ClusterSite) -> None:
    manifest = stored.content("calico/v3.32.1/manifest/any")
    for host in ("cp1", "w1", "w2"):
        site.lay_images(host, [f"quay.io/calico/{name}:v3.32.1" for name in CALICO])
        for name in PLUGINS:
            site.put(f"{layout.CNI_PLUGINS}/{name}", "plugin\n", 0o755, host)
    done = site.kubectl("apply", "--server-side", "--force-conflicts", "--field-manager", "kubexm",
                        "-f", "-", stdin=manifest)  # fmt: skip
    assert done.ok, done

    assert trouble(site, "w1") == ""
    assert available(site, "deployment/calico-kube-controllers", "kube-system") == 1
    site.do("rm", f"{layout.CNI_CONFIG}/10-calico.conflist", host="w2")
    site.kubectl("delete", "crd", "ippools.crd.projectcalico.org")
    assert "no network config" in trouble(site, "w2")


CALICO = ("node", "cni", "kube-controllers")


def test_addresses_are_given_out_once_and_are_free_when_their_node_is_gone(
    site: ClusterSite,
) -> None:
    def network(node: str) -> str:
        return str(site.get("node", node)["spec"]["podCIDR"])

    assert [network(name) for name in ("cp1", "w1", "w2")] == [
        f"10.233.{number}.0/24" for number in (64, 65, 66)
    ]
    site.kubectl("delete", "node", "w1")
    site.lay("cp2")
    assert site.join("cp2").ok

    assert network("cp2") == "10.233.65.0/24"


def test_the_pods_of_a_node_are_shown(site: ClusterSite) -> None:
    found = site.get("pods", "-A", "--field-selector", "spec.nodeName=cp1")["items"]

    names = {one["metadata"]["name"] for one in found}
    assert {"etcd-cp1", "kube-apiserver-cp1"} <= names
    assert all(one["spec"]["nodeName"] == "cp1" for one in found)
    assert len(IMAGES) > len({one["spec"]["containers"][0]["image"] for one in found})
