"""What hosts are put to before anything is changed on them: every check, said once.

Cluster files name checks to leave out, steps make them, commands tell of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

Severity = Literal["refusal", "warning"]
Kind = Literal["refusal", "warning", "unknown", "held"]
"""What came of a check: `unknown` if the host does not tell, `held` if the cluster is there."""
Among = Literal["all", "kube-nodes", "etcd-members", "address-holders", "site-dependents"]
"""On which hosts a check is made."""


class Check(msgspec.Struct, frozen=True):
    """A check: what has to hold, and what to do where it does not."""

    name: str
    about: str
    """What has to hold."""
    severity: Severity
    """Whether a cluster is refused where it does not, or somebody is told."""
    remedy: str
    among: Among = "all"
    threshold: str = ""
    """The keys of `spec.preflight` that say how much is enough."""
    across: bool = False
    """Whether it holds hosts against each other, and not each by itself."""


class Finding(msgspec.Struct, frozen=True):
    """Something that a check has found."""

    check: str
    hosts: tuple[str, ...]
    found: str
    """The same on all hosts that have it."""
    figure: str = ""
    """What differs from host to host."""
    remedy: str = ""
    """What to do about it."""
    kind: Kind = "refusal"

    @property
    def message(self) -> str:
        return f"{self.found}: {self.figure}" if self.figure else self.found


OTHER_CLUSTER = "other-cluster"
_CHECKS = (
    Check(
        "reachable",
        "the host lets kubexm in, and its key is the one that is known;"
        " without a worker that does not, a run goes on",
        "refusal",
        "see that it is up, and that its `address` and `ssh` are right",
    ),
    Check(
        "root",
        "commands run as root",
        "refusal",
        "log in as root, or write `sudo: true` and let the user use sudo there",
    ),
    Check(
        "operating-system",
        "the system is like Debian, Red Hat or SUSE",
        "warning",
        "take one of them: on others nobody has tried it",
    ),
    Check("systemd", "systemd runs the host", "refusal", "take a system that boots with systemd"),
    Check(
        "architecture",
        "the processor is what files are fetched for: amd64 or arm64, as the plan has it",
        "refusal",
        "write the right `arch` for the host in the cluster file",
    ),
    Check(
        "kernel",
        "the kernel is new enough for Kubernetes, the network plugin and kube-proxy",
        "refusal",
        "boot a newer kernel, or take another network plugin or mode of kube-proxy",
        "kube-nodes",
    ),
    Check(
        "cgroups",
        "control groups are mounted; of version 2 from Kubernetes v1.35 on, unless"
        " `failCgroupV1: false` is set for the kubelet and kubeadm ignores `SystemVerification`",
        "refusal",
        "boot with `systemd.unified_cgroup_hierarchy=1`, or take a newer system; to go on with"
        " version 1, write `kubernetes: {kubelet: {config: {failCgroupV1: false}}, kubeadm:"
        " {ignorePreflightErrors: [SystemVerification]}}`",
        "kube-nodes",
    ),
    Check(
        "processors",
        "there are enough processors",
        "refusal",
        "give the host more of them, or want fewer",
        "kube-nodes",
        "controlPlaneCpus, workerCpus",
    ),
    Check(
        "memory",
        "there is enough memory",
        "refusal",
        "give the host more, or want less",
        "kube-nodes",
        "controlPlaneMemoryMib, workerMemoryMib",
    ),
    Check(
        "disk-space",
        "there is room where data will lie",
        "refusal",
        "make room, mount a larger disk there, or want less",
        threshold="diskFreeMib",
    ),
    Check(
        "etcd-disk",
        "99 of 100 writes to where etcd keeps its data are durable in time",
        "warning",
        "give etcd a faster disk, of its own if others write there",
        "etcd-members",
        "etcdFsync",
    ),
    Check(
        "swap",
        "memory is not swapped out",
        "warning",
        "kubexm turns it off and keeps it off; to keep it, write"
        " `kubernetes: {kubelet: {config: {failSwapOn: false}}}`",
        "kube-nodes",
    ),
    Check(
        "selinux",
        "SELinux does not enforce",
        "warning",
        "have the policy container-selinux there, or make it permissive with `setenforce 0`",
    ),
    Check(
        "firewall",
        "no firewall keeps hosts apart",
        "warning",
        "let in the ports of the cluster from its other hosts, or turn the firewall off",
    ),
    Check(
        "clock-kept",
        "somebody keeps the clock right",
        "warning",
        "run chrony or systemd-timesyncd, which `system: {ntp: {enabled: true}}` sees to",
    ),
    Check(
        "packages",
        "the tools that Kubernetes calls are there, or can be installed",
        "warning",
        "install what has them, or a package manager: apt, dnf, yum or zypper",
        "kube-nodes",
    ),
    Check(
        "container-runtime",
        "no other container runtime is there",
        "warning",
        "remove it unless you need it: its settings are replaced, and what it runs may stop",
        "kube-nodes",
    ),
    Check(
        OTHER_CLUSTER,
        "the host is no member of another cluster that kubexm has made; it can't be left out",
        "refusal",
        "delete that cluster first, `kubexm delete cluster NAME`; if it is this one and the file"
        " calls it otherwise by now, write its old name",
    ),
    Check(
        "leftovers",
        "nothing of another cluster is there: files, units, links, mounts, rules",
        "refusal",
        "take the host out of that cluster first, such as with `kubeadm reset` and a reboot",
    ),
    Check(
        "ports-free",
        "nobody listens where a part of the cluster will",
        "refusal",
        "stop who listens there, or give the part another port",
    ),
    Check(
        "node-address",
        "the addresses that others know the host by are its own",
        "refusal",
        "write `internalAddresses` of the host as `ip addr` shows them",
    ),
    Check(
        "default-route",
        "there is a default route of each family of addresses that services have: else hosts have"
        " no way to these",
        "refusal",
        "add one; it need not lead anywhere, such as one by a dummy interface",
        "kube-nodes",
    ),
    Check(
        "networks-apart",
        "the networks of pods and services have nothing in common with those of the host",
        "refusal",
        "write another `podCIDR` or `serviceCIDR`",
        "kube-nodes",
    ),
    Check(
        "nameserver",
        "somebody answers for names outside of the cluster",
        "warning",
        "name somebody in /etc/resolv.conf, or write `dns: {upstream: […]}`; with an empty list"
        " nobody is asked",
        "kube-nodes",
    ),
    Check(
        "nameserver-loop",
        "pods are not sent to themselves for names",
        "refusal",
        "write `dns: {upstream: […]}`, or name another server than the host itself in"
        " /etc/resolv.conf",
        "kube-nodes",
    ),
    Check(
        "hosts-reach-each-other",
        "the host reaches others of the cluster: control planes, etcd, and its neighbours",
        "refusal",
        "see to the routes between them, and that no firewall drops what comes from a host",
    ),
    Check(
        "ports-reachable",
        "others answer at the TCP ports that the host will need there; of UDP, such as that of"
        " VXLAN, nobody tells before somebody listens",
        "refusal",
        "let these ports through from host to host",
    ),
    Check(
        "site-reachable",
        "what the site has answers: the load balancer of the endpoint, an etcd of its own",
        "refusal",
        "see that it is up and lets the hosts in, or correct `endpoint` or `etcd: {external: …}`",
        "site-dependents",
    ),
    Check(
        "endpoint-address-free",
        "nobody has the address of the endpoint yet",
        "refusal",
        "write another `endpoint: {address: …}`, or free this one",
        "address-holders",
    ),
    Check(
        "endpoint-address-network",
        "the address of the endpoint is in a network of the host",
        "warning",
        "write an `endpoint: {address: …}` of the network of the hosts that hold it",
        "address-holders",
    ),
    Check(
        "unique-hostnames",
        "no two hosts call themselves the same",
        "refusal",
        "rename one of them, with `hostnamectl hostname NAME`",
        across=True,
    ),
    Check(
        "unique-machine-ids",
        "no two hosts have one machine id, as copies of a virtual machine do",
        "refusal",
        "on one of them: remove /etc/machine-id, run `systemd-machine-id-setup`, and reboot",
        across=True,
    ),
    Check(
        "unique-product-uuids",
        "no two hosts have one product uuid, as copies of a virtual machine do",
        "warning",
        "give each its own; of containers on one machine it can't be otherwise",
        across=True,
    ),
    Check(
        "unique-addresses",
        "no host has an address by which others know another one",
        "refusal",
        "give each host its own address",
        across=True,
    ),
    Check(
        "unique-macs",
        "no two hosts have one hardware address",
        "refusal",
        "give each its own: on one network they take each other's packets",
        across=True,
    ),
    Check(
        "clock-skew",
        "the clocks of the hosts agree with each other, and with that of this machine",
        "refusal",
        "have them keep the time by the same servers, with chrony or systemd-timesyncd",
        threshold="clockOffset",
        across=True,
    ),
    Check(
        "mtu",
        "all hosts send packets of one size",
        "warning",
        "give all the same MTU, or write the smallest as `network: {mtu: …}`",
        across=True,
    ),
    Check(
        "artifacts",
        "everything that the cluster needs is in the bundle, or can be had without one",
        "refusal",
        "build the bundle again for this cluster file, or see to the way there",
        across=True,
    ),
)

CHECKS: Mapping[str, Check] = {check.name: check for check in _CHECKS}
"""Every check by its name, in the order in which they are told."""
