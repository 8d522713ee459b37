"""Pod networks, and the address that control planes hold themselves."""

from __future__ import annotations

from typing import Literal

import msgspec

from kubexm.common import layout
from kubexm.templates.context import Context, Template


class BgpPeer(msgspec.Struct, frozen=True, kw_only=True):
    """A router that is told where the address is."""

    address: str
    """Where it is."""
    asn: int
    """Its autonomous system."""


class Bgp(msgspec.Struct, frozen=True, kw_only=True):
    """How the address is announced to routers."""

    router_id: str
    """The IPv4 address of this host, which tells it from the others."""
    asn: int
    """The autonomous system of the control planes."""
    peers: tuple[BgpPeer, ...]
    """The routers."""


class KubeVipPod(Context, frozen=True, kw_only=True):
    """The address of the API servers, held by one of the control planes at a time."""

    image: str
    """The image of kube-vip."""
    address: str
    """The address."""
    port: int = 6443
    """The port of the API server of this host, which is that of the address too."""
    interface: str = ""
    """The interface that gets the address; if nothing is said, that of the host's own address, and
    the loopback one with BGP."""
    own: str = ""
    """The host's own address, of the same family."""
    others: dict[str, str] = msgspec.field(default_factory=dict)
    """Interfaces of the host beside that of its default route, by its addresses at them."""
    bgp: Bgp | None = None
    """How it is announced to routers; by ARP if nothing is said."""
    kubeconfig: str = layout.ADMIN_CONFIG
    """How it may ask the API server. On the host where the cluster begins it is `super-admin.conf`:
    of the usual one the API server knows nothing before kubeadm is done."""


class FlannelManifest(Context, frozen=True, kw_only=True):
    """The pod network of flannel."""

    image: str
    """The image of the daemon."""
    plugin_image: str
    """The image with the CNI plugin."""
    ipv4_cidr: str = ""
    """The IPv4 addresses of pods; nothing if they have none."""
    ipv6_cidr: str = ""
    """The IPv6 addresses of pods; nothing if they have none."""
    backend: Literal["vxlan", "host-gw"] = "vxlan"
    """How packets go from host to host."""
    interface: str = ""
    """The interface they go by; that of the default route if nothing is said."""
    by_host_address: bool = False
    """Whether that is the interface of the address that the node is known by."""
    mtu: int | None = None
    """The largest packet of a pod; found out if nothing is said."""
    plugins_dir: str = layout.CNI_PLUGINS
    """Where the CNI plugin goes."""
    settings_dir: str = layout.CNI_CONFIG
    """Where its settings go."""


class CalicoChanges(Context, frozen=True, kw_only=True):
    """What is different from the manifest that Calico publishes."""

    ipv4_cidr: str = ""
    """The IPv4 addresses of pods; nothing if they have none."""
    ipv6_cidr: str = ""
    """The IPv6 addresses of pods; nothing if they have none."""
    encapsulation: Literal["vxlan", "vxlan-cross-subnet", "ipip", "none"] = "vxlan"
    """How packets go from host to host; those of IPv6 go as they are with `ipip`."""
    block_size: int = 26
    """The prefix of the addresses that a host takes at a time."""
    mtu: int | None = None
    """The largest packet of a pod; found out if nothing is said."""


class CiliumValues(Context, frozen=True, kw_only=True):
    """Values for the chart of Cilium."""

    api_host: str
    """Where the API servers are reached."""
    agent_image: str
    """The image of the agent."""
    envoy_image: str
    """The image of the proxy for what speaks HTTP."""
    operator_image: str
    """The image of the operator."""
    api_port: int = 6443
    """The port there."""
    replaces_kube_proxy: bool = False
    """Whether there is no kube-proxy."""
    ipv4_cidr: str = ""
    """The IPv4 addresses of pods; nothing if they have none."""
    ipv6_cidr: str = ""
    """The IPv6 addresses of pods; nothing if they have none."""
    node_mask: int = 24
    """The prefix of the IPv4 addresses of the pods of one host."""
    node_mask_ipv6: int = 64
    """The same for IPv6."""
    mtu: int | None = None
    """The largest packet of a pod; found out if nothing is said."""
    operator_replicas: int = 1
    """How many operators there are; not more than kube nodes."""


_V4, _V6 = "10.233.64.0/18", "fd00:64::/56"
_KUBE_VIP = "ghcr.io/kube-vip/kube-vip:v1.2.3"
_FLANNEL = "ghcr.io/flannel-io/flannel:v0.28.9"
_FLANNEL_PLUGIN = "ghcr.io/flannel-io/flannel-cni-plugin:v1.9.1-flannel3"
_CILIUM = "registry.internal:5000/cilium"
_KUBE_VIPS = (
    KubeVipPod(image=_KUBE_VIP, address="10.0.0.10", kubeconfig="/etc/kubernetes/super-admin.conf"),
    KubeVipPod(image=_KUBE_VIP, address="fd00::10", port=8443, interface="eth1"),
    KubeVipPod(image=_KUBE_VIP, address="10.1.0.10", own="10.1.0.11", others={"10.1.0.11": "eth1"}),
    KubeVipPod(
        image=_KUBE_VIP,
        address="10.0.0.10",
        bgp=Bgp(
            router_id="10.0.0.11",
            asn=65000,
            peers=(BgpPeer(address="10.0.0.1", asn=65001), BgpPeer(address="fd00::1", asn=65002)),
        ),
    ),
)
_FLANNELS = (
    FlannelManifest(image=_FLANNEL, plugin_image=_FLANNEL_PLUGIN, ipv4_cidr=_V4),
    FlannelManifest(
        image=_FLANNEL, plugin_image=_FLANNEL_PLUGIN, ipv6_cidr=_V6, by_host_address=True
    ),
    FlannelManifest(
        image=_FLANNEL,
        plugin_image=_FLANNEL_PLUGIN,
        ipv4_cidr=_V4,
        ipv6_cidr=_V6,
        backend="host-gw",
        interface="eth1",
        mtu=8950,
    ),
)
_CALICOS = (
    CalicoChanges(ipv4_cidr=_V4),
    CalicoChanges(ipv4_cidr=_V4, ipv6_cidr=_V6, encapsulation="vxlan-cross-subnet", mtu=8950),
    CalicoChanges(ipv6_cidr=_V6, encapsulation="none"),
    CalicoChanges(ipv4_cidr=_V4, encapsulation="ipip", block_size=24),
)
_CILIUMS = (
    CiliumValues(
        api_host="api.demo.kubexm.internal",
        agent_image=f"{_CILIUM}/cilium:v1.20.1",
        envoy_image=f"{_CILIUM}/cilium-envoy:v1.37.5",
        operator_image=f"{_CILIUM}/operator-generic:v1.20.1",
        ipv4_cidr=_V4,
    ),
    CiliumValues(
        api_host="fd00::10",
        agent_image=f"{_CILIUM}/cilium:v1.20.1",
        envoy_image=f"{_CILIUM}/cilium-envoy:v1.37.5",
        operator_image=f"{_CILIUM}/operator-generic:v1.20.1",
        replaces_kube_proxy=True,
        ipv6_cidr=_V6,
        mtu=8930,
        operator_replicas=2,
    ),
)

TEMPLATES: tuple[Template, ...] = (
    Template(
        "kube-vip/pod",
        KubeVipPod,
        "yaml",
        "the address of the API servers, as a pod",
        f"{layout.MANIFESTS}/kube-vip.yaml",
        _KUBE_VIPS,
    ),
    Template(
        "flannel/manifest",
        FlannelManifest,
        "manifests",
        "the pod network of flannel",
        "the cluster",
        _FLANNELS,
    ),
    Template(
        "calico/changes",
        CalicoChanges,
        "yaml",
        "what is different from the manifest of Calico",
        "the cluster",
        _CALICOS,
    ),
    Template(
        "cilium/values",
        CiliumValues,
        "yaml",
        "values for the chart of Cilium",
        "the cluster",
        _CILIUMS,
    ),
)
