"""Who listens where on a host, by its part in the cluster and by what the file says."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, Literal

import msgspec

from kubexm.common.roles import CONTROL_PLANE, LOADBALANCER, REGISTRY, WORKER
from kubexm.config.members import Member
from kubexm.config.model.endpoint import EndpointKind
from kubexm.config.rules.rule import Declared
from kubexm.document.source import DataPath

_PORT = re.compile(r"[1-9][0-9]{0,4}")
API_SERVER = 6443
KUBELET = 10250
ETCD_CLIENTS = 2379
ETCD_MEMBERS = 2380
SSH = 22
BESIDE = ("haproxy", "nginx")
"""Kinds of the endpoint with a balancer on each worker, and none on control planes."""
ENDPOINT = ("spec", "endpoint", "port")
REGISTRY_PORT = ("spec", "registry", "port")
_CONTROL_PLANE = {
    API_SERVER: "the API server",
    10257: "the controller manager",
    10259: "the scheduler",
}
_KUBE_NODE = {KUBELET: "the kubelet", 10248: "the kubelet"}
_PROXY = {"metricsBindAddress": 10249, "healthzBindAddress": 10256}
"""What says where kube-proxy listens, and at which port it does if nothing is said."""
_KUBELET_CONFIG = ("spec", "kubernetes", "kubelet", "config")
_PROXY_CONFIG = ("spec", "kubernetes", "kubeProxy", "config")
_NAME_CACHE = {9253: "the cache of names", 9254: "the cache of names"}
_KUBE_VIP = {2112: "kube-vip"}
# It tells of its health at the last of them, whoever runs it.
_ETCD = {ETCD_CLIENTS: "etcd", ETCD_MEMBERS: "etcd", 2381: "etcd"}
_HAPROXY = {8081: "the health of haproxy"}
_CILIUM = {4240: "cilium", 4244: "cilium"}
_CALICO = {9099: "calico"}
BGP = 179
_CALICO_BGP = {BGP: "calico"}
_VXLAN = {"cilium": 8472, "flannel": 8472, "calico": 4789}


class Listener(msgspec.Struct, frozen=True):
    """Somebody who listens at a port of a host."""

    port: int
    who: str
    protocol: Literal["tcp", "udp"] = "tcp"
    place: DataPath = ()
    """Where the file says the port; nothing if it can't."""
    is_ours: bool = True
    """Whether the cluster brings it; else it listens already."""


class Listeners(msgspec.Struct, frozen=True, dict=True):
    """Those of a cluster; what all hosts have in common is found once: there may be thousands."""

    cluster: Declared

    @cached_property
    def kind(self) -> EndpointKind:
        return self.cluster.endpoint_kind

    @cached_property
    def etcd(self) -> frozenset[str]:
        """The hosts with a member of etcd."""
        return frozenset(member.name for member in self.cluster.etcd_members)

    def of(self, member: Member) -> Iterator[Listener]:
        """All who listen on a host once the cluster is there."""
        yield from self._of_kubernetes(member)
        yield from self._of_balancer(member)
        if REGISTRY in member.roles:
            yield Listener(self.cluster.spec.registry.port, "the registry", place=REGISTRY_PORT)
        if not member.is_local:
            yield _sshd(self.cluster, member)

    @cached_property
    def _laid_over(self) -> tuple[Listener, ...]:
        """Those on every kube node whose ports the settings of their programs may say."""
        return (*_read_only(self.cluster), *_of_proxy(self.cluster))

    def _of_kubernetes(self, member: Member) -> Iterator[Listener]:
        spec = self.cluster.spec
        if is_plane(member):
            yield from _fixed(_CONTROL_PLANE)
            yield from _fixed(_KUBE_VIP if self.kind == "kube-vip" else {})
        if is_kube_node(member):
            yield from _fixed(_KUBE_NODE)
            yield from _of_plugin(self.cluster)
            yield from self._laid_over
            yield from _fixed(_NAME_CACHE if spec.dns.node_local.enabled else {})
        if member.name in self.etcd:
            yield from _fixed(_ETCD)

    def _of_balancer(self, member: Member) -> Iterator[Listener]:
        """What stands in front of the API servers: on hosts of its own, or on each worker."""
        is_own = self.kind == "keepalived" and LOADBALANCER in member.roles
        if is_own or (self.kind in BESIDE and is_kube_node(member) and not is_plane(member)):
            # The one of a worker has the port of the API servers, and no other.
            place = ENDPOINT if is_own else ()
            yield Listener(self.cluster.spec.endpoint.port, "the load balancer", place=place)
            yield from _fixed(_HAPROXY if self.kind != "nginx" else {})


def is_plane(member: Member) -> bool:
    """Whether a host runs the API server."""
    return CONTROL_PLANE in member.roles


def is_kube_node(member: Member) -> bool:
    """Whether a host runs the kubelet."""
    return is_plane(member) or WORKER in member.roles


def exchanges_routes(cluster: Declared) -> bool:
    """Whether kube nodes tell each other by BGP where pods are."""
    network = cluster.spec.network
    # With VXLAN, also across subnets alone, calico exchanges no routes.
    is_vxlan = network.calico.encapsulation.startswith("vxlan")
    return network.plugin == "calico" and not is_vxlan


def _read_only(cluster: Declared) -> Iterator[Listener]:
    """The kubelet once more, for those who ask without credentials, if it is told to."""
    if port := _port(cluster.spec.kubernetes.kubelet.config.get("readOnlyPort")):
        yield Listener(port, "the kubelet", place=(*_KUBELET_CONFIG, "readOnlyPort"))


def _of_proxy(cluster: Declared) -> Iterator[Listener]:
    proxy = cluster.spec.kubernetes.kube_proxy
    for key, usual in _PROXY.items() if proxy.mode != "none" else ():
        _, colon, written = str(proxy.config.get(key, "")).rpartition(":")
        if colon and (port := _port(written)):
            yield Listener(port, "kube-proxy", place=(*_PROXY_CONFIG, key))
        else:
            yield Listener(usual, "kube-proxy")


def _port(written: Any) -> int | None:
    """A port in what the file hands on unread; None if it is none."""
    found = _PORT.fullmatch(str(written))
    return int(found[0]) if found and int(found[0]) < 1 << 16 else None


def _of_plugin(cluster: Declared) -> Iterator[Listener]:
    network = cluster.spec.network
    calico = network.plugin == "calico"
    way = network.calico.encapsulation
    yield from _fixed(_CILIUM if network.plugin == "cilium" else {})
    yield from _fixed(_CALICO if calico else {})
    yield from _fixed(_CALICO_BGP if exchanges_routes(cluster) else {})
    is_vxlan = {
        "cilium": True,
        "flannel": network.flannel.backend == "vxlan",
        "calico": way.startswith("vxlan"),
    }
    if is_vxlan.get(network.plugin, False):
        yield Listener(_VXLAN[network.plugin], network.plugin, "udp")


def _sshd(cluster: Declared, member: Member) -> Listener:
    """Whoever lets kubexm in, as far as the file says where."""
    host, around = cluster.spec.hosts[member.number].ssh, cluster.spec.ssh
    for spec, place in ((host, (*member.place, "ssh", "port")), (around, ("spec", "ssh", "port"))):
        if spec is not None and spec.port is not None:
            return Listener(spec.port, "sshd", place=place, is_ours=False)
    return Listener(SSH, "sshd", is_ours=False)


def _fixed(ports: Mapping[int, str]) -> Iterator[Listener]:
    """Those who have their ports whatever the file says."""
    return (Listener(port, who) for port, who in ports.items())
