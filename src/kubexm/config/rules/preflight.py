"""Rules of the checks that hosts are put to."""

from __future__ import annotations

from collections.abc import Iterator

from kubexm.common.checks import CHECKS, OTHER_CLUSTER
from kubexm.common.nearest import did_you_mean
from kubexm.config.rules.rule import Declared, rule
from kubexm.document.findings import Finding

_BROKEN = "a cluster that its hosts are taken away from is broken"


@rule("preflight-checks", "preflight")
def known_checks(cluster: Declared) -> Iterator[Finding]:
    """What is to be left out is there, and may be."""
    for number, name in enumerate(cluster.spec.preflight.skip):
        place = ("spec", "preflight", "skip", number)
        if name not in CHECKS:
            yield Finding(place, f"there is no check `{name}`", did_you_mean(name, CHECKS))
        elif name == OTHER_CLUSTER:
            yield Finding(place, f"`{name}` can't be left out", "take it out: " + _BROKEN)


RULES = (known_checks,)
