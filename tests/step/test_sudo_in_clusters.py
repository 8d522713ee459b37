"""The same of steps for clusters: all with sudo or nothing, whatever the host's habit is."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from tests.pki.samples import authority
from tests.step.listening import answering, kubectl, shown
from tests.step.places import SimPlace
from tests.step.watched import Watched

from kubexm.runner.host import Host
from kubexm.runtime.assets import NoAssets
from kubexm.sim import Effects, Machine, Script, WorldSettings
from kubexm.step.contract import Step
from kubexm.step.control_plane import JoinToken, PhasesDone
from kubexm.step.helm import Released
from kubexm.step.kube import NodeReady, PodNetworks, RolledOut
from kubexm.step.kube_node import MarkedNode
from kubexm.step.kube_nodes import NodesReady
from kubexm.step.kube_proxy import ProxyConfigured
from kubexm.step.kubeadm import Initialised, Joined, Reset
from kubexm.step.manifests import Applied, AppliedFile
from kubexm.step.zone import TimeZone

MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shop}\n"
FILES = ("/etc/hostname",)
STEPS: Mapping[str, Step] = {
    step.kind: step
    for step in (
        Initialised(records={"kubelet": FILES}),
        Joined(text="token: {{ token }}"),
        Reset(paths=("/srv/etcd",)),
        PhasesDone("control-plane", (("control-plane", "all"),), FILES),
        JoinToken(),
        Applied("shop", content=MAP),
        AppliedFile("shop", "shop/v1/manifest/", "configmap/shop"),
        RolledOut("deployment/web"),
        NodeReady("w1"),
        PodNetworks(("w1",)),
        NodesReady(("w1",)),
        ProxyConfigured("mode: nftables"),
        MarkedNode("w1", labels={"disk": "ssd"}, taints=("db:NoSchedule",)),
        Released("web", "web/v1/chart/", "1.0"),
        TimeZone("Europe/Berlin"),
    )
}
NODE = {"kind": "Node", "metadata": {"name": "w1"}, "spec": {"podCIDRs": ["10.1.0.0/24"]}}
WEB = {
    "kind": "Deployment",
    "metadata": {"name": "web", "generation": 1},
    "spec": {"selector": {"matchLabels": {"app": "web"}}},
}
PROXY = {"kind": "DaemonSet", "metadata": {"name": "kube-proxy"}}
PENDING = {"name": "web", "revision": "1", "status": "pending-upgrade", "chart": "web-0.9"}
GET = ("get", "--ignore-not-found", "-o", "json")
LINK = "3: cni0: <BROADCAST> mtu 1500 qdisc noop state DOWN\n"
CHAIN = "*nat\n:KUBE-SERVICES - [0:0]\nCOMMIT\n"
SCRIPTS = (
    answering("kubeadm", "token", "**", stdout="abcdef.0123456789abcdef\n"),
    answering("kubeadm", "**", effects=Effects(files={"/etc/kubernetes/kubelet.conf": "x"})),
    kubectl(*GET, "node", "**", stdout=shown(NODE)),
    kubectl(*GET, "nodes", stdout=shown({"items": [NODE]})),
    kubectl(*GET, "-n", "kube-system", "deployment/web", stdout=shown(WEB)),
    kubectl(*GET, "-n", "kube-system", "daemonset/kube-proxy", stdout=shown(PROXY)),
    kubectl("diff", "**", exit=1, stdout="+a\n"),
    kubectl("**"),
    answering("helm", "list", "**", stdout=shown([PENDING])),
    answering("helm", "get", "**", stdout="null"),
    answering("helm", "**"),
    answering("ctr", "**"),
    Script(("journalctl", "**")),
    Script(("ip", "-o", "link", "show"), stdout=LINK),
    Script(("ip", "link", "delete", "cni0")),
    Script(("iptables-save",), stdout=CHAIN),
    Script(("ip6tables-save",), exit=127),
    Script(("iptables-restore", "--noflush")),
    Script(("nft", "**"), exit=127),
    Script(("ipset", "list", "-name"), stdout="KUBE-CLUSTER-IP\n"),
    Script(("ipset", "destroy", "*")),
)
VALUES = {"join": {"token": "abcdef.0123456789abcdef", "caHashes": ["sha256:1"]}}


class OneFile(NoAssets):
    """A store that has the same under every name."""

    def __init__(self, path: Path) -> None:
        path.write_text(MAP)
        self._path = path

    def digest(self, key: str) -> str | None:
        return sha256(self._path.read_bytes()).hexdigest()

    def path(self, digest: str) -> Path:
        return self._path


@pytest.fixture
def place(tmp_path: Path) -> Iterator[SimPlace]:
    machine = Machine(files={"/etc/kubernetes/pki/ca.crt": authority().certificate.decode()})
    made = SimPlace(tmp_path, WorldSettings(machine=machine, scripts=SCRIPTS))
    yield made
    made.close()


@pytest.mark.parametrize("sudo", [True, False])
@pytest.mark.parametrize("kind", STEPS)
def test_a_step_does_everything_with_sudo_or_nothing(
    kind: str, sudo: bool, place: SimPlace, tmp_path: Path
) -> None:
    step: Any = dataclasses.replace(STEPS[kind], sudo=sudo)  # type: ignore[type-var]
    watched = Watched(place.world.connector("there"))
    place.host = Host("there", watched, sudo=not sudo)

    place.verdict(step)
    place.run(step, values=VALUES, assets=OneFile(tmp_path / "file"))
    place.wait(step.diagnose(place.context()))
    place.undo(step)

    assert watched.asked
    assert [what for what, found in watched.asked if found is not sudo] == []
