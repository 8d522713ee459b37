"""The steps of Kubernetes in a simulated cluster, one after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pytest
from tests.sim.clusters import (
    ADDRESSES,
    CONTROL_PLANES,
    ENDPOINT,
    IMAGES,
    PROXY,
    ClusterSite,
    workload,
)
from tests.step.places import KnownSecrets, MemoryLedger
from tests.virtual import VirtualLoop

from kubexm.common import layout
from kubexm.errors import CommandFailed, StepFailed
from kubexm.runner import kubeadm
from kubexm.runner.host import Host
from kubexm.runner.kubeadm import Marker
from kubexm.runtime.contexts import StepContext
from kubexm.step.contract import NotYet, Outcome, Step, Verdict
from kubexm.step.control_plane import JoinToken, PhasesDone
from kubexm.step.kube import NodeReady, PodNetworks, RolledOut
from kubexm.step.kube_node import MarkedNode
from kubexm.step.kube_nodes import NodesReady
from kubexm.step.kubeadm import Initialised, Joined, Reset
from kubexm.step.manifests import Applied
from kubexm.step.services import Service
from kubexm.templates.contexts.kubeadm import ApiEndpoint, JoinConfig, Node

T = TypeVar("T")
KUBELET = (layout.KUBELET_CONFIG,)
MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shop, namespace: shop}\ndata: {a: '1'}\n"
SPACE = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n---\n"


class Site(ClusterSite):
    """A world with a cluster, and steps on its hosts."""

    def __init__(self, directory: Path, **settings: Any) -> None:
        super().__init__(directory, **settings)
        self._runner = asyncio.Runner(loop_factory=partial(VirtualLoop, threads=True))
        self.ledgers = {host: MemoryLedger() for host in ADDRESSES}
        self.values: dict[str, Any] = {}

    def context(self, host: str, **settings: Any) -> StepContext:
        known = Host(host, self.world.connector(host))
        return StepContext(
            host=known,
            node="a/node",
            ledger=self.ledgers[host],
            secrets=KnownSecrets({}),
            values=self.values,
            **settings,
        )

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(work)

    def verdict(self, host: str, step: Step) -> Verdict:
        return self.wait(step.precheck(self.context(host)))

    def carry_out(self, host: str, step: Step, **settings: Any) -> Outcome | NotYet | None:
        """Run a step as often as it says that it has to wait, and keep its values."""
        outcome = self.wait(step.run(self.context(host, **settings)))
        if isinstance(outcome, NotYet):
            return self.carry_out(host, step, **settings)
        if isinstance(outcome, Outcome):
            self.values.update(outcome.values)
        return outcome

    def undo(self, host: str, step: Step) -> Any:
        return self.wait(step.rollback(self.context(host)))

    def close(self) -> None:
        self._runner.close()
        super().close()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path)
    yield made
    made.close()


def begin(site: Site) -> Initialised:
    """The first control plane."""
    site.lay("cp1")
    site.write("kubeadm/init", site.init_config(), layout.KUBEADM_CONFIG, "cp1")
    step = Initialised(records={"kubelet": KUBELET, "control-plane": (layout.KUBEADM_CONFIG,)})
    site.carry_out("cp1", step)
    return step


def joining(host: str) -> Joined:
    """A host that joins, as it would be planned."""
    api = ApiEndpoint(address=ADDRESSES[host][0]) if host in CONTROL_PLANES else None
    node = Node(name=host, addresses=ADDRESSES[host])
    data = JoinConfig(endpoint=f"{ENDPOINT}:6443", node=node, api=api).data()
    laid_before = ("FileAvailable--etc-kubernetes-pki-ca.crt",)
    return Joined(
        template="kubeadm/join",
        data=data,
        ignore_errors=() if api else laid_before,
        records={"kubelet": KUBELET},
    )


def join(site: Site, *hosts: str) -> None:
    site.carry_out("cp1", JoinToken())
    for host in hosts:
        site.lay(host)
        site.carry_out(host, joining(host))


def test_a_cluster_is_begun_and_joined_and_a_second_look_finds_nothing_to_do(site: Site) -> None:
    first = begin(site)
    join(site, "cp2", "w1")

    nodes = [one["metadata"]["name"] for one in site.get("nodes")["items"]]
    assert nodes == ["cp1", "cp2", "w1"]
    assert site.verdict("cp1", first).satisfied
    for host in ("cp2", "w1"):
        assert site.verdict(host, joining(host)).satisfied
        assert not site.ask("test", "-e", "/run/kubexm", host=host).ok
        kubelet = Service("kubelet", restarts_on=KUBELET)
        assert site.verdict(host, kubelet).satisfied


def test_an_attempt_without_images_is_finished_when_they_are_there(site: Site) -> None:
    site.lay("cp1", without=("images",))
    site.write("kubeadm/init", site.init_config(), layout.KUBEADM_CONFIG, "cp1")
    step = Initialised()
    with pytest.raises(StepFailed, match="kubeadm init"):
        site.carry_out("cp1", step)
    site.lay_images("cp1", IMAGES)

    site.carry_out("cp1", step)

    assert site.verdict("cp1", step).satisfied
    assert site.get("node", "cp1") is not None


def test_a_join_of_which_nobody_heard_the_end_is_taken_up_again(site: Site) -> None:
    begin(site)
    site.carry_out("cp1", JoinToken())
    site.lay("w1")
    begun = kubeadm.mark(site.context("w1").host, Marker("begun", "join"))
    site.wait(begun)
    assert site.join("w1").ok

    site.carry_out("w1", joining("w1"))

    assert site.verdict("w1", joining("w1")).satisfied
    assert site.get("node", "w1") is not None


def test_a_host_that_is_taken_out_can_join_again(site: Site) -> None:
    begin(site)
    join(site, "w1")
    site.carry_out("w1", Reset())
    assert site.verdict("w1", Reset()).satisfied
    assert site.verdict("w1", joining("w1")).sign == "+"
    site.lay_certificates("w1")

    site.carry_out("w1", joining("w1"))

    assert site.verdict("w1", joining("w1")).satisfied


def test_a_rollback_leaves_no_member(site: Site) -> None:
    begin(site)
    join(site, "w1")

    site.undo("w1", joining("w1"))

    assert not site.ask("test", "-e", layout.KUBELET_KUBECONFIG, host="w1").ok
    assert site.state("kubelet", "w1") == "inactive"


def test_settings_of_a_control_plane_are_changed_once(site: Site) -> None:
    begin(site)
    step = PhasesDone(
        record="control-plane",
        phases=(("control-plane", "all"), ("upload-config", "kubeadm")),
        files=(layout.KUBEADM_CONFIG,),
    )
    first = site.verdict("cp1", step)
    changed = site.init_config(dns_domain="example.org")
    site.write("kubeadm/init", changed, layout.KUBEADM_CONFIG, "cp1")
    second = site.verdict("cp1", step)

    site.carry_out("cp1", step)

    assert (first.satisfied, second.satisfied) == (True, False)
    assert site.verdict("cp1", step).satisfied


def test_settings_are_recorded_once_the_control_plane_runs_with_them(site: Site) -> None:
    begin(site)
    step = PhasesDone(
        record="control-plane",
        phases=(("etcd", "local"), ("control-plane", "all")),
        files=(layout.KUBEADM_CONFIG,),
    )
    changed = site.init_config(dns_domain="example.org")
    site.write("kubeadm/init", changed, layout.KUBEADM_CONFIG, "cp1")
    site.ask("systemctl", "stop", "kubelet", host="cp1")

    with pytest.raises(StepFailed, match="after 180 s: "):
        site.carry_out("cp1", step)

    assert not site.verdict("cp1", step).satisfied
    site.ask("systemctl", "start", "kubelet", host="cp1")
    site.carry_out("cp1", step)
    assert site.verdict("cp1", step).satisfied


def test_objects_are_applied_changed_and_taken_back(site: Site) -> None:
    begin(site)
    step = Applied("shop", content=SPACE + MAP)
    other = Applied("shop", content=SPACE + MAP.replace("'1'", "'2'"))
    new = site.verdict("cp1", step)
    site.carry_out("cp1", step)
    same, different = site.verdict("cp1", step), site.verdict("cp1", other)
    site.ledgers["cp1"] = MemoryLedger()
    site.carry_out("cp1", other)

    site.undo("cp1", other)

    assert (new.satisfied, same.satisfied, different.satisfied) == (False, True, False)
    assert "2" in different.diff
    assert site.get("configmap", "shop", "-n", "shop")["data"] == {"a": "1"}


def test_what_was_new_is_gone_after_an_undo(site: Site) -> None:
    begin(site)
    step = Applied("shop", content=SPACE + MAP)
    site.carry_out("cp1", step)

    site.undo("cp1", step)

    assert site.get("configmap", "shop", "-n", "shop") is None


def test_an_object_in_a_namespace_that_is_not_there_is_needed(site: Site) -> None:
    begin(site)

    assert site.verdict("cp1", Applied("shop", content=MAP)).sign == "+"


def test_a_host_without_an_api_server_decides_nothing(site: Site) -> None:
    site.lay("cp1")

    for step in (Applied("shop", content=MAP), NodeReady("cp1"), RolledOut("deployment/coredns")):
        with pytest.raises(CommandFailed):
            site.verdict("cp1", step)


def test_nodes_are_marked_and_marks_that_are_not_wanted_any_more_go(site: Site) -> None:
    begin(site)
    join(site, "w1")
    step = MarkedNode("w1", labels={"disk": "ssd"}, taints=("db=yes:NoSchedule", "x:NoExecute"))
    site.carry_out("cp1", step)
    marked = site.verdict("cp1", step).satisfied
    less = MarkedNode("w1", taints=("db=no:NoSchedule",))

    site.carry_out("cp1", less)

    node = site.get("node", "w1")
    assert marked
    assert "disk" not in node["metadata"]["labels"]
    assert [(one["key"], one["value"]) for one in node["spec"]["taints"] if one["key"] == "db"] == [
        ("db", "no")
    ]
    assert not any(one["key"] == "x" for one in node["spec"]["taints"])
    assert site.verdict("cp1", less).satisfied


def test_nodes_are_ready_when_they_have_a_network_and_their_addresses_are_known(site: Site) -> None:
    begin(site)
    join(site, "w1")
    unready = site.verdict("cp1", NodeReady("w1"))
    for number, host in enumerate(("cp1", "w1")):
        site.lay_network(host, f"10.233.{64 + number}.0/24")

    outcome = site.carry_out("cp1", PodNetworks(("cp1", "w1")))

    assert not unready.satisfied
    assert site.verdict("cp1", NodeReady("w1")).satisfied
    assert isinstance(outcome, Outcome)
    assert outcome.values == {"pod_networks": {"cp1": ["10.233.64.0/24"], "w1": ["10.233.65.0/24"]}}


def test_a_workload_rolls_out_when_there_is_a_node_for_it(site: Site) -> None:
    begin(site)
    pod = {"containers": [{"name": "web", "image": PROXY}]}
    site.apply(workload("Deployment", "web", pod, replicas=1))
    step = RolledOut("deployment/web", "default")
    waiting = site.verdict("cp1", step)
    said = site.wait(step.diagnose(site.context("cp1")))
    join(site, "w1")
    for number, host in enumerate(("cp1", "w1")):
        site.lay_network(host, f"10.233.{64 + number}.0/24")

    assert not waiting.satisfied
    assert said.startswith("cause: no node takes the pod\n")
    assert "\npods:\n  pod web-" in said
    assert site.verdict("cp1", step).satisfied


def test_why_nodes_are_not_ready_is_told_by_what_the_cluster_knows_of_them(site: Site) -> None:
    begin(site)
    join(site, "w1")
    site.lay_network("cp1", "10.233.64.0/24")

    said = site.wait(NodesReady(("cp1", "w1", "w2")).diagnose(site.context("cp1"))).splitlines()

    assert said[0] == "cause: pods of the host have no network yet"
    assert said[2] == "nodes:"
    assert said[3].startswith("  w1: KubeletNotReady: cni plugin not initialized")
    assert said[4] == "  w2: has not joined"
    assert not any("cp1: " in line for line in said)


def test_why_pods_do_not_run_is_told_by_what_the_cluster_knows_of_them(site: Site) -> None:
    begin(site)
    join(site, "w1")
    for number, host in enumerate(("cp1", "w1")):
        site.lay_network(host, f"10.233.{64 + number}.0/24")
    image = "no.such.registry/web:1"
    site.apply(workload("Deployment", "web", {"containers": [{"name": "web", "image": image}]}))

    said = site.wait(RolledOut("deployment/web", "default").diagnose(site.context("cp1")))

    assert said.splitlines()[0] == f"cause: an image can't be had: {image}"
    assert "container web: ErrImagePull; Failed to pull image" in said
    assert "\nevents:\n  web-" in said
