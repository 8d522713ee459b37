"""Rules of certificates."""

from __future__ import annotations

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


RULES = (certificate_duration,)
