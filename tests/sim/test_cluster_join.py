"""Hosts join a cluster that they reach, with a token and an authority that are right."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.sim.clusters import (
    ADDRESSES,
    ENDPOINT,
    IMAGES,
    KUBEADM,
    PROXY,
    ClusterSite,
    certificates,
)

from kubexm.common import layout
from kubexm.connector.base import Completed
from kubexm.sim.kubecerts import made_up
from kubexm.templates.contexts.kubeadm import Node, Taint


@pytest.fixture
def site(tmp_path: Path) -> Iterator[ClusterSite]:
    made = ClusterSite(tmp_path)
    made.lay("cp1")
    assert made.init().ok
    yield made
    made.close()


def test_workers_and_control_planes_join_and_each_gets_its_addresses(site: ClusterSite) -> None:
    for host in ("cp2", "cp3", "w1"):
        site.lay(host)
        assert site.join(host).ok

    nodes = {one["metadata"]["name"]: one for one in site.get("nodes")["items"]}
    assert [nodes[name]["spec"]["podCIDR"] for name in ("cp1", "cp2", "cp3", "w1")] == [
        f"10.233.{number}.0/24" for number in (64, 65, 66, 67)
    ]
    assert "node-role.kubernetes.io/control-plane" in nodes["cp3"]["metadata"]["labels"]
    assert "node-role.kubernetes.io/control-plane" not in nodes["w1"]["metadata"]["labels"]
    assert site.state("kubelet", "w1") == "active"
    assert not site.ask("test", "-e", layout.KUBELET_BOOTSTRAP, host="w1").ok
    assert site.kubectl("get", "nodes", "-o", "name", host="cp3").ok


@pytest.mark.parametrize(
    ("missing", "named"),
    [
        ("tools", "conntrack not found"),
        ("kernel", "ip_forward"),
        ("containerd", "container runtime"),
        ("kubelet.yaml", f"open {layout.KUBELET_CONFIG}"),
        ("units", "kubelet.service is not started"),
        ("hosts", f"lookup {ENDPOINT}: no such host"),
    ],
)
def test_what_a_worker_lacks_is_named(site: ClusterSite, missing: str, named: str) -> None:
    site.lay("w1", without={missing, *(("images",) if missing == "containerd" else ())})

    done = site.join("w1")

    assert done.exit == 1
    assert named in done.error_text


def test_a_worker_gets_the_authority_from_the_cluster_if_it_has_none(site: ClusterSite) -> None:
    site.lay("w1", without={"certificates"})

    assert site.join("w1").ok
    assert site.do("cat", f"{layout.PKI}/ca.crt", host="w1").encode().strip() == (
        certificates(True)["w1"].pki["ca.crt"].content.strip()
    )


def test_an_authority_that_is_there_already_is_named_unless_it_is_passed_over(
    site: ClusterSite,
) -> None:
    site.lay("w1")
    site.join("w1", token="abcdef.0123456789abcdef")  # lays the configuration
    path = f"{layout.SECRETS_IN_MEMORY}/kubeadm-join.yaml"
    text = site.do("cat", path, host="w1").replace("abcdef.0123456789abcdef", site.token())
    site.put(path, text, host="w1")

    done = site.ask(KUBEADM, "join", "--config", path, host="w1")

    assert "[ERROR FileAvailable--etc-kubernetes-pki-ca.crt]" in done.error_text


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"token": "abcdef.0123456789abcdef"}, 'for token ID "abcdef"'),
        ({"ca_hashes": ("sha256:" + "0" * 64,)}, "are pinned"),
        ({"endpoint": "10.0.0.99:6443"}, "10.0.0.99:6443 was refused"),
        ({"endpoint": "api.other.example:6443"}, "lookup api.other.example: no such host"),
    ],
)
def test_a_cluster_that_is_not_found_or_not_meant_is_not_joined(
    site: ClusterSite, changes: dict[str, str], named: str
) -> None:
    site.lay("w1")

    done = site.join("w1", **changes)

    assert done.exit == 1
    assert named in done.error_text
    assert site.get("node", "w1") is None


def test_a_token_that_has_ended_lets_nobody_in(
    site: ClusterSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.lay("w1")
    token, now = site.token(), time.time()
    monkeypatch.setattr("time.time", lambda: now + 7201)

    assert "has expired" in site.join("w1", token=token).error_text


def test_the_endpoint_of_the_cluster_has_to_be_reached_too(site: ClusterSite) -> None:
    site.lay("w1", without={"hosts"})
    site.put("/etc/hosts", f"10.0.0.99 {ENDPOINT}\n", host="w1")

    done = site.join("w1", endpoint="10.0.0.11:6443")

    assert f"{ENDPOINT}:6443 was refused" in done.error_text


@pytest.mark.parametrize(
    "name", ["ca.crt", "ca.key", "sa.key", "sa.pub", "front-proxy-ca.key", "etcd/ca.crt"]
)
def test_a_control_plane_needs_every_authority(site: ClusterSite, name: str) -> None:
    site.lay("cp2")
    site.do("rm", f"{layout.PKI}/{name}", host="cp2")

    done = site.join("cp2")

    assert done.exit == 1
    assert name in done.error_text


def test_a_control_plane_with_another_authority_is_not_let_in(site: ClusterSite) -> None:
    site.lay("cp2")
    site.put(f"{layout.PKI}/ca.crt", made_up("another").decode(), host="cp2")

    assert "ca.crt is not the authority of the cluster" in site.join("cp2").error_text


def test_a_control_plane_needs_a_majority_of_etcd(site: ClusterSite) -> None:
    for host in ("cp2", "cp3"):
        site.lay(host)
    assert site.join("cp2").ok
    token = site.token()
    site.world.host("cp1").stop()

    assert "was refused" in site.join("cp3", token=token).error_text


def test_a_certificate_by_another_authority_of_etcd_is_refused(site: ClusterSite) -> None:
    site.lay("cp2")
    for name, file in certificates(False)["e1"].pki.items():
        site.put(f"{layout.PKI}/{name}", file.content.decode(), host="cp2")

    done = site.join("cp2")

    assert done.exit == 1
    assert "apiserver-etcd-client is not signed by CA certificate etcd/ca" in done.error_text


def test_the_name_of_a_node_that_is_ready_can_not_be_taken(site: ClusterSite) -> None:
    for host in ("w1", "w2"):
        site.lay(host)
    assert site.join("w1").ok
    node = Node(name="w1", addresses=ADDRESSES["w2"])
    site.lay_network("w1", "10.233.65.0/24")

    done = site.join("w2", node=node)

    assert '"w1" and status "Ready" already exists' in done.error_text


def test_a_second_attempt_fails_at_what_the_first_left(site: ClusterSite) -> None:
    site.lay("w1")
    assert site.join("w1").ok

    done = site.join("w1")

    assert "[ERROR FileAvailable--etc-kubernetes-kubelet.conf]" in done.error_text
    assert "[ERROR Port-10250]" in done.error_text


def test_a_worker_comes_with_the_taints_it_is_told(site: ClusterSite) -> None:
    site.lay("w1")
    node = Node(name="w1", addresses=ADDRESSES["w1"], taints=(Taint(key="gpu", value="yes"),))

    assert site.join("w1", node=node).ok
    assert site.get("node", "w1")["spec"]["taints"] == [
        {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
    ]


def test_a_node_runs_kube_proxy_only_if_it_has_the_image(site: ClusterSite) -> None:
    site.lay("w1", without={"images"})
    site.lay_images("w1", [image for image in IMAGES if image != PROXY])
    assert site.join("w1").ok

    status = site.get("-n", "kube-system", "daemonset/kube-proxy")["status"]

    assert (status["desiredNumberScheduled"], status["numberAvailable"]) == (2, 1)
    site.lay_images("w1")
    assert site.get("-n", "kube-system", "daemonset/kube-proxy")["status"]["numberAvailable"] == 2


def test_of_two_control_planes_that_join_at_once_the_second_is_refused(site: ClusterSite) -> None:
    for host in ("cp2", "cp3"):
        site.lay(host)
        site.lay_join(host)

    async def both() -> list[Completed]:
        joins = (site.joining(host) for host in ("cp2", "cp3"))
        return [*await asyncio.gather(*joins)]

    first, second = asyncio.run(both())

    assert first.ok, first
    assert "too many learner members in cluster: cp2 is not through yet" in second.error_text
    assert site.join("cp3", "--ignore-preflight-errors", "all").ok


def test_a_control_plane_that_fails_to_join_keeps_nobody_else_back(site: ClusterSite) -> None:
    for host in ("cp2", "cp3"):
        site.lay(host)
    site.do("rm", f"{layout.PKI}/sa.key", host="cp2")

    assert site.join("cp2").exit == 1
    assert site.join("cp3").ok
