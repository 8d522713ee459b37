"""Rules of the checks that hosts are put to."""

from __future__ import annotations

from collections.abc import Iterator

from kubexm.common.checks import CHECKS
from kubexm.common.nearest import did_you_mean
from kubexm.config.rules.rule import Declared, rule
from kubexm.document.findings import Finding


@rule("preflight-checks", "preflight")
def known_checks(cluster: Declared) -> Iterator[Finding]:
    """What is to be left out is there."""
    for number, name in enumerate(cluster.spec.preflight.skip):
        if name not in CHECKS:
            place = ("spec", "preflight", "skip", number)
            yield Finding(place, f"there is no check `{name}`", did_you_mean(name, CHECKS))


RULES = (known_checks,)
