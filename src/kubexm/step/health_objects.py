"""How the objects of a cluster tell of its health: nodes, workloads, pods.

Any control plane can be asked; nothing is changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from kubexm.runner import kubectl, workloads
from kubexm.runner.host import Host
from kubexm.step.health_look import Told

_SYSTEM = ("kube-system", "kube-flannel", "local-path-storage", "nfs-storage")
_KINDS = ("deployments", "daemonsets")
_REPLACING = frozenset(("ReplicaSet", "DaemonSet", "StatefulSet"))
_AGAIN = "bring it in: kubexm create cluster -f FILE"


async def nodes(host: Host, wanted: Iterable[str]) -> list[Told]:
    """Whether every host of the cluster is a node that takes pods."""
    found = {node["metadata"]["name"]: node for node in await kubectl.get(host, "nodes")}
    return [_node(name, found.get(name)) for name in wanted]


def _node(name: str, node: kubectl.Object | None) -> Told:
    if node is None:
        return Told("node", name, "ill", "is no node of the cluster", _AGAIN)
    version = node.get("status", {}).get("nodeInfo", {}).get("kubeletVersion", "")
    if why := workloads.not_ready(node):
        hint = "look at its kubelet: `journalctl -u kubelet` there"
        return Told("node", name, "ill", f"not ready: {why}", hint)
    if node.get("spec", {}).get("unschedulable"):
        return Told("node", name, "warning", f"{version}, takes no new pods: it is cordoned")
    return Told("node", name, "well", f"{version}, ready")


async def laid(host: Host, wanted: Sequence[str]) -> list[Told]:
    """Whether all is there, and rolled out, that was laid into the cluster."""
    answers = await host.batch([kubectl.get_command(host, kind, "-A") for kind in _KINDS])
    found = {_named(one): one for answer in answers for one in kubectl.objects_of(answer)}
    ill = [told for name in wanted if (told := _workload(name, found.get(name)))]
    return ill or [Told("workloads", "cluster", "well", f"all {len(wanted)} of the system run")]


def _named(workload: kubectl.Object) -> str:
    metadata = workload["metadata"]
    return f"{metadata['namespace']}/{workload['kind'].lower()}/{metadata['name']}"


def _workload(name: str, workload: kubectl.Object | None) -> Told | None:
    if workload is None:
        return Told("workloads", "cluster", "ill", f"{name} is not there", _AGAIN)
    why = workloads.unfinished(workload) or _idle(workload)
    namespace, _, resource = name.partition("/")
    hint = f"kubectl describe -n {namespace} {resource}"
    return Told("workloads", "cluster", "ill", f"{name}: {why}", hint) if why else None


def _idle(workload: kubectl.Object) -> str:
    """That a workload wants no pods, which is then all it has."""
    if workload["kind"] == "DaemonSet":
        wanted = workload.get("status", {}).get("desiredNumberScheduled", 0)
        return "" if wanted else "there is no node that it is for"
    return "" if workload.get("spec", {}).get("replicas", 1) else "is scaled to no pods"


async def pods(host: Host) -> list[Told]:
    """Whether the pods of the system run; one line for all that do."""
    found = await kubectl.get(host, "pods", "-A")
    system = [pod for pod in found if pod["metadata"]["namespace"] in _SYSTEM]
    there = [pod for pod in system if not _is_over(pod)]
    if not there:
        hint = "look at the kubelets of control planes: `journalctl -u kubelet`"
        return [Told("pods", "cluster", "ill", "there are no pods of the system", hint)]
    ill = [told for pod in there for told in _troubles(pod)]
    return ill or [Told("pods", "cluster", "well", f"all {len(there)} pods of the system run")]


def _is_over(pod: kubectl.Object) -> bool:
    """Whether a pod is about to go, or was given up, such as by a host that was shut down, and
    another has its place."""
    metadata = pod["metadata"]
    owners = {owner.get("kind") for owner in metadata.get("ownerReferences", ())}
    is_given_up = pod.get("status", {}).get("phase") == "Failed"
    return "deletionTimestamp" in metadata or (is_given_up and not owners.isdisjoint(_REPLACING))


def _troubles(pod: kubectl.Object) -> Iterator[Told]:
    where = pod.get("spec", {}).get("nodeName", "no node")
    name = f"{pod['metadata']['namespace']} {pod['metadata']['name']}"
    for trouble in workloads.troubles(pod):
        yield Told("pods", where, "ill", trouble, f"kubectl describe pod -n {name}")
