"""What objects of a cluster tell of how far they are: workloads, pods, nodes, events."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from kubexm.runner.kubectl import Object

_SHOWN_EVENTS = 5
_AT_REST = frozenset(("Running", "Succeeded"))
_STATUSES = ("initContainerStatuses", "containerStatuses")
_WELL = {"Ready": "True"}
"""What a condition of a node says if all is well; of any other it is `False`."""


def unfinished(workload: Object, *, without: int = 0) -> str:
    """What is still to come until a workload is rolled out, but for some of its pods; nothing if
    it is."""
    metadata, status = workload["metadata"], workload.get("status", {})
    if status.get("observedGeneration", 0) < metadata.get("generation", 0):
        return "its controller has not seen it yet"
    match workload["kind"]:
        case "Deployment":
            return _deployment(workload.get("spec", {}).get("replicas", 1), status, without)
        case "DaemonSet":
            return _daemon_set(workload, status, without)
        case "StatefulSet":
            return _stateful_set(workload.get("spec", {}).get("replicas", 1), status, without)
        case kind:
            return f"is a {kind}, want a Deployment, DaemonSet or StatefulSet"


def stranded(workload: Object, pods: Iterable[Object], nodes: Collection[str]) -> int:
    """How many pods a workload has to do without, for they are on nodes that are gone."""
    there = [pod for pod in pods if pod.get("spec", {}).get("nodeName") in nodes]
    there = [pod for pod in there if not _is_ready(pod.get("status", {}))]
    if workload["kind"] != "DaemonSet":
        # One that is to go has no place any more: another has it already.
        return sum("deletionTimestamp" not in pod["metadata"] for pod in there)
    # It has one for each node; those that it would not start there again are not counted.
    beside = int(workload.get("status", {}).get("numberMisscheduled", 0))
    return max(0, len({pod["spec"]["nodeName"] for pod in there}) - beside)


def _deployment(wanted: int, status: Mapping[str, Any], without: int) -> str:
    updated = status.get("updatedReplicas", 0)
    if updated < wanted:
        return f"{updated} of {wanted} pods are up to date"
    if (old := status.get("replicas", 0) - updated) > 0:
        return f"{old} of its old pods are still there"
    return _available(status.get("availableReplicas", 0), wanted - without)


def _daemon_set(workload: Object, status: Mapping[str, Any], without: int) -> str:
    wanted = status.get("desiredNumberScheduled", 0) - without
    updated = status.get("updatedNumberScheduled", 0)
    strategy = workload.get("spec", {}).get("updateStrategy", {}).get("type", "RollingUpdate")
    if strategy == "RollingUpdate" and updated < wanted:
        return f"{updated} of {wanted} pods are up to date"
    return _available(status.get("numberAvailable", 0), wanted)


def _stateful_set(wanted: int, status: Mapping[str, Any], without: int) -> str:
    if status.get("currentRevision") != status.get("updateRevision"):
        return f"{status.get('updatedReplicas', 0)} of {wanted} pods are up to date"
    return _available(status.get("readyReplicas", 0), wanted - without)


def _available(found: int, wanted: int) -> str:
    return "" if found >= wanted else f"{found} of {wanted} pods are available"


def troubles(pod: Object) -> list[str]:
    """Why a pod does not run, each reason with where it is; none if all is well."""
    name, status = pod["metadata"]["name"], pod.get("status", {})
    found = [f"pod {name}: {said}" for said in _container_troubles(status)]
    if found or _is_ready(status):
        return found
    phase = status.get("phase", "unknown")
    said = [_said(condition) for condition in _failing(status)]
    return [f"pod {name}: {phase}{': ' if said else ''}{'; '.join(said)}"]


def _is_ready(status: Mapping[str, Any]) -> bool:
    if status.get("phase") == "Succeeded":
        return True
    return status.get("phase") in _AT_REST and not list(_failing(status))


def _failing(status: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    return (one for one in status.get("conditions", ()) if one.get("status") == "False")


def _said(condition: Mapping[str, Any]) -> str:
    words = (condition.get("reason", ""), condition.get("message", ""))
    return ": ".join(filter(None, words)) or f"not {condition.get('type', '')}"


def _container_troubles(status: Mapping[str, Any]) -> Iterator[str]:
    for kind in _STATUSES:
        for container in status.get(kind, ()):
            if said := _container_trouble(container):
                yield f"container {container.get('name', '')}: {said}"


def _container_trouble(container: Mapping[str, Any]) -> str:
    """Why a container waits or has failed; how it ended before, if that is why it waits."""
    state = container.get("state", {})
    waiting, ended = state.get("waiting", {}), state.get("terminated", {})
    reason = waiting.get("reason", "")
    if ended.get("exitCode", 0):
        return _end(ended)
    if not reason or reason in ("ContainerCreating", "PodInitializing"):
        return ""
    before = container.get("lastState", {}).get("terminated", {})
    words = (reason, waiting.get("message", ""), f"before: {_end(before)}" if before else "")
    return "; ".join(filter(None, words))


def _end(ended: Mapping[str, Any]) -> str:
    words = (ended.get("reason", ""), f"exit {ended.get('exitCode', '')}", ended.get("message", ""))
    return ", ".join(filter(None, map(str.strip, words)))


def ended(pod: Object) -> list[tuple[str, bool]]:
    """The containers of a pod that have failed, and whether they were started anew since then."""
    status = pod.get("status", {})
    found = [one for kind in _STATUSES for one in status.get(kind, ()) if not one.get("ready")]
    failed = [
        (one.get("name", ""), one.get("state", {}), one.get("lastState", {})) for one in found
    ]
    return [
        (name, not state.get("terminated"))
        for name, state, last in failed
        if any(one.get("terminated", {}).get("exitCode") for one in (state, last))
    ]


def warnings(events: Iterable[Object], names: Iterable[str]) -> list[str]:
    """The last events that tell of these objects."""
    known = set(names)
    about = [event for event in events if event.get("involvedObject", {}).get("name") in known]
    about.sort(key=lambda event: event.get("lastTimestamp") or "")
    told = (
        f"{event['involvedObject']['name']}: {event.get('reason', '')}: {event.get('message', '')}"
        for event in about
    )
    return list(dict.fromkeys(told))[-_SHOWN_EVENTS:]


def not_ready(node: Object) -> str:
    """Why a node takes no pods; nothing if it does."""
    conditions = node.get("status", {}).get("conditions", ())
    ready = next((one for one in conditions if one.get("type") == "Ready"), None)
    if ready is None:
        return "has not told of itself yet"
    if ready.get("status") == "True":
        return ""
    return _said(ready)


def node_troubles(node: Object) -> list[str]:
    """What is wrong with a node: each condition that is not as it should be."""
    name, conditions = node["metadata"]["name"], node.get("status", {}).get("conditions", ())
    bad = [one for one in conditions if one.get("status") != _WELL.get(one.get("type"), "False")]
    said = [f"{name}: {_said(one)}" for one in bad] or [f"{name}: {not_ready(node)}"]
    return [*dict.fromkeys(said)]
