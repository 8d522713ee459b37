"""Rules of networks and their addresses."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence

from kubexm.common.counting import few
from kubexm.config.rules.rule import Declared, Network, rule
from kubexm.document.findings import Finding

_NETWORK = ("spec", "network")
_PODS = (*_NETWORK, "podCIDR")
_SERVICES = (*_NETWORK, "serviceCIDR")
_LARGEST_OF_SERVICES = {4: 12, 6: 108}
"""The shortest prefixes that the API server takes."""
_SMALLEST_OF_SERVICES = {4: 26, 6: 122}
"""Room for what a new cluster has, and some more."""
_BY_ITSELF = ("calico", "cilium", "none")
"""Plugins that hand out addresses in their own way."""
_SECTIONS = ("flannel", "calico", "cilium")
_RESERVED = 2


@rule("families", "network.podCIDR", "network.serviceCIDR")
def families(cluster: Declared) -> Iterator[Finding]:
    """Pods and services have the same families of addresses, each once."""
    pods, services = _versions(cluster.pods), _versions(cluster.services)
    for place, found in ((_PODS, pods), (_SERVICES, services)):
        if len(found) != len(set(found)):
            message = f"found {len(found)} networks of {_told(found)}, want one of each family"
            yield Finding(place, message, "write one IPv4 and one IPv6 network at most")
    if set(pods) != set(services):
        message = f"services have {_told(services)}, pods {_told(pods)}"
        yield Finding(_SERVICES, message, "give both the same families")


def _versions(networks: Sequence[Network]) -> list[int]:
    return [network.version for network in networks]


def _told(versions: Sequence[int]) -> str:
    return " and ".join(f"IPv{version}" for version in dict.fromkeys(versions))


@rule("overlap", "network.podCIDR", "network.serviceCIDR")
def overlap(cluster: Declared) -> Iterator[Finding]:
    """The addresses of pods and of services are apart."""
    for pods in cluster.pods:
        for services in cluster.services:
            if pods.version == services.version and pods.overlaps(services):
                message = f"{services} of services overlaps {pods} of pods"
                yield Finding(_SERVICES, message, "take networks that have nothing in common")


@rule("hosts-outside", "network.podCIDR", "network.serviceCIDR", "hosts")
def hosts_outside(cluster: Declared) -> Iterator[Finding]:
    """No host has an address of a pod or a service."""
    for place, what, networks in (
        (_PODS, "pods", cluster.pods),
        (_SERVICES, "services", cluster.services),
    ):
        for network in networks:
            if within := [*_within(cluster, network)]:
                message = f"{network} of {what} has the addresses of hosts: {few(within)}"
                yield Finding(place, message, "take a network that the hosts are not in")


def _within(cluster: Declared, network: Network) -> Iterator[str]:
    for member in cluster.members:
        for text in dict.fromkeys((member.address, *member.internal)):
            try:
                if ipaddress.ip_address(text) in network:
                    yield f"{member.name} {text}"
            except ValueError:  # it is a name
                continue


@rule("pods-for-all", "network", "hosts", "roleGroups")
def pods_for_all(cluster: Declared) -> Iterator[Finding]:
    """There is a part of the network of pods for every kube node."""
    network, nodes = cluster.spec.network, len(_kube_nodes(cluster))
    masks = {4: network.node_mask, 6: network.node_mask_ipv6}
    for pods in () if network.plugin in _BY_ITSELF else cluster.pods:
        mask = masks[pods.version]
        parts = 2 ** max(mask - pods.prefixlen, 0)
        if mask < pods.prefixlen:
            message = f"a host gets a /{mask}, which is more than all of {pods}"
            yield Finding(_PODS, message, "take a larger network, or a smaller part for each host")
        elif parts < nodes:
            message = f"{pods} has {parts} parts of /{mask}, want {nodes}, one for each kube node"
            yield Finding(_PODS, message, "take a larger network, or a smaller part for each host")


def _kube_nodes(cluster: Declared) -> list[str]:
    kinds = {"control-plane", "worker"}
    return [member.name for member in cluster.members if kinds.intersection(member.roles)]


@rule("pods-of-a-host", "network", "kubernetes.kubelet")
def pods_of_a_host(cluster: Declared) -> Iterator[Finding]:
    """A host has an address for every pod that it may run."""
    network, most = cluster.spec.network, cluster.spec.kubernetes.kubelet.max_pods
    if network.plugin in _BY_ITSELF or 4 not in _versions(cluster.pods):
        return
    room = 2 ** (32 - network.node_mask) - _RESERVED
    if most > room:
        message = f"a /{network.node_mask} has {room} addresses for {most} pods of a host"
        hint = "give each host more, with a smaller `nodeMask`, or write fewer `maxPods`"
        yield Finding((*_NETWORK, "nodeMask"), message, hint)


@rule("services-size", "network.serviceCIDR")
def services_size(cluster: Declared) -> Iterator[Finding]:
    """The network of services is neither too large for the API server nor too small."""
    for services in cluster.services:
        largest = _LARGEST_OF_SERVICES[services.version]
        smallest = _SMALLEST_OF_SERVICES[services.version]
        if not largest <= services.prefixlen <= smallest:
            message = f"found {services}, want a prefix from /{largest} to /{smallest}"
            yield Finding(_SERVICES, message, "take a network of another size")


@rule("dual-stack", "network.podCIDR", "hosts")
def dual_stack(cluster: Declared) -> Iterator[Finding]:
    """With two families every host has an address of each."""
    wanted = set(_versions(cluster.pods))
    if len(wanted) < 2:
        return
    for member in cluster.members:
        missing = wanted - {*_families_of(member.internal)}
        if missing:
            message = f"`{member.name}` has no address of {_told(sorted(missing))}"
            hint = "write `internalAddresses: [IPV4, IPV6]`, or networks of one family"
            yield Finding(member.place, message, hint)


def _families_of(addresses: Sequence[str]) -> Iterator[int]:
    for text in addresses:
        try:
            yield ipaddress.ip_address(text).version
        except ValueError:  # a name may stand for both
            yield from (4, 6)


@rule("plugin-settings", "network")
def plugin_settings(cluster: Declared) -> Iterator[Finding]:
    """Settings of a plugin are there for that plugin alone."""
    network = cluster.spec.network
    for name in _SECTIONS:
        if network.says(name) and network.plugin != name:
            message = f"`{name}` has no meaning for `plugin: {network.plugin}`"
            hint = f"leave it out, or write `plugin: {name}`"
            yield Finding((*_NETWORK, name), message, hint, at_key=True)


@rule("proxy-mode", "network.plugin", "kubernetes.kubeProxy")
def proxy_mode(cluster: Declared) -> Iterator[Finding]:
    """Without kube-proxy something takes its place."""
    place = ("spec", "kubernetes", "kubeProxy", "mode")
    plugin, mode = cluster.spec.network.plugin, cluster.spec.kubernetes.kube_proxy.mode
    if mode == "none" and plugin not in ("cilium", "none"):
        message = f"`none`, and `{plugin}` does not take its place"
        yield Finding(place, message, "write `iptables`, or `plugin: cilium`")


RULES = (
    families,
    overlap,
    hosts_outside,
    pods_for_all,
    pods_of_a_host,
    services_size,
    dual_stack,
    plugin_settings,
    proxy_mode,
)
