"""Rules of networks and their addresses."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence

from kubexm.common.counting import few
from kubexm.config.members import Member
from kubexm.config.model.kubernetes import KubeletSpec
from kubexm.config.rules.rule import Declared, Network, rule
from kubexm.document.fields import as_ip
from kubexm.document.findings import Finding

_NETWORK = ("spec", "network")
_PODS = (*_NETWORK, "podCIDR")
_SERVICES = (*_NETWORK, "serviceCIDR")
_LARGEST_OF_SERVICES = {4: 12, 6: 108}
"""The shortest prefixes that the API server takes."""
_SMALLEST_OF_SERVICES = {4: 26, 6: 122}
"""Room for what a new cluster has, and some more."""
_BLOCKS_OF_IPV6 = 122
"""The prefix of what calico gives to a host at a time, which nothing sets."""
_FEWEST_PODS = 8
"""Addresses for each kube node, so that a new cluster can run at all."""
_FARTHEST = 16
"""The bits between the network of pods and the part of a host that controllers keep count of."""
_UNUSABLE: tuple[Network, ...] = (
    *map(ipaddress.IPv4Network, ("0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4")),
    *map(ipaddress.IPv6Network, ("::/127", "fe80::/10", "ff00::/8")),
)
"""Networks of one machine, one segment, or of no machine."""
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
    if [*dict.fromkeys(pods)] != [*dict.fromkeys(services)]:
        message = f"services have {_told(services)}, pods {_told(pods)}"
        yield Finding(_SERVICES, message, "give both the same families, in the same order")


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


@rule("networks-usable", "network.podCIDR", "network.serviceCIDR")
def networks_usable(cluster: Declared) -> Iterator[Finding]:
    """Pods and services have addresses that packets are sent to."""
    for place, networks in ((_PODS, cluster.pods), (_SERVICES, cluster.services)):
        for network in networks:
            same = (other for other in _UNUSABLE if other.version == network.version)
            if met := next((other for other in same if network.overlaps(other)), None):
                message = f"{network} has addresses of {met}, which no pod and no service can have"
                hint = "take a private network, such as one of `10.0.0.0/8` or `fd00::/8`"
                yield Finding(place, message, hint)


@rule("pods-for-all", "network", "hosts", "roleGroups")
def pods_for_all(cluster: Declared) -> Iterator[Finding]:
    """There is a part of the network of pods for every kube node."""
    nodes = len(_kube_nodes(cluster))
    judge = _blocks if cluster.spec.network.plugin == "calico" else _parts
    for pods in cluster.pods:
        if message := judge(cluster, pods, nodes):
            yield Finding(_PODS, message, _hint_of_size(cluster))


def _hint_of_size(cluster: Declared) -> str:
    if cluster.spec.network.plugin == "calico":
        return "take a larger network, or smaller blocks with a larger `calico.blockSize`"
    return "take another network, or another `nodeMask` or `nodeMaskIpv6`"


def _parts(cluster: Declared, pods: Network, nodes: int) -> str:
    """What is wrong where every host has one part of a fixed size."""
    mask = _mask(cluster, pods.version)
    parts = 2 ** max(mask - pods.prefixlen, 0)
    if mask < pods.prefixlen:
        return f"a host gets a /{mask}, which is more than all of {pods}"
    if parts < nodes:
        return f"{pods} has {parts} parts of /{mask}, want {nodes}, one for each kube node"
    if mask - pods.prefixlen > _FARTHEST:
        return (
            f"{pods} has more parts of /{mask} than are kept count of, want 2^{_FARTHEST} at most"
        )
    return ""


def _blocks(cluster: Declared, pods: Network, nodes: int) -> str:
    """What is wrong where a host takes blocks as it needs them."""
    size = cluster.spec.network.calico.block_size if pods.version == 4 else _BLOCKS_OF_IPV6
    blocks = 2 ** max(size - pods.prefixlen, 0)
    if size < pods.prefixlen:
        return f"a block is a /{size}, which is more than all of {pods}"
    if blocks < nodes:
        return f"{pods} has {blocks} blocks of /{size}, want {nodes}, one for each kube node"
    if pods.num_addresses < nodes * _FEWEST_PODS:
        wanted = f"want {nodes * _FEWEST_PODS}, {_FEWEST_PODS} for each kube node"
        return f"{pods} has {pods.num_addresses} addresses, {wanted}"
    return ""


def _mask(cluster: Declared, version: int) -> int:
    network = cluster.spec.network
    return network.node_mask if version == 4 else network.node_mask_ipv6


def _kube_nodes(cluster: Declared) -> list[str]:
    kinds = {"control-plane", "worker"}
    return [member.name for member in cluster.members if kinds.intersection(member.roles)]


@rule("pods-of-a-host", "network", "kubernetes.kubelet")
def pods_of_a_host(cluster: Declared) -> Iterator[Finding]:
    """A host has an address for every pod that it may run."""
    network, most = cluster.spec.network, _most_pods(cluster.spec.kubernetes.kubelet)
    # The one takes more blocks as it needs them, the other is whatever somebody installs.
    for pods in () if network.plugin in ("calico", "none") else cluster.pods:
        mask = _mask(cluster, pods.version)
        room = 2 ** (pods.max_prefixlen - mask) - _RESERVED
        if most > room:
            key = "nodeMask" if pods.version == 4 else "nodeMaskIpv6"
            message = f"a /{mask} has {room} addresses for {most} pods of a host"
            hint = f"give each host more, with a smaller `{key}`, or write fewer `maxPods`"
            yield Finding((*_NETWORK, key), message, hint)


def _most_pods(kubelet: KubeletSpec) -> int:
    """How many pods a host may run; what is laid over the settings of the kubelet wins."""
    over = kubelet.config.get("maxPods")
    return over if isinstance(over, int) else kubelet.max_pods


@rule("services-size", "network.serviceCIDR")
def services_size(cluster: Declared) -> Iterator[Finding]:
    """The network of services is neither too large for the API server nor too small."""
    for services in cluster.services:
        largest = _LARGEST_OF_SERVICES[services.version]
        smallest = _SMALLEST_OF_SERVICES[services.version]
        if not largest <= services.prefixlen <= smallest:
            message = f"found {services}, want a prefix from /{largest} to /{smallest}"
            yield Finding(_SERVICES, message, "take a network of another size")


@rule("host-families", "network.podCIDR", "hosts")
def host_families(cluster: Declared) -> Iterator[Finding]:
    """Every host has an address of each family of the pods, in their order, and no other."""
    wanted = [*dict.fromkeys(_versions(cluster.pods))]
    for member in cluster.members:
        known = [as_ip(text) for text in member.internal]
        found = [address.version for address in known if address is not None]
        # That a name is no address is told by another rule.
        if len(found) == len(known) and found != wanted:
            yield _other_families(member, found, wanted)


def _other_families(member: Member, found: Sequence[int], wanted: Sequence[int]) -> Finding:
    if missing := [version for version in wanted if version not in found]:
        message = f"`{member.name}` has no address of {_told(missing)}, which pods have"
    elif len(found) > len(wanted):
        message = f"`{member.name}` has {_each(found)}, pods have {_told(wanted)}"
    else:
        message = f"`{member.name}` has {_told(found)}, pods have {_told(wanted)} first"
    listed = ", ".join(f"IPV{version}" for version in dict.fromkeys(wanted))
    hint = f"write `internalAddresses: [{listed}]`, or networks of the families that it has"
    return Finding(member.place, message, hint)


def _each(versions: Sequence[int]) -> str:
    return " and ".join(f"IPv{version}" for version in versions)


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
    networks_usable,
    pods_for_all,
    pods_of_a_host,
    services_size,
    host_families,
    plugin_settings,
    proxy_mode,
)
