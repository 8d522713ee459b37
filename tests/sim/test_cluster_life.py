"""Clusters through load balancers and virtual addresses, when hosts fall, and when they leave."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.sim.clusters import ADDRESSES, CONTROL_PLANES, ENDPOINT, ETCDS, KUBEADM, ClusterSite

from kubexm.common import layout
from kubexm.sim import World
from kubexm.templates.contexts.balancer import Backend, HaproxyConfig, KeepalivedConfig
from kubexm.templates.contexts.network import KubeVipPod

VIP = "10.0.0.10"
KUBE_VIP = "ghcr.io/kube-vip/kube-vip:v1.0.2"
RESET = (KUBEADM, "reset", "--force", "--cri-socket", layout.CRI_SOCKET)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[ClusterSite]:
    made = ClusterSite(tmp_path)
    yield made
    made.close()


def behind_vip(site: ClusterSite, *hosts: str) -> None:
    """Lay hosts that find the API at the virtual address."""
    for host in hosts:
        site.lay(host, without={"hosts"})
        site.put("/etc/hosts", f"{VIP} {ENDPOINT}\n", host=host)


def lay_kube_vip(site: ClusterSite, host: str, kubeconfig: str = layout.ADMIN_CONFIG) -> None:
    pod = KubeVipPod(image=KUBE_VIP, address=VIP, kubeconfig=kubeconfig)
    site.lay_images(host, [KUBE_VIP])
    site.write("kube-vip/pod", pod, f"{layout.MANIFESTS}/kube-vip.yaml", host)


def lay_balancer(site: ClusterSite, host: str, order: int) -> None:
    site.do("apt-get", "install", "-y", "haproxy", "keepalived", host=host)
    backends = tuple(
        Backend(name=name, address=f"{ADDRESSES[name][0]}:6443") for name in CONTROL_PLANES
    )
    site.write(
        "haproxy/config",
        HaproxyConfig(binds=("*:6443",), backends=backends),
        "/etc/haproxy/haproxy.cfg",
        host,
    )
    site.write(
        "keepalived/config",
        KeepalivedConfig(
            name=host,
            interface="eth0",
            router_id=51,
            order=order,
            address=ADDRESSES[host][0],
            peers=tuple(ADDRESSES[name][0] for name in ("e1", "e2") if name != host),
            virtual_address=VIP,
        ),
        "/etc/keepalived/keepalived.conf",
        host,
    )
    for unit in ("haproxy", "keepalived"):
        site.do("systemctl", "restart", unit, host=host)


def names(site: ClusterSite, host: str) -> list[str]:
    return site.kubectl("get", "nodes", "-o", "name", host=host).text.split()


def test_kube_vip_holds_the_address_from_the_first_moment(site: ClusterSite) -> None:
    behind_vip(site, "cp1", "cp2", "cp3", "w1")
    lay_kube_vip(site, "cp1", f"{layout.KUBERNETES}/super-admin.conf")

    assert site.init().ok
    for host in ("cp2", "cp3"):
        assert site.join(host).ok
        lay_kube_vip(site, host)
        assert site.state("kubelet", host) == "active"
    assert site.join("w1").ok

    site.world.host("cp1").stop()
    assert "node/w1" in names(site, "cp2")


def test_kube_vip_as_a_plain_administrator_has_no_rights_before_there_is_a_cluster(
    site: ClusterSite,
) -> None:
    behind_vip(site, "cp1")
    lay_kube_vip(site, "cp1")

    assert f"{ENDPOINT}:6443 was refused" in site.init().error_text


def test_without_the_image_of_kube_vip_nobody_holds_the_address(site: ClusterSite) -> None:
    behind_vip(site, "cp1")
    pod = KubeVipPod(
        image=KUBE_VIP, address=VIP, kubeconfig=f"{layout.KUBERNETES}/super-admin.conf"
    )
    site.write("kube-vip/pod", pod, f"{layout.MANIFESTS}/kube-vip.yaml", "cp1")

    assert f"{ENDPOINT}:6443 was refused" in site.init().error_text


def test_load_balancers_lead_to_a_control_plane_that_lives(site: ClusterSite) -> None:
    behind_vip(site, "cp1", "cp2", "cp3", "w1")
    for order, host in enumerate(("e1", "e2")):
        lay_balancer(site, host, order)

    assert site.init().ok
    for host in ("cp2", "cp3", "w1"):
        assert site.join(host).ok

    site.world.host("cp1").stop()
    assert "node/w1" in names(site, "cp2")
    site.do("systemctl", "stop", "haproxy", host="e1")
    assert "node/w1" in names(site, "cp2")
    site.do("systemctl", "stop", "keepalived", host="e2")
    assert names(site, "cp2") == []


def test_without_load_balancer_the_first_host_finds_nobody_at_the_endpoint(
    site: ClusterSite,
) -> None:
    behind_vip(site, "cp1")

    assert f"{ENDPOINT}:6443 was refused" in site.init().error_text


def test_a_balancer_that_is_no_host_of_the_world_is_gone_through(tmp_path: Path) -> None:
    behind = tuple(f"{ADDRESSES[name][0]}:6443" for name in CONTROL_PLANES)
    site = ClusterSite(tmp_path, balancers={f"{VIP}:6443": behind})
    behind_vip(site, "cp1", "w1")

    assert site.init().ok
    assert site.join("w1").ok
    site.close()


def test_a_cluster_survives_one_of_three_and_not_two(site: ClusterSite) -> None:
    site.begin("cp1", "cp2", "cp3")
    site.world.host("cp2").stop()
    assert len(names(site, "cp1")) == 3
    assert not site.is_ready("cp2")

    site.world.host("cp3").stop()
    assert names(site, "cp1") == []

    site.world.host("cp3").revive()
    assert len(names(site, "cp1")) == 3


def test_a_host_that_is_started_anew_is_what_it_was(site: ClusterSite) -> None:
    site.begin("cp1", "w1")
    for host in ("cp1", "w1"):
        site.world.host(host).reboot()

    assert site.kubectl("get", "nodes", "-o", "name").ok
    assert "ip_forward" not in site.kubectl("get", "nodes", "-o", "json").text


def test_a_worker_that_leaves_has_nothing_left_of_the_cluster(site: ClusterSite) -> None:
    site.begin("cp1", "w1")

    site.do(*RESET, host="w1")
    site.kubectl("delete", "node", "w1")

    assert site.state("kubelet", "w1") == "inactive"
    assert site.do("ls", "-A", layout.KUBELET_DATA, host="w1") == ""
    assert site.do("ls", "-A", layout.PKI, host="w1") == ""
    assert not site.ask("test", "-e", layout.KUBELET_KUBECONFIG, host="w1").ok
    assert names(site, "cp1") == ["node/cp1"]


def test_a_host_that_left_can_join_again(site: ClusterSite) -> None:
    site.begin("cp1", "w1")
    site.do(*RESET, host="w1")
    site.lay_certificates("w1")

    assert site.join("w1").ok
    assert site.is_ready("w1")


def test_a_control_plane_that_leaves_is_no_member_of_etcd_any_more(site: ClusterSite) -> None:
    site.begin("cp1", "cp2", "cp3")

    site.do(*RESET, host="cp3")
    site.world.host("cp3").stop()
    assert len(names(site, "cp1")) == 3

    # Two are left: one of them alone is no majority.
    site.world.host("cp2").stop()
    assert names(site, "cp1") == []


def test_the_last_control_plane_takes_the_cluster_with_it(site: ClusterSite) -> None:
    site.begin("cp1", "cp2")
    for host in ("cp2", "cp1"):
        site.do(*RESET, host=host)

    assert not [name for name in site.world.snapshot() if name.startswith("@cluster")]
    site.lay_certificates("cp1")
    assert site.init("cp1").ok
    assert names(site, "cp1") == ["node/cp1"]


def test_phases_of_leaving_can_be_left_out(site: ClusterSite) -> None:
    site.begin("cp1", "cp2")

    site.do(*RESET, "--skip-phases", "remove-etcd-member", host="cp2")

    assert names(site, "cp1") == []
    assert "invalid phase name" in site.ask(*RESET, "--skip-phases", "no", host="cp1").error_text


def test_what_is_done_is_kept_when_the_world_is_opened_again(site: ClusterSite) -> None:
    site.begin("cp1", "cp2", "w1")
    site.world.close()
    site.world = World.open(site.world.path)

    assert site.is_ready("w1")
    site.lay("w2")
    assert site.join("w2").ok


def test_two_worlds_in_which_the_same_was_done_are_equal(tmp_path: Path) -> None:
    snapshots = []
    for name in ("one", "two"):
        site = ClusterSite(tmp_path / name)
        site.begin("cp1", "cp2", "w1")
        found = site.world.snapshot()
        snapshots.append({name: found[name] for name in found if name.startswith("@cluster")})
        site.close()

    assert snapshots[0] == snapshots[1]


def test_clusters_of_one_world_do_not_meet(tmp_path: Path) -> None:
    site = ClusterSite(tmp_path)
    for host in ("cp1", "cp2"):
        site.lay(host, without={"hosts"})
        site.put("/etc/hosts", f"{ADDRESSES[host][0]} {ENDPOINT}\n", host=host)
        assert site.init(host).ok

    assert names(site, "cp1") == ["node/cp1"]
    assert names(site, "cp2") == ["node/cp2"]
    site.close()


def test_stopped_members_of_etcd_hold_their_data(tmp_path: Path) -> None:
    site = ClusterSite(tmp_path, stacked=False)
    for host in ETCDS:
        site.lay_etcd(host)
        site.do("systemctl", "start", "etcd", host=host)
    site.begin("cp1")
    for command in ("stop", "start"):
        for host in ETCDS:
            site.do("systemctl", command, "etcd", host=host)

    assert names(site, "cp1") == ["node/cp1"]
    site.close()
