"""Nodes of a simulated cluster: how hosts become nodes, and when they are ready."""

from __future__ import annotations

import ipaddress

from kubexm.common import layout
from kubexm.sim import apiserver, kubelet
from kubexm.sim.apiserver import Api
from kubexm.sim.etcdmembers import Unanswered
from kubexm.sim.kubedocs import Object, Unreadable, document, documents, entries, part, section
from kubexm.sim.kubekinds import CONFIG_MAP, NODE
from kubexm.sim.kubestore import Cluster, Ref
from kubexm.sim.shell import Shell
from kubexm.sim.standins import machine_arch

CONTROL_PLANE = "node-role.kubernetes.io/control-plane"
_BLOCK, _FIRST_FREE = "pod-network:", "pod-network-first-free"
_BRIDGED = "/proc/sys/net/bridge/bridge-nf-call-iptables"
_CALLED = {"flannel": ("bridge", "host-local")}
"""What plugins hand their work on to."""
_MASKS = {4: ("node-cidr-mask-size-ipv4", 24), 6: ("node-cidr-mask-size-ipv6", 64)}


def ref(name: str) -> Ref:
    """A node by its name."""
    return Ref(NODE, "", name)


def register(shell: Shell, cluster: Cluster, taints: list[Object]) -> None:
    """Have the kubelet of a host make its node, unless there is one of its name."""
    found = kubelet.started(shell)
    if found is None or cluster.get(ref(found.node)) is not None:
        return
    labels = {
        "beta.kubernetes.io/arch": machine_arch(shell),
        "beta.kubernetes.io/os": "linux",
        "kubernetes.io/arch": machine_arch(shell),
        "kubernetes.io/hostname": found.node,
        "kubernetes.io/os": "linux",
    }
    spec: Object = {"taints": taints} if taints else {}
    if networks := _networks(cluster, found.node):
        spec |= {"podCIDR": networks[0], "podCIDRs": networks}
    cluster.set_host_of(found.node, shell.around.name)
    cluster.put(
        ref(found.node),
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": found.node, "labels": labels, "annotations": {}},
            "spec": spec,
        },
    )


def forget(cluster: Cluster, name: str) -> None:
    """Remove a node; the addresses of its pods are free again."""
    cluster.delete(ref(name))
    cluster.set_host_of(name, "")
    for place, owner in cluster.notes(_BLOCK).items():
        if owner == name:
            cluster.set_note(f"{_BLOCK}{place}", "")
            first = min(int(cluster.note(_FIRST_FREE) or 0), int(place))
            cluster.set_note(_FIRST_FREE, str(first))


def settings(cluster: Cluster) -> Object:
    """The ClusterConfiguration that kubeadm has stored."""
    found = cluster.get(Ref(CONFIG_MAP, "kube-system", "kubeadm-config"))
    text = part(found, "data", "ClusterConfiguration")
    return document(text.encode()) if text else {}


def host(api: Api, name: str) -> Shell | None:
    """The host of a node; None if it is down."""
    found = api.cluster.host_of(name)
    return api.shell.around.shell_of(found) if found else None


def kubelet_obstacle(api: Api, name: str) -> str:
    """Why the kubelet of a node tells the API server nothing; nothing if it does."""
    there = host(api, name)
    if there is None:
        return "the host does not answer"
    if why := kubelet.obstacle(there):
        return why
    found = kubelet.started(there)
    try:
        reached = apiserver.administrator(there, found.kubeconfig if found else "")
    except Unanswered as error:
        return str(error)
    return "" if reached.cluster.id == api.cluster.id else "it belongs to another cluster"


def network_obstacle(shell: Shell) -> str:
    """Why pods of a host get no address; nothing if they do."""
    names = shell.files.children(layout.CNI_CONFIG)
    listed = [name for name in names if name.endswith((".conf", ".conflist", ".json"))]
    if not listed:
        return "cni plugin not initialized: no network config found in /etc/cni/net.d"
    try:
        found = documents(shell.files.read(f"{layout.CNI_CONFIG}/{listed[0]}"))[0]
    except (Unreadable, IndexError):
        return f"cni plugin not initialized: {listed[0]} can't be read"
    plugins = _plugins(found)
    for program in plugins:
        if shell.files.lookup(f"{layout.CNI_PLUGINS}/{program}") is None:
            return f'failed to find plugin "{program}" in path [{layout.CNI_PLUGINS}]'
    if "bridge" in plugins and not _is_bridged(shell):
        return f"{_BRIDGED} is not 1: services do not work between pods of a host"
    return ""


def _is_bridged(shell: Shell) -> bool:
    """Whether the kernel lets kube-proxy see what goes over a bridge."""
    return shell.files.lookup(_BRIDGED) is not None and shell.files.read(_BRIDGED).strip() == b"1"


def _plugins(config: Object) -> list[str]:
    """The programs that a configuration of the network calls."""
    found = ["loopback"]
    for one in entries(config, "plugins") or [config]:
        found += filter(None, (one.get("type"), part(one, "ipam", "type")))
    return found + [program for name in found for program in _CALLED.get(name, ())]


def status(api: Api, name: str, silent: str, trouble: str) -> Object:
    """What the status of a node says: why its kubelet says nothing, or that it is not ready."""
    there, condition = host(api, name), _condition(silent, trouble)
    if there is None:
        return {"conditions": [condition]}
    found, machine = kubelet.started(there), there.around.machine
    addresses = [{"type": "InternalIP", "address": one} for one in there.around.addresses[:1]]
    return {
        "addresses": [*addresses, {"type": "Hostname", "address": name}],
        "allocatable": {"cpu": str(machine.cpus), "memory": f"{machine.memory_mib}Mi"},
        "conditions": [condition],
        "nodeInfo": {
            "architecture": machine_arch(there),
            "kernelVersion": machine.kernel,
            "kubeletVersion": found.version if found else "",
            "osImage": machine.os_name,
        },
    }


def _condition(silent: str, trouble: str) -> Object:
    word, reason = "True", "KubeletReady"
    if trouble:
        word, reason = "False", "KubeletNotReady"
    if silent:
        word, reason = "Unknown", "NodeStatusUnknown"
    message = silent or trouble or "kubelet is posting ready status"
    return {"type": "Ready", "status": word, "reason": reason, "message": message}


def _networks(cluster: Cluster, name: str) -> list[str]:
    """The addresses that the controller manager gives to the pods of a node."""
    found = settings(cluster)
    flags = {one["name"]: one["value"] for one in entries(found, "controllerManager", "extraArgs")}
    subnets = str(section(found, "networking").get("podSubnet") or "")
    if not subnets or flags.get("allocate-node-cidrs") == "false":
        return []
    place = _free_place(cluster, name)
    blocks = (_block(ipaddress.ip_network(one.strip()), flags, place) for one in subnets.split(","))
    return [block for block in blocks if block]


def _block(
    network: ipaddress.IPv4Network | ipaddress.IPv6Network, flags: dict[str, str], place: int
) -> str:
    flag, usual = _MASKS[network.version]
    prefix = int(flags.get(flag) or flags.get("node-cidr-mask-size") or usual)
    if prefix < network.prefixlen or place >= 2 ** (prefix - network.prefixlen):
        return ""
    size = 2 ** (network.max_prefixlen - prefix)
    return f"{network.network_address + place * size}/{prefix}"


def _free_place(cluster: Cluster, name: str) -> int:
    place = int(cluster.note(_FIRST_FREE) or 0)
    while cluster.note(f"{_BLOCK}{place}") not in ("", name):
        place += 1
    cluster.set_note(f"{_BLOCK}{place}", name)
    cluster.set_note(_FIRST_FREE, str(place + 1))
    return place
