"""Where the API server is reached, and what stands in front of the control planes."""

from __future__ import annotations

from typing import Annotated, Literal

from kubexm.config.fields import DomainName, Interface, IpAddress
from kubexm.document.fields import Port
from kubexm.document.forms import BadValue, Filled, Form, Range

EndpointKind = Literal["single", "external", "keepalived", "haproxy", "nginx", "kube-vip"]


class KeepalivedSpec(Form):
    """How the load-balancer hosts agree on who holds the address."""

    interface: Interface | None = None
    """The interface that gets the address; that of the host's internal one if nothing is said."""
    router_id: Annotated[int, Range(1, 255)] = 51
    """Tells this group of hosts from others on the same network."""


class BgpPeerSpec(Form):
    """A router that is told where the address is."""

    address: IpAddress
    """Where it is."""
    asn: Annotated[int, Range(1, 4_294_967_295)]
    """Its autonomous system."""


class BgpSpec(Form):
    """How the address is announced to routers."""

    asn: Annotated[int, Range(1, 4_294_967_295)] = 65000
    """The autonomous system of the control planes."""
    peers: Annotated[tuple[BgpPeerSpec, ...], Filled()]
    """The routers."""


class KubeVipSpec(Form):
    """How the control planes themselves hold the address."""

    mode: Literal["arp", "bgp"] = "arp"
    """How the network learns who holds it."""
    interface: Interface | None = None
    """The interface that gets the address; that of the host's internal one if nothing is said."""
    bgp: BgpSpec | None = None
    """For `mode: bgp`."""

    def judged(self) -> KubeVipSpec:
        if self.mode == "bgp" and self.bgp is None:
            raise BadValue(
                "`mode: bgp` without `bgp`", "add `bgp: {peers: [{address: …, asn: …}]}`"
            )
        if self.mode == "arp" and self.bgp is not None:
            raise BadValue("`bgp` beside `mode: arp`", "write `mode: bgp`, or leave `bgp` out")
        return self


class EndpointSpec(Form):
    """Where the API server is reached.

    | kind | what is there | needs |
    |---|---|---|
    | `single` | the only control plane itself | one control plane, port 6443 |
    | `external` | a load balancer of yours | `address` or `domain` |
    | `keepalived` | keepalived and haproxy on the hosts of the role `loadbalancer` | `address` |
    | `haproxy`, `nginx` | a proxy on every worker, on its loopback address | port 6443 |
    | `kube-vip` | an address that the control planes hold themselves | `address`, port 6443 |
    """

    kind: EndpointKind | None = None
    """What stands in front of the control planes; `single` for one of them and `haproxy` for more,
    if nothing is said. It can't be changed while the cluster lives: who wants more control planes
    later writes `haproxy` with the first one already."""
    domain: DomainName | None = None
    """A name for it, which every host then knows by its hosts file."""
    address: IpAddress | None = None
    """The address of the load balancer, or the virtual one."""
    port: Port = 6443
    """The port."""
    keepalived: KeepalivedSpec = KeepalivedSpec()
    """For `kind: keepalived`."""
    kube_vip: KubeVipSpec = KubeVipSpec()
    """For `kind: kube-vip`."""
