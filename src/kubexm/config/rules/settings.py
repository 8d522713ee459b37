"""Rules of certificates, names and add-ons."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

from kubexm.config.rules.rule import Declared, rule
from kubexm.document.findings import Finding


@rule("certificate-duration", "kubernetes.certificates")
def certificate_duration(cluster: Declared) -> Iterator[Finding]:
    """No certificate outlives its authority."""
    certificates = cluster.spec.kubernetes.certificates
    if certificates.duration > certificates.authority_duration:
        message = "`duration` is longer than `authorityDuration`"
        hint = "no certificate is good for longer than its authority: write less"
        yield Finding(("spec", "kubernetes", "certificates", "duration"), message, hint)


@rule("node-local-address", "dns", "network.podCIDR", "network.serviceCIDR", "hosts")
def node_local_address(cluster: Declared) -> Iterator[Finding]:
    """The cache of names has an address of its own."""
    local = cluster.spec.dns.node_local
    if not local.enabled:
        return
    found, place = ipaddress.ip_address(local.address), ("spec", "dns", "nodeLocal", "address")
    hint = "leave it out, or write one such as `169.254.25.10`"
    for network in (*cluster.pods, *cluster.services):
        if found in network:
            yield Finding(place, f"`{local.address}` is in {network}", hint)
    for member in cluster.members:
        if local.address in (member.address, *member.internal):
            yield Finding(place, f"`{local.address}` is host `{member.name}`", hint)


@rule("addon-names", "addons")
def addon_names(cluster: Declared) -> Iterator[Finding]:
    """Every add-on has a name of its own."""
    first: dict[str, int] = {}
    for number, addon in enumerate(cluster.spec.addons):
        if (other := first.setdefault(addon.name, number)) != number:
            place = ("spec", "addons", number, "name")
            hint = f"entry {other} has it already"
            yield Finding(place, f"the add-on `{addon.name}` is there twice", hint)


RULES = (certificate_duration, node_local_address, addon_names)
