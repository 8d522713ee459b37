"""What follows from failures: hosts that are given up, work that stops, a run that failed.

A failure that its node tolerates costs the host, any other blocks what waits for it; the run's
policy says whether anything else may still start.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from kubexm.engine.topology import Unit
from kubexm.plan.node import DEFAULT_TOLERANCE
from kubexm.plan.policy import NO_HOST, FailureClass, HostGroup, OnFailure, Tolerance
from kubexm.plan.records import UnitDone
from kubexm.plan.result import Cause

ONE_MUST_DO_IT = Tolerance(unreachable=NO_HOST)
"""A `one_of` node that nobody could run was not done, however many hosts it might have had."""


class Toll(msgspec.Struct, frozen=True):
    """What a failure costs: its host, or the success of the run, or both.

    Along same-host edges every cause is handed on, at barriers only one that blocks.
    """

    cause: Cause
    loses: bool
    blocks: bool


class Losses:
    """Everything that went wrong in one walk."""

    def __init__(
        self,
        policy: OnFailure,
        groups: Sequence[HostGroup],
        hosts: frozenset[str],
        *,
        on_lost: Callable[[str, Cause], None],
        on_halt: Callable[[Cause], None],
    ) -> None:
        self.policy = policy
        self.unscathed = True
        """Whether nothing has gone wrong that could hold back a unit."""
        self.quarantined: dict[str, Cause] = {}
        self.failure: Cause | None = None
        """The first failure that nothing tolerates."""
        self.halt: Cause | None = None
        """Why nothing new starts."""
        self._groups = groups
        self._hosts = hosts
        self._on_lost = on_lost
        self._on_halt = on_halt

    def restore(self, quarantined: Mapping[str, Cause], halted: Cause | None) -> None:
        """What an earlier life of this run had lost."""
        self.halt = self.failure = halted
        self.unscathed = halted is None
        for host, cause in quarantined.items():
            self._give_up(host, cause)

    def is_lost(self, host: str) -> bool:
        return host in self.quarantined

    def cause_for(self, unit: Unit) -> Cause | None:
        """Why a unit can't run anywhere any more."""
        spec = unit.node.spec
        if not spec.one_of:
            return self.quarantined.get(unit.host)
        lost = [self.quarantined.get(host) for host in spec.hosts]
        return lost[0] if all(lost) else None

    def weigh(self, unit: Unit, failure: FailureClass, message: str) -> Toll | None:
        """Decide what follows from a unit's failure; nothing does before `suffer`."""
        node, spec = unit.node, unit.node.spec
        if spec.ignore_errors:
            return None
        if unit.host in self.quarantined and not spec.one_of:
            node.tolerated.add(unit.host)
            return None
        cause = Cause(node.id, unit.host, message, failure)
        tolerated = self._tolerates(unit, failure)
        if tolerated:
            node.tolerated.add(unit.host)
        else:
            unit.cause = unit.cause or cause
            unit.blocks = True
        lost = (tolerated or failure == "unreachable") and unit.host not in self.quarantined
        return Toll(cause, loses=lost, blocks=not tolerated)

    def weigh_absence(self, unit: Unit, cause: Cause) -> Toll:
        """Decide what follows from a unit that another's failure holds back.

        Where its own host is not lost, others can't do without it, and the run is no success.
        """
        here = unit.node.spec.one_of or unit.host not in self.quarantined
        unit.cause = unit.cause or cause  # a hook hands on the failure of its scope
        unit.blocks = not unit.released and (unit.blocks or here)
        return Toll(cause, loses=False, blocks=unit.blocks)

    def suffer(self, toll: Toll) -> None:
        """Let follow what has to follow from a failure that is on record."""
        if toll.loses:
            self.lose(toll.cause.host, toll.cause)
        if toll.blocks:
            self._trip(toll.cause)

    def _tolerates(self, unit: Unit, failure: FailureClass) -> bool:
        node = unit.node
        count = node.failures[failure] = node.failures.get(failure, 0) + 1
        default = ONE_MUST_DO_IT if node.spec.one_of else DEFAULT_TOLERANCE
        return (node.spec.tolerance or default).of(failure).admits(count, len(node.units))

    def recall(self, unit: Unit, record: UnitDone) -> None:
        """What followed from a unit's failure in an earlier life follows from it now."""
        result, node = record.result, unit.node
        if result.failure is None:
            if result.cause is not None:
                unit.cause = result.cause
                self._block(unit, record.blocks)
            return
        if record.quarantines or record.blocks:
            node.failures[result.failure] = node.failures.get(result.failure, 0) + 1
        cause = Cause(node.id, unit.host, result.message, result.failure)
        if record.quarantines and unit.host not in self.quarantined:
            self._give_up(unit.host, cause)
        if record.blocks:
            unit.cause = unit.cause or cause
            self._block(unit, True)
        elif not node.spec.ignore_errors:
            node.tolerated.add(unit.host)

    def inherit(self, parent: Unit, child: Unit, cause: Cause) -> None:
        """What holds back a unit's child holds back what follows the unit."""
        parent.cause = parent.cause or cause
        # A child that is lost with its host takes along a parent that is not on that host.
        apart = parent.node.spec.one_of or child.host != parent.host
        self._block(parent, child.blocks or apart)

    def _block(self, unit: Unit, blocks: bool) -> None:
        unit.blocks = unit.blocks or blocks
        if blocks and unit.cause is not None:
            self._trip(unit.cause)

    def lose(self, host: str, cause: Cause) -> None:
        """Go on without this host."""
        self._give_up(host, cause, self._on_lost)

    def _give_up(
        self, host: str, cause: Cause, tell: Callable[[str, Cause], None] | None = None
    ) -> None:
        self.quarantined[host] = cause
        self.unscathed = False
        if tell is not None:
            tell(host, cause)
        for group in self._groups:
            left = sum(1 for name in group.hosts if name not in self.quarantined)
            if host in group.hosts and left < group.minimum:
                message = f"group `{group.name}` has {left} hosts left, needs {group.minimum}"
                self._stop(Cause(cause.node, host, f"{message}: {cause.message}", cause.failure))
        if self._hosts and self._hosts <= self.quarantined.keys():
            self._trip(Cause(cause.node, host, f"no host is left: {cause.message}", cause.failure))

    def _trip(self, cause: Cause) -> None:
        """A failure that nothing tolerates."""
        if self.failure is None:
            self.failure = cause
        if self.policy != "isolate":
            self._stop(cause)

    def _stop(self, cause: Cause) -> None:
        """Start nothing new but the hooks that follow a failure."""
        if self.halt is None:
            self.halt = cause
            self.unscathed = False
            self.failure = self.failure or cause
            self._on_halt(cause)
