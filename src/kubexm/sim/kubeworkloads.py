"""Deployments and daemon sets of a simulated cluster: their pods, and how far they are."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256

import msgspec

from kubexm.sim.kubedocs import Object, entries, part, section
from kubexm.sim.kubekinds import DAEMON_SET, DEPLOYMENT, NODE, POD, STATEFUL_SET
from kubexm.sim.kubenodes import host, status
from kubexm.sim.kubepods import every
from kubexm.sim.kubepods import obstacle as static_obstacle
from kubexm.sim.kubeready import Standing
from kubexm.sim.kubescheduling import fits
from kubexm.sim.kubestore import Ref

WORKLOADS = (DAEMON_SET, DEPLOYMENT, STATEFUL_SET)
_UNSCHEDULED = "no nodes are available: none is ready, free of taints and selected by the pod"
_PULL, _SANDBOX = "Failed to pull image", "Failed to create pod sandbox"


class Pod(msgspec.Struct, frozen=True):
    """A pod: where it is, and why it does not run."""

    ref: Ref
    labels: Object
    spec: Object
    node: str
    """Empty while nobody has found a place for it."""
    trouble: str
    annotations: Object = {}


def shown(standing: Standing, ref: Ref, found: Object) -> Object:
    """An object with the status that it has at the moment."""
    if ref.kind == NODE:
        silent, trouble = standing.kubelet_obstacle(ref.name), standing.node_obstacle(ref.name)
        trouble = trouble or standing.hesitation(ref.key)
        return {**found, "status": status(standing.api, ref.name, silent, trouble)}
    if ref.kind in WORKLOADS:
        return {**found, "status": _status(standing, ref, found)}
    return found


def awaited(standing: Standing, ref: Ref, found: Object) -> Object:
    """The same for who waits for it, and so looks at it more than once."""
    shown(standing, ref, found)
    return shown(standing, ref, found)


def pods(standing: Standing, namespace: str = "") -> Iterator[Object]:
    """All pods, of one namespace or of all, as the API server shows them."""
    for kind in WORKLOADS:
        for ref, found in standing.api.cluster.all(kind, namespace):
            yield from map(_shown, _pods(standing, ref, found))
    if namespace in ("", "kube-system"):
        yield from map(_shown, _static(standing))


def events(standing: Standing, namespace: str = "") -> Iterator[Object]:
    """What kubelets complain of, of the pods that they can't run."""
    for kind in WORKLOADS:
        for ref, found in standing.api.cluster.all(kind, namespace):
            troubled = (pod for pod in _pods(standing, ref, found) if pod.node and pod.trouble)
            yield from map(_event, troubled)


def _event(pod: Pod) -> Object:
    name, namespace = pod.ref.name, pod.ref.namespace
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{name}.{_suffix(pod.trouble)}", "namespace": namespace},
        "involvedObject": {"kind": "Pod", "name": name, "namespace": namespace},
        "type": "Warning",
        "reason": "FailedCreatePodSandBox" if _SANDBOX in pod.trouble else "Failed",
        "message": pod.trouble,
    }


def _status(standing: Standing, ref: Ref, found: Object) -> Object:
    if standing.controllers_obstacle():
        return {}
    made = list(_pods(standing, ref, found))
    ready = sum(not pod.trouble for pod in made)
    generation = part(found, "metadata", "generation") or 1
    if ready and standing.hesitation(f"{ref.key} {generation}"):
        ready = 0
    count = _daemons if ref.kind == DAEMON_SET else _replicas
    return {"observedGeneration": generation, **count(len(made), ready)}


def _daemons(made: int, ready: int) -> Object:
    return {
        "currentNumberScheduled": made,
        "desiredNumberScheduled": made,
        "numberAvailable": ready,
        "numberMisscheduled": 0,
        "numberReady": ready,
        "numberUnavailable": made - ready,
        "updatedNumberScheduled": made,
    }


def _replicas(made: int, ready: int) -> Object:
    return {
        "availableReplicas": ready,
        "currentRevision": "1",
        "readyReplicas": ready,
        "replicas": made,
        "unavailableReplicas": made - ready,
        "updateRevision": "1",
        "updatedReplicas": made,
    }


def _pods(standing: Standing, ref: Ref, found: Object) -> Iterator[Pod]:
    """The pods that a controller makes of one object, on the nodes that a scheduler finds."""
    if standing.controllers_obstacle():
        return
    spec = section(found, "spec", "template", "spec")
    labels = section(found, "spec", "template", "metadata", "labels")
    for number, node in enumerate(_places(standing, ref, found)):
        name = f"{ref.name}-{_suffix(f'{ref.key} {number} {node}')}"
        why = standing.pod_obstacle(node, ref.namespace, spec) if node else _UNSCHEDULED
        yield Pod(Ref(POD, ref.namespace, name), labels, spec, node, why)


def _places(standing: Standing, ref: Ref, found: Object) -> list[str]:
    spec = section(found, "spec", "template", "spec")
    if ref.kind == DAEMON_SET:
        return [name for name, node in standing.nodes.items() if fits(node, spec, daemon=True)]
    replicas = part(found, "spec", "replicas")
    fitting = [name for name, node in standing.nodes.items() if fits(node, spec)]
    # A node that is not ready has a taint that nobody tolerates for long.
    ready = [name for name in fitting if not standing.node_obstacle(name)]
    count = 1 if replicas is None else replicas
    # A scheduler does not know where a pod will have trouble, so the worst is supposed of it.
    ready.sort(key=lambda name: not standing.pod_obstacle(name, ref.namespace, spec))
    if spec.get("hostNetwork"):
        # They have the same ports, so no two come onto one host.
        return (ready + [""] * count)[:count]
    return _spread(ready, count)


def _spread(nodes: list[str], count: int) -> list[str]:
    """So many of some nodes, over all of them; more than there are come onto the same ones."""
    if not nodes:
        return [""] * count
    last = max(min(count, len(nodes)) - 1, 1)
    return [nodes[number % (last + 1) * (len(nodes) - 1) // last] for number in range(count)]


def _static(standing: Standing) -> Iterator[Pod]:
    """Pods that kubelets run by files, as the API server mirrors them."""
    for name in standing.nodes:
        there = host(standing.api, name)
        if there is None or standing.kubelet_obstacle(name):
            continue
        for pod in every(there):
            containers: list[Object] = [{"name": pod.name, "image": one} for one in pod.images]
            containers[0]["command"] = [*pod.command]
            ref = Ref(POD, "kube-system", f"{pod.name}-{name}")
            labels = {"component": pod.name, "tier": "control-plane"}
            why, marks = static_obstacle(there, pod), {**pod.annotations}
            yield Pod(ref, labels, {"containers": containers}, name, why, marks)


def _shown(pod: Pod) -> Object:
    states = [
        {"name": one.get("name"), "ready": not pod.trouble, "restartCount": 0, "state": _state(pod)}
        for one in entries(pod.spec, "containers")
    ]
    metadata = {"name": pod.ref.name, "namespace": pod.ref.namespace, "labels": pod.labels}
    if pod.annotations:
        metadata["annotations"] = pod.annotations
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {**pod.spec, **({"nodeName": pod.node} if pod.node else {})},
        "status": {
            "phase": "Pending" if pod.trouble else "Running",
            "conditions": _conditions(pod),
            "containerStatuses": states if pod.node else [],
        },
    }


def _state(pod: Pod) -> Object:
    if pod.trouble:
        reason = "ErrImagePull" if pod.trouble.startswith(_PULL) else "ContainerCreating"
        return {"waiting": {"reason": reason, "message": pod.trouble}}
    return {"running": {}}


def _conditions(pod: Pod) -> list[Object]:
    placed: Object = {"type": "PodScheduled", "status": "True"}
    if not pod.node:
        placed = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": pod.trouble,
        }
    return [placed, {"type": "Ready", "status": "False" if pod.trouble else "True"}]


def _suffix(about: str) -> str:
    return sha256(about.encode()).hexdigest()[:5]
