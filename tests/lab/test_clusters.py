"""A real cluster on hosts of the lab, from its creation to its end; no host has a way outside.

The tests are one life of it, in this order.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.lab import own_package
from tests.lab.belongings import belongings
from tests.lab.cluster_control import Answer, ClusterControl
from tests.lab.enclosure import enclosed, require_no_way_outside

from kubexm.app import planning
from kubexm.app.params import ClusterParams, OperationParams, PlanParams
from kubexm.templates import render
from lab.testing import ROOT, Lab

pytestmark = [pytest.mark.lab, pytest.mark.timeout(2400)]

HOSTS = ("node1", "node2", "node3")
ROLES = {"control-plane": ["node1"], "worker": ["node2", "node3"]}
MORE: dict[str, Any] = {
    "endpoint": {"kind": "haproxy"},
    "storage": {"localPath": {"enabled": True}},
    "addons": [{"name": "metrics", "component": "metrics-server"}],
    "system": {"packages": [own_package.NAME]},
}
KUBELET = {"kubelet": {"maxPods": 150}}
KERNEL = {"sysctl": {"net.ipv4.tcp_keepalive_time": "1234"}}
CHANGED = {**MORE, "kubernetes": KUBELET, "system": {**MORE["system"], **KERNEL}}
OF_HOSTS = {"node3": {"labels": {"example.org/disk": "ssd"}}}
MANIFESTS = [("flannel", "flannel/manifest"), ("kube-vip", "kube-vip/pod")]
WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 1
      topologySpreadConstraints:
        - {maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule,
           labelSelector: {matchLabels: {app: web}}}
      containers:
        - name: web
          image: docker.io/library/busybox:1.37.0
          command: [sh, -c, 'echo "I am $HOSTNAME" > /tmp/index.html; httpd -f -p 8080 -h /tmp']
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
"""
POLICY = """
apiVersion: audit.k8s.io/v1
kind: Policy
rules: [{level: %s}]
"""
PATCH = {
    "spec": {"containers": [{"name": "etcd", "resources": {"requests": {"memory": "123Mi"}}}]},
}
PATCHED = {"kubeadm": {"patches": {"etcd": "etcd.yaml"}}}
KEEPER = """
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: kept}
spec:
  storageClassName: local-path
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 1Mi}}
---
apiVersion: v1
kind: Pod
metadata: {name: keeper}
spec:
  terminationGracePeriodSeconds: 1
  containers:
    - name: keeper
      image: docker.io/library/busybox:1.37.0
      command: [sh, -c, 'echo "I was here" > /kept/said; sleep infinity']
      volumeMounts: [{name: kept, mountPath: /kept}]
  volumes: [{name: kept, persistentVolumeClaim: {claimName: kept}}]
"""


class Life:
    """What the tests have done with the cluster so far."""

    def __init__(self, control: ClusterControl, before: dict[str, frozenset[str]]) -> None:
        self.control = control
        self.before = before
        """What each host had before kubexm came."""
        self.created: Answer = Answer(-1, "", "")

    def begun(self, service: str) -> dict[str, int]:
        """When a service of each host was started last."""
        words = ("systemctl", "show", "--value", "--property", "ExecMainStartTimestampMonotonic")
        return {host: int(self.control.on(host, *words, service)) for host in HOSTS}

    def served_since(self) -> str:
        """When the API server began."""
        began = "jsonpath={.status.containerStatuses[0].state.running.startedAt}"
        named = ("pod", "kube-apiserver-node1", "-n", "kube-system")
        return self.control.kubectl("get", *named, "-o", began)


@pytest.fixture(scope="module")
def life(
    cluster_hosts: Lab, software: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Life]:
    place = tmp_path_factory.mktemp("control")
    control = ClusterControl(cluster_hosts, software, place)
    control.declare(ROLES, **MORE)
    for host in HOSTS:
        own_package.offer(control, host)
    own_package.install(control, "node2")
    begun = Life(control, {host: belongings(cluster_hosts, host) for host in HOSTS})
    with enclosed(cluster_hosts):
        begun.created = control.create()
        yield begun


def test_it_is_made(life: Life) -> None:
    assert life.created.code == 0, life.created.err
    told = life.created.data
    assert told["task"]["status"] == "Success"
    path = [unit["node"] for unit in told["report"]["criticalPath"]]
    assert "create-cluster/control-plane/init/cluster" in path
    assert all(own_package.is_installed(life.control, host) for host in HOSTS)


def test_it_is_known_and_healthy(life: Life) -> None:
    (known,) = life.control.kubexm("get", "clusters", "-o", "json").data["clusters"]
    assert (known["name"], known["state"]) == ("lab", "created")
    health = life.control.await_health()
    assert {one["check"] for one in health.data["checks"]} == {
        *("api", "endpoint", "etcd", "node"),
        *("workloads", "pods", "dns", "certificates"),
    }


def test_pods_of_two_hosts_reach_each_other_by_the_name_of_a_service(life: Life) -> None:
    kubectl = life.control.kubectl
    kubectl("apply", "-f", "-", stdin=WEB)
    kubectl("rollout", "status", "deployment/web", "--timeout=120s")
    listed = kubectl("get", "pods", "-l", "app=web", "-o", "jsonpath={.items[*].spec.nodeName}")
    assert set(listed.split()) == {"node2", "node3"}
    pods = kubectl("get", "pods", "-l", "app=web", "-o", "name").split()

    asked = "for n in 1 2 3 4 5 6 7 8 9 10 11 12; do wget -T 5 -qO- http://web.default.svc; done"
    answers = kubectl("exec", pods[0], "--", "sh", "-c", asked)

    names = {pod.removeprefix("pod/") for pod in pods}
    assert {line.removeprefix("I am ") for line in answers.splitlines()} == names


def test_the_metrics_of_pods_and_volumes_are_there(life: Life) -> None:
    kubectl = life.control.kubectl
    kubectl("wait", "--for=condition=Available", "apiservice/v1beta1.metrics.k8s.io")
    used = life.control.await_kubectl("top", "nodes", "--no-headers").splitlines()
    assert {line.split()[0] for line in used} == {*HOSTS}

    kubectl("apply", "-f", "-", stdin=KEEPER)
    kubectl("wait", "--for=condition=Ready", "pod/keeper", "--timeout=120s")
    assert kubectl("get", "pvc", "kept", "-o", "jsonpath={.status.phase}") == "Bound"
    assert kubectl("exec", "keeper", "--", "cat", "/kept/said") == "I was here\n"
    kubectl("delete", "pod/keeper", "pvc/kept")
    # Volumes stay where they were written; this one goes with its claim.
    kubectl("wait", "--for=delete", "pv", "--all", "--timeout=120s")


@pytest.mark.parametrize(("example", "template"), MANIFESTS)
def test_the_api_takes_manifests_of_what_can_not_run_here(
    life: Life, example: str, template: str
) -> None:
    kubectl = life.control.kubectl
    kubectl("create", "namespace", "kube-flannel")
    try:
        # Unknown fields are refused too, where nobody writes anything.
        dry = ("--server-side", "--dry-run=server", "--validate=strict")
        taken = kubectl("apply", *dry, "-f", "-", stdin=_manifest(example, template))
    finally:
        kubectl("delete", "namespace", "kube-flannel")

    assert "serverside-applied (server dry run)" in taken


def _manifest(example: str, template: str) -> str:
    """What kubexm lays into a cluster, or onto its hosts, by one of its templates."""
    file = ROOT / "examples" / "clusters" / f"{example}.yaml"
    graph = planning.plan(PlanParams(OperationParams(ClusterParams(file)))).graph
    step = next(node.step for node in graph if node.step.params.get("template") == template)
    text, data = render.source(template), step.params["data"]
    return render.merged(text, data, {}, "manifests", what=template)


def test_again_there_is_nothing_to_change_and_kubectl_is_let_in_if_asked_for(life: Life) -> None:
    again = life.control.create("--merge-kubeconfig")
    assert again.code == 0, again.err
    assert again.changed() == set()
    assert len({node["version"] for node in again.data["cluster"]["hosts"]}) == 1
    merged = yaml.safe_load(life.control.kubeconfig.read_text())
    assert merged["current-context"] == "lab"
    assert merged["clusters"][0]["cluster"]["server"] == "https://10.99.0.11:6443"


def test_one_setting_changes_just_what_follows_from_it_as_foretold(life: Life) -> None:
    life.control.declare(ROLES, **MORE, kubernetes=KUBELET)
    kubelets, runtimes = life.begun("kubelet"), life.begun("containerd")
    foretold = life.control.foretell()
    assert "-maxPods: 110" in foretold.differences()
    assert "+maxPods: 150" in foretold.differences()

    changed = life.control.create()

    assert changed.code == 0, changed.err
    assert changed.changed() == foretold.changed()
    assert changed.changed() == {
        ("control-plane/prepare/config", "node1"),
        ("control-plane/prepare/kubeadm-config", "node1"),
        ("control-plane/init/kubelet", "node1"),
        ("control-plane/settings/node1", "node1"),
        *(("workers/prepare/config", host) for host in ("node2", "node3")),
        *(("workers/join/kubelet", host) for host in ("node2", "node3")),
    }
    now = life.begun("kubelet")
    assert [host for host in HOSTS if now[host] > kubelets[host]] == [*HOSTS]
    assert life.begun("containerd") == runtimes
    pods = life.control.kubectl("get", "nodes", "-o", "jsonpath={.items[*].status.capacity.pods}")
    assert pods.split() == ["150", "150", "150"]


def test_a_setting_of_the_kernel_changes_on_the_hosts_alone(life: Life) -> None:
    life.control.declare(ROLES, **CHANGED)
    kubelets = life.begun("kubelet")
    foretold = life.control.foretell()
    assert "+net.ipv4.tcp_keepalive_time = 1234" in foretold.differences()

    changed = life.control.create()

    assert changed.code == 0, changed.err
    assert changed.changed() == foretold.changed()
    assert changed.changed() == {
        ("system/core/kernel/settings", "node1"),
        *(("system/workers/kernel/settings", host) for host in ("node2", "node3")),
    }
    assert life.begun("kubelet") == kubelets
    for host in HOSTS:
        value = life.control.on(host, "sysctl", "-n", "net.ipv4.tcp_keepalive_time")
        assert value.strip() == "1234"


def test_what_is_said_of_one_host_changes_that_one(life: Life) -> None:
    life.control.declare(ROLES, OF_HOSTS, **CHANGED)
    foretold = life.control.foretell()

    changed = life.control.create()

    assert changed.code == 0, changed.err
    # It is told to the API server, by a control plane.
    assert changed.changed() == foretold.changed() == {("network/marks/node3", "node1")}
    marked = life.control.kubectl("get", "nodes", "-l", "example.org/disk=ssd", "-o", "name")
    assert marked.split() == ["node/node3"]


def test_settings_of_kube_proxy_reach_its_pods(life: Life) -> None:
    proxy = {"kubeProxy": {"config": {"oomScoreAdj": -998}}}
    more = {**CHANGED, "kubernetes": {**KUBELET, **proxy}}
    life.control.declare(ROLES, OF_HOSTS, **more)
    foretold = life.control.foretell()
    assert "+oomScoreAdj: -998" in foretold.differences()

    changed = life.control.create()

    assert changed.code == 0, changed.err
    assert changed.changed() == foretold.changed()
    assert changed.changed() == {
        ("control-plane/prepare/kubeadm-config", "node1"),
        ("control-plane/settings/node1", "node1"),
        ("control-plane/kube-proxy/settings", "node1"),
    }
    system = ("-n", "kube-system", "get")
    stored = life.control.kubectl(*system, "configmap", "kube-proxy", "-o", "yaml")
    assert "oomScoreAdj: -998" in stored
    marks = "jsonpath={.items[*].metadata.annotations.kubexm\\.io/settings}"
    pods = life.control.kubectl(*system, "pods", "-l", "k8s-app=kube-proxy", "-o", marks)
    assert len(pods.split()) == len(HOSTS)
    assert life.control.create().changed() == set()


def test_a_changed_audit_policy_has_the_api_server_begin_anew(life: Life) -> None:
    policy = life.control.file.with_name("policy.yaml")
    audit = {"apiServer": {"audit": {"enabled": True, "policy": policy.name}}}
    life.control.declare(ROLES, OF_HOSTS, **{**CHANGED, "kubernetes": {**KUBELET, **audit}})
    policy.write_text(POLICY % "Metadata")
    begun = life.control.create()
    assert begun.code == 0, begun.err
    served_since = life.served_since()
    policy.write_text(POLICY % "None")

    changed = life.control.create()

    assert changed.code == 0, changed.err
    assert changed.changed() == {
        ("control-plane/prepare/audit-policy", "node1"),
        ("control-plane/prepare/patch-1", "node1"),
        ("control-plane/settings/node1", "node1"),
    }
    assert life.served_since() > served_since


def test_a_changed_pod_of_the_control_plane_runs_when_that_is_said(life: Life) -> None:
    life.control.file.with_name("etcd.yaml").write_text(yaml.safe_dump(PATCH))
    life.control.declare(ROLES, OF_HOSTS, **{**CHANGED, "kubernetes": {**KUBELET, **PATCHED}})

    changed = life.control.create()

    assert changed.code == 0, changed.err
    wanted = "jsonpath={.spec.containers[0].resources.requests.memory} {.status.phase}"
    pod = life.control.kubectl("-n", "kube-system", "get", "pod", "etcd-node1", "-o", wanted)
    assert pod == "123Mi Running"


def test_kubelets_that_do_not_start_are_told_with_the_cause_and_mended(life: Life) -> None:
    wrong = {"kubelet": {**KUBELET["kubelet"], "config": {"imageGCHighThresholdPercent": 1}}}
    life.control.declare(ROLES, OF_HOSTS, **{**CHANGED, "kubernetes": {**wrong, **PATCHED}})

    failed = life.control.create()

    assert failed.code == 1
    kubelets = {"node1": "control-plane/init", "node2": "workers/join", "node3": "workers/join"}
    for host, part in kubelets.items():
        unit = failed.data["result"]["nodeResults"][f"create-cluster/{part}/kubelet"]
        said = unit["hostResults"][host]["message"]
        assert "60 s after its start port 10248 is closed" in said
        assert "imageGCHighThresholdPercent" in said
    life.control.declare(ROLES, OF_HOSTS, **{**CHANGED, "kubernetes": {**KUBELET, **PATCHED}})
    mended = life.control.create()
    assert mended.code == 0, mended.err
    life.control.await_health()


def test_what_it_stands_on_can_not_be_changed(life: Life) -> None:
    network = {"plugin": "flannel", "podCIDR": ["10.64.0.0/16"]}
    life.control.declare(ROLES, **MORE, network=network)
    refused = life.control.create()
    assert refused.code == 2
    plugin, pods = map(life.control.placed, ("flannel", "- 10.64.0.0/16"))
    assert f"{plugin}: spec.network.plugin: found `flannel`, but the cluster has" in refused.err
    assert f"{pods}: spec.network.podCIDR: found `10.64.0.0/16`, but the cluster" in refused.err


def test_no_host_has_a_way_outside(life: Life) -> None:
    require_no_way_outside(life.control.lab)


def test_deleted_by_its_name_it_leaves_the_hosts_as_they_were(life: Life) -> None:
    assert life.control.kubexm("kubeconfig", "lab", "--merge").code == 0

    life.control.delete()

    for host in HOSTS:
        assert sorted(life.before[host] ^ belongings(life.control.lab, host)) == [], host
    assert life.control.kubexm("get", "clusters", "-o", "json").data["clusters"] == []
    left = yaml.safe_load(life.control.kubeconfig.read_text())
    assert (left["contexts"], left["users"], left["current-context"]) == ([], [], "")
