"""What hosts have to be like before anything is changed on them, by their part in the cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from kubexm.common import layout
from kubexm.common.checks import CHECKS, Among
from kubexm.common.roles import LOADBALANCER
from kubexm.config.members import Member
from kubexm.config.model.kubernetes import KubernetesSpec
from kubexm.config.rules.listeners import is_kube_node, is_plane
from kubexm.config.rules.rule import Declared
from kubexm.step.preflight import JUDGES, Fit
from kubexm.step.preflight_look import Place
from kubexm.task.preflight_ports import Parts, peers, ports, site

STATE = "/var/lib/kubexm"
PASSING_MIB = 1024
"""What has to be free where files lie only on their way."""
_PASSING = (STATE, "/tmp")  # noqa: S108 looked at, not written to
_CGROUP_2 = (1, 35)
"""The first Kubernetes whose kubelet takes no control groups of version 1 unless told to."""
_CILIUM = (((1, 18), "5.10"), ((1, 16), "5.4"), ((0, 0), "4.19.57"))
"""The kernel that cilium wants, by the version from which on it does."""


class Group(msgspec.Struct, frozen=True):
    """Hosts with the same part in a cluster, and what they have to be like."""

    name: str
    hosts: tuple[str, ...]
    step: Fit


def groups(declared: Declared, arch: Mapping[str, str], cilium: str = "") -> list[Group]:
    """The hosts of a cluster by what they have to be like.

    `arch`: what files are fetched for, by host; of one that is not there any will do.
    """
    parts = Parts(declared)
    alike: dict[tuple[str, ...], list[Member]] = {}
    for member in declared.members:
        alike.setdefault(member.roles, []).append(member)
    return [
        Group(
            "-".join(roles),
            tuple(member.name for member in members),
            _fit(parts, members, arch, cilium),
        )
        for roles, members in alike.items()
    ]


def _fit(parts: Parts, members: list[Member], arch: Mapping[str, str], cilium: str) -> Fit:
    declared, first = parts.declared, members[0]
    spec, wanted = declared.spec, declared.spec.preflight
    return Fit(
        checks=tuple(checks(parts, first)),
        cluster=declared.name,
        hosts={one.name: _place(parts, one, arch.get(one.name, "")) for one in members},
        cpus=_by_role(first, wanted.control_plane_cpus, wanted.worker_cpus),
        memory_mib=_by_role(first, wanted.control_plane_memory_mib, wanted.worker_memory_mib),
        kernel=_kernels(declared, cilium),
        cgroup=_cgroup(declared),
        disk=_disk(parts, first),
        etcd=spec.etcd.data_dir if first in parts.etcd else "",
        etcd_fsync=wanted.etcd_fsync,
        ports=ports(parts, first),
        networks=_networks(declared),
        site=tuple(site(declared, first)),
        endpoint=(spec.endpoint.address or "") if first in parts.holders else "",
        endpoint_port=spec.endpoint.port,
        haproxy=declared.endpoint_kind == "keepalived" and LOADBALANCER in first.roles,
    )


def _place(parts: Parts, member: Member, arch: str) -> Place:
    return Place(arch, member.internal, peers(parts, member))


def _networks(declared: Declared) -> dict[str, str]:
    pods = dict.fromkeys(map(str, declared.pods), "pods")
    return pods | dict.fromkeys(map(str, declared.services), "services")


def checks(parts: Parts, member: Member) -> Iterator[str]:
    """The names of the checks that are made on a host, without those that the file leaves out."""
    left_out = {*parts.declared.spec.preflight.skip, *_without_meaning(parts.declared)}
    for name, check in CHECKS.items():
        if name in JUDGES and name not in left_out and _is_among(parts, member, check.among):
            yield name


def _is_among(parts: Parts, member: Member, among: Among) -> bool:
    """Whether a check that is made on these hosts is made on this one."""
    if among == "all":
        return True
    if among == "kube-nodes":
        return is_kube_node(member)
    if among == "site-dependents":
        return any(site(parts.declared, member))
    return member in (parts.etcd if among == "etcd-members" else parts.holders)


def _without_meaning(declared: Declared) -> Iterator[str]:
    """Checks of what this cluster does not care about."""
    spec, kubelet = declared.spec, declared.spec.kubernetes.kubelet.config
    if kubelet.get("failSwapOn") is False:
        yield "swap"
    if spec.dns.upstream is not None:
        yield from ("nameserver", "nameserver-loop")
    if "resolvConf" in kubelet:
        yield "nameserver-loop"
    if len(declared.members) < 2:
        yield from ("hosts-reach-each-other", "ports-reachable")
    if spec.endpoint.kube_vip.mode == "bgp":
        yield "endpoint-address-network"


def _by_role(member: Member, of_plane: int, of_worker: int) -> int:
    """What is wanted of a host that runs pods, or the API server; of others nothing is."""
    if is_plane(member):
        return of_plane
    return of_worker if is_kube_node(member) else 0


def _kernels(declared: Declared, cilium: str) -> dict[str, str]:
    """Versions of the kernel, and who wants them."""
    found = {"4.9.17": "Kubernetes"}
    if cilium:
        version = _minor(cilium)
        least = next(kernel for since, kernel in _CILIUM if version >= since)
        found[least] = f"cilium {cilium}"
    if declared.spec.kubernetes.kube_proxy.mode == "nftables":
        found["5.13"] = "kube-proxy with nftables"
    return found


def _cgroup(declared: Declared) -> int:
    kubernetes = declared.spec.kubernetes
    is_bound = _minor(kubernetes.version) >= _CGROUP_2
    return 2 if is_bound and not _bears_first_cgroups(kubernetes) else 1


def _bears_first_cgroups(kubernetes: KubernetesSpec) -> bool:
    """Whether both the kubelet and kubeadm were told to: neither asks what the other was told."""
    ignored = {name.lower() for name in kubernetes.kubeadm.ignore_preflight_errors}
    return (
        "systemverification" in ignored and kubernetes.kubelet.config.get("failCgroupV1") is False
    )


def _minor(version: str) -> tuple[int, int]:
    major, minor, *_ = version.removeprefix("v").split(".")
    return int(major), int(minor)


def _disk(parts: Parts, member: Member) -> dict[str, int]:
    """What has to be free, by where data will lie."""
    spec = parts.declared.spec
    free = spec.preflight.disk_free_mib
    found = dict.fromkeys(_PASSING, min(free, PASSING_MIB))
    if is_kube_node(member):
        found |= dict.fromkeys((spec.container_runtime.root, layout.KUBELET_DATA), free)
    if member in parts.etcd:
        found[spec.etcd.data_dir] = free
    if member in parts.registries:
        found[spec.registry.data_dir] = free
    return found
