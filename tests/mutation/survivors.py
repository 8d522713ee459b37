"""Mutants that nothing gives away, each with the reason."""

from __future__ import annotations

from fnmatch import fnmatchcase

import msgspec
from tests.mutation.mutants import Missing, Mutant


class Survivor(msgspec.Struct, frozen=True):
    """Mutants of one kind, by patterns of the steps in question, and why they survive."""

    why: str
    step: str = ""
    """That is missing."""
    before: str = ""
    """That an edge comes from, and …"""
    after: str = ""
    """… that it leads to."""
    play: str = "*"
    """The clusters that it is so in."""


_PULLED = "the registry of the cluster is there, and whoever runs it pulls it"
_ABOVE = "another directory below it is made with all above"
_KNOWN = "simulated hosts find each other by name without it"
_UNAWAITED = "nobody waits until it runs"
_AT_ONCE = "simulated programs take new settings in no time, so nobody misses one meanwhile"

SURVIVORS = (
    # Steps.
    Survivor("its package starts it", step="time/debian-service"),
    Survivor("crictl tries this place by itself", step="crictl/config"),
    Survivor("nobody makes a copy meanwhile", step="etcd/backup/*"),
    Survivor("who begins the cluster tries again until etcd answers", step="etcd/health/healthy"),
    Survivor(_PULLED, step="container-runtime/*/images/*", play="own-registry"),
    Survivor("a change that is not made to a pod leaves a pod that runs", step="patch-*"),
    Survivor("the kubelet only complains", step="workers/prepare/directories/*-manifests"),
    Survivor(_ABOVE, step="directories/etc-containerd", play="own-registry"),
    Survivor(_ABOVE, step="directories/etc-kubernetes-kubexm", play="hardened"),
    Survivor(_UNAWAITED, step="images/cilium-envoy"),
    Survivor("`ip_vs` brings it along", step="kernel/nf_conntrack"),
    # Order.
    Survivor(_UNAWAITED, before="images/cilium-envoy", after="*"),
    Survivor(_ABOVE, before="directories/etc-containerd", after="*", play="own-registry"),
    Survivor(_ABOVE, before="directories/etc-kubernetes-kubexm", after="*", play="hardened"),
    Survivor(_KNOWN, before="names/hosts-file", after="images/*"),
    Survivor(_KNOWN, before="names/hosts-file", after="workers/join/node"),
    Survivor("they need nothing of each other", before="add-ons/*", after="add-ons/*"),
    Survivor(
        "the same", before="workers/prepare/directories/*-manifests", after="workers/join/node"
    ),
    Survivor(
        "who waits for pods waits for nodes too; so a node that is not ready is told once",
        before="network/ready/nodes",
        after="dns/answers/*",
    ),
    Survivor(_AT_ONCE, before="join/*kubelet", after="network/ready/nodes"),
    Survivor(_AT_ONCE, before="control-plane/settings/*", after="control-plane/settings/*"),
    Survivor(_AT_ONCE, before="control-plane/settings/*", after="network/ready/nodes"),
    Survivor(_PULLED, before="container-runtime/*/images/*", after="*", play="own-registry"),
    Survivor(
        "there are other hosts that it can run on",
        before="workers/images/kube-controllers",
        after="workers/join/node",
    ),
)


def reason(play: str, mutant: Mutant) -> Survivor | None:
    """Why nothing gives a mutant of a play away; None if that is not known."""
    there = (one for one in SURVIVORS if fnmatchcase(play, one.play))
    return next((one for one in there if _is_meant(one, mutant)), None)


def _is_meant(survivor: Survivor, mutant: Mutant) -> bool:
    if isinstance(mutant, Missing):
        return bool(survivor.step) and fnmatchcase(mutant.node, f"*/{survivor.step}")
    edge = mutant.edge
    return bool(survivor.before) and (
        fnmatchcase(edge.before, f"*/{survivor.before}")
        and fnmatchcase(edge.after, f"*/{survivor.after}")
    )
