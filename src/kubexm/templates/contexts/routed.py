"""The network without a daemon: a bridge on each host, and routes to the others."""

from __future__ import annotations

from kubexm.common import layout
from kubexm.templates.context import Context, Template

CNI_CONFIG = f"{layout.CNI_CONFIG}/10-kubexm.conflist"
UNIT = "kubexm-routed.service"
SCRIPT = f"{layout.BINARIES}/kubexm-routed"


class RoutedCni(Context, frozen=True, kw_only=True):
    """How pods of a host get their addresses."""

    node: str
    """The name of this node."""
    networks: dict[str, tuple[str, ...]]
    """The networks of the pods of each node, by its name."""
    mtu: int = 0
    """The largest packet of a pod; that of the host if it is 0."""


class RoutedRoutes(Context, frozen=True, kw_only=True):
    """How a host reaches the pods of the others."""

    node: str
    """The name of this node."""
    networks: dict[str, tuple[str, ...]]
    """The networks of the pods of each node, by its name."""
    addresses: dict[str, tuple[str, ...]]
    """The addresses of each node, by its name; the first of the family of a network leads there."""
    pod_networks: tuple[str, ...]
    """The networks of all pods: what leaves them is masqueraded."""
    unit: str = UNIT
    """The unit that runs the script."""


class RoutedUnit(Context, frozen=True, kw_only=True):
    """The service that lays the routes."""

    script: str = SCRIPT
    """The script that does it."""


_NETWORKS: dict[str, tuple[str, ...]] = {
    "node1": ("10.233.64.0/24", "fd85:ee78:d8a6:8607::/64"),
    "node2": ("10.233.65.0/24", "fd85:ee78:d8a6:8608::/64"),
}

TEMPLATES = (
    Template(
        "routed/cni",
        RoutedCni,
        "json",
        "how pods of a host get their addresses",
        CNI_CONFIG,
        (
            RoutedCni(node="node1", networks=_NETWORKS, mtu=1400),
            RoutedCni(node="node1", networks={"node1": ("10.233.64.0/24",)}),
        ),
    ),
    Template(
        "routed/routes",
        RoutedRoutes,
        "script",
        "lays routes to the pods of other hosts",
        SCRIPT,
        (
            RoutedRoutes(
                node="node1",
                networks=_NETWORKS,
                addresses={"node1": ("10.0.0.11",), "node2": ("10.0.0.12", "fd00::12")},
                pod_networks=("10.233.64.0/18", "fd85:ee78:d8a6:8600::/56"),
            ),
            RoutedRoutes(
                node="node1",
                networks={"node1": ("10.233.64.0/24",)},
                addresses={"node1": ("10.0.0.11",)},
                pod_networks=("10.233.64.0/18",),
            ),
        ),
    ),
    Template(
        "systemd/routed",
        RoutedUnit,
        "unit",
        "the service of the routes to the pods of other hosts",
        f"{layout.UNITS}/{UNIT}",
        (RoutedUnit(),),
    ),
)
