"""Rules of the kernel's settings: the file may say more, and takes away nothing that pods need."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kubexm.config.rules.rule import Declared, rule
from kubexm.document.findings import Finding

FORWARDING = {4: "net.ipv4.ip_forward", 6: "net.ipv6.conf.all.forwarding"}
"""What lets packets of pods through a host, by family."""
_ALIAS = "net.ipv4.conf.all.forwarding"
"""The kernel takes it for the one of the table above."""
_BRIDGED = {4: "net.bridge.bridge-nf-call-iptables", 6: "net.bridge.bridge-nf-call-ip6tables"}
"""What lets services reach pods of the same host."""
NODE_PORTS = "service-node-port-range"
"""The flag of the API server that says at which ports of hosts it has services answer."""
_USUAL_NODE_PORTS = "30000-32767"
_PORTS = re.compile(r"([0-9]{1,5})(?:([-+])([0-9]{1,5}))?")
_LAST_PORT = (1 << 16) - 1


def node_ports(cluster: Declared) -> str | None:
    """The ports of services on hosts, as the kernel writes a range; None if it is none."""
    written = cluster.spec.kubernetes.api_server.extra_args.get(NODE_PORTS, _USUAL_NODE_PORTS)
    found = _PORTS.fullmatch(written.strip())
    if found is None:
        return None
    first, sign, second = int(found[1]), found[2], int(found[3] or 0)
    last = second if sign == "-" else min(first + second, _LAST_PORT)
    if not 0 < first <= last <= _LAST_PORT:
        return None
    return f"{first}-{last}" if first < last else f"{first}"


@rule("node-ports", "kubernetes.apiServer.extraArgs")
def node_port_range(cluster: Declared) -> Iterator[Finding]:
    """The ports of services are a range of ports."""
    if node_ports(cluster) is None:
        place = ("spec", "kubernetes", "apiServer", "extraArgs", NODE_PORTS)
        found = cluster.spec.kubernetes.api_server.extra_args[NODE_PORTS]
        message = f"found `{found}`, want a range of ports, each from 1 to {_LAST_PORT}"
        yield Finding(place, message, f"write both ends, such as `{_USUAL_NODE_PORTS}`")


@rule("kernel-settings", "system.sysctl", "network.podCIDR")
def kernel_settings(cluster: Declared) -> Iterator[Finding]:
    """Packets of pods go on."""
    families = {network.version for network in cluster.pods}
    needed = {table[family] for family in families for table in (FORWARDING, _BRIDGED)}
    needed |= {_ALIAS} if 4 in families else set()
    for key, value in cluster.spec.system.sysctl.items():
        if key in needed and value.strip() != "1":
            message = f"found `{value}`, want `1`: else no pod reaches another"
            yield Finding(("spec", "system", "sysctl", key), message, "leave it out")


RULES = (kernel_settings, node_port_range)
