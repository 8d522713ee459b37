"""How a whole cluster tells of its health, on simulated hosts that are well until a test is not."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import cast

import pytest
from msgspec.structs import replace
from tests import virtual

from kubexm.app import health, known, runs
from kubexm.app.execution import Front
from kubexm.app.known import KnownCluster
from kubexm.app.params import ClusterParams, OperationParams, PlanParams, RunParams
from kubexm.app.reaching import Reach
from kubexm.common import layout
from kubexm.common.paths import Home
from kubexm.pki import kubeconfig
from kubexm.runner.host import Host
from kubexm.runtime.build import Runtime, RuntimeConfig
from kubexm.sim import World
from kubexm.step.health_look import Told
from kubexm.templates import formats

FILE = """
apiVersion: kubexm.io/v1alpha1
kind: Cluster
metadata: {name: demo}
spec:
  hosts:
    - {name: control1, address: 10.0.0.11, arch: amd64}
    - {name: worker1, address: 10.0.0.21, arch: amd64}
  endpoint: {kind: haproxy}
  etcd: {kind: systemd}
  kubernetes: {version: v1.36.4, certificates: {algorithm: ECDSA-P256}}
  network: {plugin: routed}
"""
KUBELET = f"{layout.KUBELET_DATA}/pki/kubelet-client-current.pem"
COREDNS = """{"apiVersion": "apps/v1", "kind": "Deployment",
 "metadata": {"name": "coredns", "namespace": "kube-system"}}"""


class Demo:
    """A cluster that a test may spoil."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self.cluster = known.cluster(home, "demo")
        self.world = World.open(home.worlds / "demo")

    def do(self, host: str, *words: str, stdin: str = "") -> None:
        async def scenario() -> None:
            there = Host(host, self.world.connector(host))
            await there.run(*words, stdin=stdin.encode())

        asyncio.run(scenario())

    def kubeconfig(self, host: str, path: str) -> kubeconfig.Document:
        found = asyncio.run(self.world.connector(host).get(path))
        return cast("kubeconfig.Document", formats.parsed(found.decode(), "yaml"))

    def put(self, host: str, path: str, text: str) -> None:
        asyncio.run(self.world.connector(host).put(path, text.encode()))

    def told(self, cluster: KnownCluster | None = None, without: Sequence[str] = ()) -> list[Told]:
        async def scenario() -> list[Told]:
            with closing(Reach(self.home, None, Front().vault, self.world)) as reach:
                ways = [reach.host(host) for host in self.cluster.hosts]
                async with Runtime.build(
                    RuntimeConfig(hosts=ways, idle=frozenset(without))
                ) as runtime:
                    return await health.asked(runtime, cluster or self.cluster)

        return asyncio.run(scenario())

    def ill(self, cluster: KnownCluster | None = None) -> set[tuple[str, str]]:
        return {(one.check, one.where) for one in self.told(cluster) if one.grade == "ill"}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("made")
    (root / "cluster.yaml").write_text(FILE)
    plan = PlanParams(OperationParams(ClusterParams(root / "cluster.yaml")))
    outcome = virtual.hurried(runs.run(RunParams(plan, simulate=True), Front(), _home(root)))
    assert outcome.result.status == "Success"
    _certify(_home(root))
    return root


@pytest.fixture
def demo(made: Path, tmp_path: Path) -> Iterator[Demo]:
    shutil.copytree(made, tmp_path / "copy")
    found = Demo(_home(tmp_path / "copy"))
    yield found
    found.world.close()


def _certify(home: Home) -> None:
    """Give kubelets a certificate that can be read: simulated ones make do with a text."""
    demo = Demo(home)
    admin = demo.kubeconfig("control1", layout.ADMIN_CONFIG)
    certificate = kubeconfig.client_certificate(admin) or b""
    for host in ("control1", "worker1"):
        config = demo.kubeconfig(host, layout.KUBELET_KUBECONFIG)
        config["users"][0]["user"] = admin["users"][0]["user"]
        demo.put(host, layout.KUBELET_KUBECONFIG, kubeconfig.text(config))
        demo.put(host, KUBELET, certificate.decode())
    demo.world.close()


def _home(root: Path) -> Home:
    return Home(root / "state", root / "data", root / "cache")


def test_a_cluster_that_is_well_has_nothing_that_is_ill(demo: Demo) -> None:
    told = demo.told()

    assert {one.check for one in told} == {*health.CHECKS} - {"host"}
    assert [one for one in told if one.grade == "ill"] == []
    assert {one.where for one in told if one.check == "endpoint"} == {"control1", "worker1"}


def test_that_nobody_could_ask_for_names_is_told(demo: Demo) -> None:
    (dns,) = (one for one in demo.told() if one.check == "dns")
    assert (dns.where, dns.grade) == ("cluster", "warning")


def test_that_no_control_plane_could_be_asked_is_told(demo: Demo) -> None:
    told = {one.check: one for one in demo.told(without=("control1",))}

    for check in ("node", "workloads", "pods"):
        assert (told[check].where, told[check].grade) == ("cluster", "ill")
        assert "no control plane is reached" in told[check].what


def test_etcd_beside_control_planes_is_asked_and_that_of_the_site_is_not(demo: Demo) -> None:
    demo.do("control1", "systemctl", "stop", "etcd")
    theirs = replace(demo.cluster, about=replace(demo.cluster.about, etcd="external"))

    assert ("etcd", "control1") in demo.ill()
    assert "etcd" not in {one.check for one in demo.told(theirs)}


def test_a_workload_of_ours_that_is_gone_is_ill(demo: Demo) -> None:
    kubectl = (f"{layout.BINARIES}/kubectl", "--kubeconfig", layout.ADMIN_CONFIG)
    words = ("delete", "-n", "kube-system", "--ignore-not-found", "--wait=false", "-f", "-")
    demo.do("control1", *kubectl, *words, stdin=COREDNS)

    (told,) = (one for one in demo.told() if one.grade == "ill")
    assert told.what == "kube-system/deployment/coredns is not there"


def test_a_balancer_that_is_dead_is_told_of_the_host_that_has_it(demo: Demo) -> None:
    demo.do("worker1", "systemctl", "stop", "kubexm-haproxy")

    assert ("endpoint", "worker1") in demo.ill()
    assert ("endpoint", "control1") not in demo.ill()
    assert ("api", "control1") not in demo.ill()


def test_what_can_not_be_understood_is_told_and_ends_nothing_else(demo: Demo) -> None:
    demo.put("worker1", layout.KUBELET_CONFIG, "clusterDomain: cluster.local\n")
    demo.put("control1", layout.KUBELET_CONFIG, "[not, a, mapping]\n")

    told = demo.told()

    assert {one.where for one in told if (one.check, one.grade) == ("dns", "ill")} == {
        *("control1", "worker1")
    }
    assert {one.check for one in told} == {*health.CHECKS} - {"host"}
