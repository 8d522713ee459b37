"""Why pods and nodes of a cluster are not ready, as far as its API server can tell."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kubexm.runner import kubectl, workloads
from kubexm.runner.diagnosis import Section, complaints
from kubexm.runner.host import Host
from kubexm.runner.kubectl import Object

_WARNINGS = ("--field-selector", "type=Warning")
_MOST_LOGS = 3
_LOG_LINES = "40"


async def of_pods(
    host: Host, *words: str, about: Iterable[str] = (), sudo: bool | None = None
) -> list[Section]:
    """Why those of these pods that have trouble have it; `about` names more for their events."""
    pods = await kubectl.get(host, "pods", *words, sudo=sudo)
    ill = [pod for pod in pods if workloads.troubles(pod)]
    said = [trouble for pod in ill for trouble in workloads.troubles(pod)]
    names = (*about, *(pod["metadata"]["name"] for pod in ill))
    return [
        Section("pods", said),
        Section("events", await _events(host, names, sudo)),
        *await _logs(host, ill, sudo),
    ]


async def of_nodes(host: Host, names: Sequence[str], *, sudo: bool | None = None) -> list[Section]:
    """What the cluster knows of nodes that are not ready, and of the pods on them."""
    found = {one["metadata"]["name"]: one for one in await kubectl.get(host, "nodes", sudo=sudo)}
    late = [name for name in names if name in found and workloads.not_ready(found[name])]
    said = [said for name in late for said in workloads.node_troubles(found[name])]
    sections = [Section("nodes", [*said, *_absent(names, found)])]
    for name in late[:_MOST_LOGS]:
        there = ("-A", "--field-selector", f"spec.nodeName={name}")
        sections += await of_pods(host, *there, about=(name,), sudo=sudo)
    return sections


def _absent(names: Iterable[str], found: Iterable[str]) -> list[str]:
    return [f"{name}: has not joined" for name in names if name not in {*found}]


async def _events(host: Host, names: Iterable[str], sudo: bool | None) -> list[str]:
    events = await kubectl.get(host, "events", "-A", *_WARNINGS, sudo=sudo)
    return workloads.warnings(events, names)


async def _logs(host: Host, pods: Iterable[Object], sudo: bool | None) -> list[Section]:
    """What containers said that ended, as their kubelets have kept it."""
    sections = []
    ended = [(pod["metadata"], *one) for pod in pods for one in workloads.ended(pod)]
    for metadata, container, before in ended[:_MOST_LOGS]:
        place = ("-n", metadata["namespace"], metadata["name"], "-c", container)
        answer = await kubectl.log(host, *place, lines=_LOG_LINES, before=before, sudo=sudo)
        title = f"log of {container} in {metadata['namespace']}/{metadata['name']}"
        sections.append(Section(title, complaints(answer)))
    return sections
