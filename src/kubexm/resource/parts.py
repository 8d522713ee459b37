"""Which parts of which components a cluster needs, where, and why."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from kubexm.resource.needs import Needs

CONTROL_PLANE = ("control-plane",)
WORKERS = ("worker",)
KUBE_NODES = ("control-plane", "worker")
ETCD = ("etcd",)
BALANCERS = ("load-balancer",)
REGISTRY = ("registry",)
OWN_REGISTRY = "registry"
"""The component that a private registry is made of."""


class Part(msgspec.Struct, frozen=True):
    """Files, images and charts of a component by their names; all that it has if none is named."""

    component: str
    names: tuple[str, ...]
    used_on: tuple[str, ...]
    reason: str
    needed: bool = True
    """Whether the cluster can't be without it; what it can is left out if the catalog has none."""

    def has(self, name: str) -> bool:
        return not self.names or name in self.names


class SystemPart(msgspec.Struct, frozen=True):
    """Something that the operating system brings."""

    package: str
    used_on: tuple[str, ...]
    reason: str


def parts(needs: Needs) -> Iterator[Part]:
    """What has to be fetched."""
    yield from _kubernetes(needs)
    yield from _etcd(needs)
    yield from _runtime(needs)
    yield from _network(needs)
    yield from _endpoint(needs)
    yield from _names(needs)
    yield from _tools(needs)
    yield from _registry(needs)
    for storage in needs.storage:
        yield Part(storage, (), KUBE_NODES, f"volumes are made by {storage}")
    for addon in needs.addons:
        yield Part(addon, (), KUBE_NODES, f"{addon} is among the add-ons")


def system_parts(needs: Needs) -> Iterator[SystemPart]:
    """What has to be installed from packages."""
    for name in ("conntrack", "ethtool", "iproute", "iptables", "socat"):
        yield SystemPart(name, KUBE_NODES, "every kube node needs it")
    if needs.proxy == "nftables":
        yield SystemPart("nftables", KUBE_NODES, "kube-proxy is in nftables mode")
    if needs.proxy == "ipvs":
        yield SystemPart("ipset", KUBE_NODES, "kube-proxy is in ipvs mode")
        yield SystemPart("ipvsadm", KUBE_NODES, "kube-proxy is in ipvs mode")
    if needs.keeps_time:
        yield SystemPart("chrony", KUBE_NODES, "the clocks of hosts are kept")
    if "nfs" in needs.storage:
        yield SystemPart("nfs-client", KUBE_NODES, "volumes are on an NFS server")
    yield from _system_endpoint(needs)


def _kubernetes(needs: Needs) -> Iterator[Part]:
    pods = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
    reason = "every kube node has a kubelet, which kubeadm sets up"
    yield Part("kubernetes", ("kubeadm", "kubelet"), KUBE_NODES, reason)
    yield Part("kubernetes", ("kubectl",), CONTROL_PLANE, "the cluster is asked by kubectl")
    yield Part("kubernetes", pods, CONTROL_PLANE, "kubeadm runs the control plane as pods")
    if needs.proxy != "none":
        yield Part("kubernetes", ("kube-proxy",), KUBE_NODES, "services are kept by kube-proxy")


def _etcd(needs: Needs) -> Iterator[Part]:
    if needs.etcd == "stacked":
        yield Part("etcd", ("server",), CONTROL_PLANE, "kubeadm runs etcd as a pod")
        yield Part("etcd", ("archive",), CONTROL_PLANE, "etcdctl and etcdutl make backups")
    if needs.etcd == "systemd":
        yield Part("etcd", ("archive",), ETCD, "etcd is a service of its own hosts")


def _runtime(needs: Needs) -> Iterator[Part]:
    reason = "containers are run by containerd"
    yield Part(needs.runtime, (), KUBE_NODES, reason)
    yield Part("runc", (), KUBE_NODES, reason)
    yield Part("pause", (), KUBE_NODES, "every pod has one")
    yield Part("cni-plugins", (), KUBE_NODES, "pods are connected by CNI plugins")


def _network(needs: Needs) -> Iterator[Part]:
    # What is routed needs no more than the CNI plugins, and of none nothing is known.
    if needs.network not in ("routed", "none"):
        yield Part(needs.network, (), KUBE_NODES, f"the pod network is {needs.network}")


def _endpoint(needs: Needs) -> Iterator[Part]:
    if needs.endpoint == "kube-vip":
        yield Part("kube-vip", (), CONTROL_PLANE, "the API servers are reached through kube-vip")
    if needs.endpoint in ("haproxy", "nginx") and needs.balancer == "image":
        reason = f"every worker reaches the API servers through its own {needs.endpoint}"
        yield Part(needs.endpoint, (), WORKERS, reason)


def _names(needs: Needs) -> Iterator[Part]:
    yield Part("coredns", (), KUBE_NODES, "names of services are answered by CoreDNS")
    if needs.nodelocal_dns:
        yield Part("nodelocaldns", (), KUBE_NODES, "every kube node has a cache of names")


def _tools(needs: Needs) -> Iterator[Part]:
    if "crictl" in needs.tools:
        reason = "people look into the runtime by crictl"
        yield Part("crictl", (), KUBE_NODES, reason, needed=False)
    if needs.logins:
        yield Part("crictl", (), KUBE_NODES, "images are pulled with logins by crictl")
    if "helm" in needs.tools:
        yield Part("helm", (), CONTROL_PLANE, "people install charts by helm")
    if needs.charts or needs.network == "cilium":
        yield Part("helm", (), CONTROL_PLANE, "charts are installed by helm")


def _registry(needs: Needs) -> Iterator[Part]:
    if needs.own_registry:
        yield Part(OWN_REGISTRY, (), REGISTRY, "the cluster has a registry of its own")
        for component in (needs.runtime, "runc"):
            yield Part(component, (), REGISTRY, "the registry is a container")


def _system_endpoint(needs: Needs) -> Iterator[SystemPart]:
    if needs.endpoint == "keepalived-haproxy":
        reason = "the API servers are reached through load-balancer hosts"
        yield SystemPart("haproxy", BALANCERS, reason)
        yield SystemPart("keepalived", BALANCERS, reason)
    if needs.endpoint in ("haproxy", "nginx") and needs.balancer == "package":
        reason = f"every worker reaches the API servers through its own {needs.endpoint}"
        yield SystemPart(needs.endpoint, WORKERS, reason)
