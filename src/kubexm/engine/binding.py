"""Units that run on one of several hosts: which, and whether they may still go elsewhere."""

from __future__ import annotations

from collections.abc import Callable

from kubexm.engine.commits import Commits
from kubexm.engine.earlier import Earlier
from kubexm.engine.failures import Failure
from kubexm.engine.losses import Losses
from kubexm.engine.topology import Unit
from kubexm.plan.records import UnitBound
from kubexm.plan.result import Cause


class Binding:
    """Binds `one_of` units when they start; they rebind while nothing has run."""

    def __init__(
        self, losses: Losses, earlier: Earlier, commits: Commits, now: Callable[[], float]
    ) -> None:
        self._losses = losses
        self._earlier = earlier
        self._commits = commits
        self._now = now

    def bind(self, unit: Unit) -> Cause | None:
        """Choose the first candidate that is not lost; a cause if it ran on one that is."""
        earlier = self._earlier.host_of(unit)
        candidates = [host for host in unit.node.spec.hosts if not self._losses.is_lost(host)]
        if earlier is not None and self._losses.is_lost(earlier) and self._earlier.intended(unit):
            unit.host = earlier
            return self._losses.quarantined[earlier]
        chosen = earlier if earlier in candidates else candidates[0]
        if unit.host != chosen:
            unit.host = chosen
            self._commits.append(UnitBound(at=self._now(), node=unit.node.id, host=chosen))
        return None

    def may_go_elsewhere(self, unit: Unit, failure: Failure) -> bool:
        """Whether its host was lost before anything ran, and there are others."""
        if failure.failure != "unreachable":
            return False
        if not unit.node.spec.one_of or unit.ran or self._earlier.intended(unit):
            return False
        others = [host for host in unit.node.spec.hosts if host != unit.host]
        return not all(self._losses.is_lost(host) for host in others)
