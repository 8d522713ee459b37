"""Rules of labels and taints of kube nodes."""

from __future__ import annotations

from collections.abc import Iterator

from kubexm.config.members import Member
from kubexm.config.model.hosts import TaintSpec
from kubexm.config.rules.listeners import is_kube_node
from kubexm.config.rules.rule import Declared, rule
from kubexm.document.findings import Finding

_TOLERATED = {"CriticalAddonsOnly": None, "node-role.kubernetes.io/control-plane": "NoSchedule"}
"""Taints that CoreDNS does not mind, and with which effect; whatever it is if none is said."""
_LINUX = "linux"


@rule("marks-of-kube-nodes", "hosts", "roleGroups", "hooks")
def marks_of_kube_nodes(cluster: Declared) -> Iterator[Finding]:
    """Labels and taints are those of kube nodes; hooks may go by the labels of any host."""
    keys = ("taints",) if cluster.spec.hooks else ("labels", "taints")
    nodes = {member.number for member in cluster.members if is_kube_node(member)}
    for number, host in enumerate(cluster.spec.hosts):
        for key in keys if number not in nodes else ():
            if getattr(host, key):
                message = f"`{key}` has no meaning for `{host.name}`, which is no kube node"
                hint = "leave it out, or name the host under `roleGroups.worker` as well"
                yield Finding(("spec", "hosts", number, key), message, hint, at_key=True)


@rule("taints-once", "hosts")
def taints_once(cluster: Declared) -> Iterator[Finding]:
    """A kube node has one taint of a key and an effect, as the API server wants it."""
    for number, host in enumerate(cluster.spec.hosts):
        first: dict[tuple[str, str], int] = {}
        for at, taint in enumerate(host.taints):
            if (other := first.setdefault((taint.key, taint.effect), at)) != at:
                place = ("spec", "hosts", number, "taints", at)
                message = f"`{taint.key}` is there twice for `{taint.effect}`"
                yield Finding(place, message, f"entry {other} has it already: leave one of them")


@rule("room-for-names", "hosts", "roleGroups")
def room_for_names(cluster: Declared) -> Iterator[Finding]:
    """CoreDNS has a kube node to run on: no cluster is complete before it does."""
    nodes = [member for member in cluster.members if is_kube_node(member)]
    if nodes and all(any(map(_keeps_away, member.taints)) for member in nodes):
        message = "every kube node has a taint that keeps CoreDNS away"
        hint = "leave one without, or write `effect: PreferNoSchedule`"
        yield Finding((*nodes[0].place, "taints"), message, hint)


def _keeps_away(taint: TaintSpec) -> bool:
    is_tolerated = taint.key in _TOLERATED and _TOLERATED[taint.key] in (None, taint.effect)
    return taint.effect != "PreferNoSchedule" and not is_tolerated


@rule("labels-of-kubelets", "hosts")
def labels_of_kubelets(cluster: Declared) -> Iterator[Finding]:
    """What the kubelet says of its host by labels is not said otherwise."""
    told = set[tuple[int, str]]()
    for member in cluster.members:
        for key, wanted in _said_by_kubelets(member):
            found = member.labels.get(key, wanted)
            if found != wanted and (member.number, key) not in told:
                told.add((member.number, key))
                message = f"found `{found}`, and the kubelet of `{member.name}` says `{wanted}`"
                yield Finding((*member.place, "labels", key), message, "leave it out")


def _said_by_kubelets(member: Member) -> Iterator[tuple[str, str]]:
    yield "kubernetes.io/hostname", member.name
    for domain in ("kubernetes.io", "beta.kubernetes.io"):
        yield f"{domain}/os", _LINUX
        if member.arch is not None:
            yield f"{domain}/arch", member.arch


RULES = (marks_of_kube_nodes, taints_once, room_for_names, labels_of_kubelets)
