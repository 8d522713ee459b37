"""Rules of the kernel's settings: the file may say more, and takes away nothing that pods need."""

from __future__ import annotations

from collections.abc import Iterator

from kubexm.config.rules.rule import Declared, rule
from kubexm.document.findings import Finding

FORWARDING = {4: "net.ipv4.ip_forward", 6: "net.ipv6.conf.all.forwarding"}
"""What lets packets of pods through a host, by family."""
_ALIAS = "net.ipv4.conf.all.forwarding"
"""The kernel takes it for the one of the table above."""
_BRIDGED = {4: "net.bridge.bridge-nf-call-iptables", 6: "net.bridge.bridge-nf-call-ip6tables"}
"""What lets services reach pods of the same host."""


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


RULES = (kernel_settings,)
