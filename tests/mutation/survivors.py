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
_NAMELESS = "a cluster whose endpoint is an address calls nobody by name"
_NO_VOLUME = "nobody asks for a volume"
_AGAIN = "who needs it tries again until it answers"
_PATCH = "a change that is not made to a pod leaves a pod that runs"
_OWN = "an add-on may need names and volumes, but none of these does"
_SCHEDULER = "a kernel loads the way of scheduling that it is asked for by itself"
_UNREAD = "nothing goes by what a node is marked with"
_LINK = "a kernel loads it when the first such link is made"
_LATER = "CoreDNS answers without it, and it runs when its turn comes"
_UNAWAITED = "nobody waits until it runs"
_AT_ONCE = "simulated programs take new settings in no time, so nobody misses one meanwhile"
_NOTHING_NEW = "the settings that are changed want nothing new of hosts"

SURVIVORS = (
    # Steps.
    Survivor("its package starts it", step="time/debian-service"),
    Survivor("nobody makes a copy meanwhile", step="etcd/backup/*"),
    Survivor(_AGAIN, step="etcd/health/healthy"),
    Survivor(_AGAIN, step="registry/service/answers"),
    Survivor(_NO_VOLUME, step="images/busybox"),
    Survivor(_PULLED, step="container-runtime/*/images/*", play="own-registry"),
    Survivor(_PATCH, step="patch-*"),
    Survivor(_NO_VOLUME, step="directories/opt-local-path-provisioner"),
    Survivor(_NO_VOLUME, step="directories/data-volumes", play="storage-and-addons"),
    Survivor(_ABOVE, step="directories/etc-containerd", play="own-registry"),
    Survivor(_ABOVE, step="directories/etc-containerd-certs.d", play="own-registry"),
    Survivor(_ABOVE, step="system/workers/data/etc-kubernetes", play="own-registry"),
    Survivor(_ABOVE, step="directories/etc-kubernetes-kubexm", play="hardened"),
    Survivor("cilium brings a plugin of its own", step="plugins/cni-plugins", play="cilium"),
    Survivor("`ip_vs` brings it along", step="kernel/nf_conntrack"),
    Survivor(_SCHEDULER, step="kernel/ip_vs_*"),
    Survivor(_LINK, step="kernel/dummy"),
    Survivor("no host of that kind asks for it", step="assets/files/*-arm64", play="mixed-arch"),
    Survivor(_UNREAD, step="network/marks/*"),
    Survivor("the first has the address as long as it is there", step="kube-vip/others"),
    # Order.
    Survivor("`ip_vs` brings it along", before="kernel/nf_conntrack", after="kernel/settings"),
    Survivor(_LINK, before="kernel/dummy", after="kernel/settings"),
    Survivor(_UNREAD, before="control-plane/join/*", after="network/marks/*"),
    Survivor("kube-proxy comes long after", before="kernel/ip_vs_*", after="service/containerd"),
    Survivor("its first pod waits for it", before="plugins/cni-plugins", after="*", play="cilium"),
    Survivor(_LATER, before="images/k8s-dns-node-cache", after="*"),
    Survivor(_LATER, before="dns/node-local/*", after="dns/answers/*"),
    Survivor(
        "only the first has the address by then",
        before="load-balancer/kube-vip/others",
        after="control-plane/init/cluster",
    ),
    Survivor(_UNAWAITED, before="images/cilium-envoy", after="*"),
    Survivor(_ABOVE, before="directories/etc-containerd", after="*", play="own-registry"),
    Survivor(_ABOVE, before="directories/etc-kubernetes-kubexm", after="*", play="hardened"),
    Survivor(_NAMELESS, before="names/hosts-file", after="control-plane/init/cluster"),
    Survivor(_NAMELESS, before="names/hosts-file", after="workers/join/node"),
    Survivor("nobody makes a copy meanwhile", before="etcd/backup/*", after="etcd/backup/*"),
    Survivor(_AGAIN, before="etcd/health/healthy", after="*"),
    Survivor(_AT_ONCE, before="etcd/settings/*", after="*"),
    Survivor(_AGAIN, before="registry/service/answers", after="registry/images/*"),
    Survivor(_NO_VOLUME, before="images/busybox", after="*"),
    Survivor(_NO_VOLUME, before="directories/opt-local-path-provisioner", after="*"),
    Survivor(_NO_VOLUME, before="directories/data-volumes", after="*", play="storage-and-addons"),
    Survivor("they need nothing of each other", before="add-ons/*", after="add-ons/*"),
    Survivor(_PATCH, before="prepare/patch-*", after="control-plane/init/cluster"),
    Survivor(_OWN, before="dns/answers/*", after="add-ons/*"),
    Survivor(_OWN, before="storage/*/runs", after="add-ons/*"),
    Survivor(
        "the kubelet looks for it once more",
        before="workers/prepare/directories/*-manifests",
        after="workers/join/node",
    ),
    Survivor(
        "who waits for pods waits for nodes too; so a node that is not ready is told once",
        before="network/ready/nodes",
        after="dns/*",
    ),
    Survivor("the same for volumes", before="network/ready/nodes", after="storage/*/runs"),
    Survivor(_AT_ONCE, before="join/*kubelet", after="network/ready/nodes"),
    Survivor(_AT_ONCE, before="control-plane/init/kubelet", after="network/ready/nodes"),
    Survivor(_AT_ONCE, before="control-plane/settings/*", after="network/ready/nodes"),
    Survivor(_AT_ONCE, before="join/*kubelet", after="control-plane/settings/*"),
    Survivor(_AT_ONCE, before="control-plane/init/kubelet", after="control-plane/settings/*"),
    Survivor(_NOTHING_NEW, before="*/settings/*", after="control-plane/kube-proxy/*"),
    Survivor(_NOTHING_NEW, before="*/join/*", after="control-plane/kube-proxy/*"),
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
