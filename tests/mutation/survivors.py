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


_FOR_PEOPLE = "it is for people who look into a host, and nothing that runs needs it"
_AT_ONCE = "simulated programs take new settings in no time, so nobody misses one meanwhile"

SURVIVORS = (
    # Steps.
    Survivor("a cluster goes on without, as long as clocks agree", step="time/*-service"),
    Survivor(_FOR_PEOPLE, step="crictl/*"),
    Survivor("etcd runs as a pod: " + _FOR_PEOPLE, step="etcd/programs/etcd"),
    Survivor("a change that is not made to a pod leaves a pod that runs", step="patch-*"),
    Survivor("the kubelet only complains", step="workers/prepare/directories/*-manifests"),
    # Order.
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
    Survivor(
        "there are other hosts that it can run on",
        before="workers/images/kube-controllers",
        after="workers/join/node",
    ),
)


def reason(mutant: Mutant) -> Survivor | None:
    """Why nothing gives a mutant away; None if that is not known."""
    return next((one for one in SURVIVORS if _is_meant(one, mutant)), None)


def _is_meant(survivor: Survivor, mutant: Mutant) -> bool:
    if isinstance(mutant, Missing):
        return bool(survivor.step) and fnmatchcase(mutant.node, f"*/{survivor.step}")
    edge = mutant.edge
    return bool(survivor.before) and (
        fnmatchcase(edge.before, f"*/{survivor.before}")
        and fnmatchcase(edge.after, f"*/{survivor.after}")
    )
