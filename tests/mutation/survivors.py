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
    needless: bool = False
    """Whether the plan would be as good without that order: then it is no mistake to go without."""


_FOR_PEOPLE = "it is for people who look into a host, and nothing that runs needs it"
_MADE_ANYWAY = "whoever writes into the directory makes it"
_AS_IT_IS = "it has to do with settings that were changed since, and none was"
_ENABLED = "the kubelet runs already, and is only to be started with its host"
_SYSTEM = "a file, a directory or a program needs nothing of the system; what starts does"
_NO_DIRECTORY = "a program needs none of these directories"
_NOBODY_WAITS = "nobody waits for the controllers of Calico"

SURVIVORS = (
    # Steps.
    Survivor("its package starts it, and a cluster goes on without", step="time/*-service"),
    Survivor(_FOR_PEOPLE, step="crictl"),
    Survivor("etcd runs as a pod: " + _FOR_PEOPLE, step="etcd/programs/etcd"),
    Survivor("it is fetched to this machine: " + _FOR_PEOPLE, step="access/kubeconfig"),
    Survivor("a change that is not made to a pod leaves a pod that runs", step="patch-*"),
    Survivor(_AS_IT_IS, step="control-plane/settings/*"),
    Survivor(_MADE_ANYWAY, step="directories/etc-kubernetes-*"),
    Survivor(_MADE_ANYWAY, step="data/etc-kubernetes"),
    Survivor("a worker gets the same file from kubeadm", step="pki/workers/certificates/host"),
    Survivor(_NOBODY_WAITS, step="images/kube-controllers"),
    # Order that nothing needs.
    Survivor(
        "what is fetched is fetched for who asks for it, and that has waited for the checks",
        before="@assets/@after/preflight",
        after="assets/*",
        needless=True,
    ),
    Survivor(
        "the same",
        before="preflight/hosts/*",
        after="@assets/@after/preflight",
        needless=True,
    ),
    Survivor(_SYSTEM, before="system/*", after="@*/@after/system*", needless=True),
    Survivor(_SYSTEM, before="system/*", after="*/directories/*", needless=True),
    Survivor(_NO_DIRECTORY, before="*/@join", after="*/programs/*", needless=True),
    Survivor(_NO_DIRECTORY, before="*/@join", after="*/prepare/kube*", needless=True),
    Survivor(_MADE_ANYWAY, before="directories/etc-kubernetes-*", after="*", needless=True),
    Survivor("an image needs no directory", before="directories/etc-kubexm", after="worker/*"),
    Survivor(_FOR_PEOPLE, before="crictl", after="service/containerd", needless=True),
    Survivor("a program needs no certificate", before="pki/*", after="etcd/programs/etcd"),
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
