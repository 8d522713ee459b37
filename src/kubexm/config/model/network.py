"""How pods and services reach each other."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from kubexm.config.fields import Cidrs, Interface, Version
from kubexm.document.forms import Form, Range, called, empty

NetworkPlugin = Literal["routed", "flannel", "calico", "cilium", "none"]


class FlannelSpec(Form):
    """The plugin flannel."""

    version: Version | None = None
    """The one that goes with this Kubernetes if nothing is said."""
    backend: Literal["vxlan", "host-gw"] = "vxlan"
    """How packets go from host to host."""
    interface: Interface | None = None
    """The interface they go by; if nothing is said, that of the hosts' internal addresses, and with
    pods of both families that of the default route."""


class CalicoSpec(Form):
    """The plugin calico."""

    version: Version | None = None
    """The one that goes with this Kubernetes if nothing is said."""
    encapsulation: Literal["vxlan", "vxlan-cross-subnet", "ipip", "none"] = "vxlan"
    """How packets go from host to host."""
    block_size: Annotated[int, Range(20, 32)] = 26
    """The prefix of the addresses that a host takes at a time."""


class CiliumSpec(Form):
    """The plugin cilium."""

    version: Version | None = None
    """The one that goes with this Kubernetes if nothing is said."""
    values: dict[str, Any] = empty(dict)
    """Any other value of its chart; wins over what kubexm sets."""


class NetworkSpec(Form):
    """How pods and services reach each other.

    | plugin | what it is |
    |---|---|
    | `routed` | a route on each host to each other one, for hosts on one segment: no daemon |
    | `flannel`, `calico`, `cilium` | the plugin of that name |
    | `none` | whatever you install yourself |
    """

    plugin: NetworkPlugin = "calico"
    """What carries packets between pods."""
    pod_cidr: Cidrs = called("podCIDR", ("10.233.64.0/18",))
    """The addresses of pods; two of them, one of each family, for dual stack."""
    service_cidr: Cidrs = called("serviceCIDR", ("10.233.0.0/18",))
    """The addresses of services; two of them, one of each family, for dual stack."""
    node_mask: Annotated[int, Range(16, 30)] = 24
    """The prefix of the pod addresses of one host."""
    node_mask_ipv6: Annotated[int, Range(64, 124)] = 64
    """The same for IPv6."""
    mtu: Annotated[int, Range(576, 9216)] | None = None
    """The largest packet of a pod; found out by the plugin if nothing is said."""
    flannel: FlannelSpec = FlannelSpec()
    """For `plugin: flannel`."""
    calico: CalicoSpec = CalicoSpec()
    """For `plugin: calico`."""
    cilium: CiliumSpec = CiliumSpec()
    """For `plugin: cilium`."""
