"""What must be true of any run, worked out from the plan and the account of the run alone.

Nothing here knows how the engine works. `life` says how a unit ends that is left alone, `Tale`
orders what happened by unit, `Failures` weighs the failures in the order they happened, `Slots`
counts who held what. All by brute force: the words of docs/explanation, on how a run is scheduled
and on what a failure costs, without any shortcut.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from tests.engine.random_graphs import Role, Scenario, Script
from tests.engine.world import POLL, Moment, Story
from tests.unit_order import Order, units_of, waits_for

from kubexm.engine.losses import ONE_MUST_DO_IT
from kubexm.plan import Cause, ExecutionFragment, ExecutionNode, HostResult, build
from kubexm.plan.node import ANY_HOST, DEFAULT_TOLERANCE, Hook
from kubexm.plan.policy import FailureClass
from kubexm.plan.records import AnyRecord, Quarantined, Unit, UnitDone
from kubexm.plan.result import Status
from kubexm.plan.validation import inside

UNDO = "@undo/"
CHANGING: tuple[Role, ...] = ("plain", "probed", "minter")
CLASSES: dict[str, FailureClass] = {
    "failed": "failed",
    "bug": "failed",
    "look": "failed",
    "hangs": "failed",
    "refused": "refused",
    "unreachable": "unreachable",
    "dark": "unreachable",
    "gone": "unreachable",
}


@dataclass(frozen=True)
class Life:
    """How a unit that is left alone ends, and how long that takes."""

    end: FailureClass | None = None
    satisfied: bool = False
    attempts: int = 1
    seconds: float = 0.0

    @property
    def done(self) -> bool:
        """It ran and went well."""
        return self.end is None and not self.satisfied


def life(node: ExecutionNode, role: Role, script: Script, made: bool) -> Life:
    """Attempt after attempt until one goes well, or the policy says that it was the last."""
    if node.when is not None and not script.wanted:
        return Life(satisfied=True)
    attempts, seconds = 1, 0.0
    for fault in itertools.chain(script.faults, itertools.repeat(None)):
        end, spent = _attempt(node, role, script, fault, made)
        seconds += spent
        if end == "lost":
            continue  # no attempt
        if end in ("done", "satisfied"):
            return Life(None, end == "satisfied", attempts, seconds)
        failure = CLASSES[end]
        if attempts >= node.retry.attempts or failure not in node.retry.retry_on:
            return Life(failure, False, attempts, seconds)
        seconds += node.retry.pause(attempts, 0.0)
        attempts += 1
    raise AssertionError("there is always another attempt")


def _attempt(
    node: ExecutionNode, role: Role, script: Script, fault: str | None, made: bool
) -> tuple[str, float]:
    """What one attempt comes to, and its seconds."""
    limit = node.timeout if node.timeout is not None else math.inf
    spent = 0.0
    if role in ("plain", "probed"):
        spent = script.look
        if spent > limit:
            return "failed", limit
        if role == "plain" and fault in ("look", "dark"):
            return fault, spent
        if made:
            return "satisfied", spent
    polls = script.polls if fault is None else 0
    total = spent + (polls + 1) * script.work + polls * (POLL + script.look)
    if fault == "hangs" or total > limit:
        return "failed", limit
    return fault or "done", total


class Tale:
    """The account of a run, by unit."""

    def __init__(self, story: Story) -> None:
        self.story = story
        self.scenario: Scenario = story.scenario
        self.trace = story.trace
        self.nodes: dict[str, ExecutionNode] = dict(story.scenario.graph.nodes)
        self.waits: Order = dict(waits_for(story.scenario.graph))
        self.children: dict[Unit, set[Unit]] = {}
        self.parent: dict[Unit, Unit] = {}
        for moment in self.trace:
            if moment.what == "expanded":
                self._grow(self.unit(moment), moment.more)
        self.started = self._first("started")
        self.final = self._first("final")

    def unit(self, moment: Moment) -> Unit:
        """Whose moment it is, as the plan knows it."""
        node = self.nodes[moment.node]
        return node.id, ANY_HOST if node.one_of else moment.host

    def _grow(self, parent: Unit, fragment: ExecutionFragment) -> None:
        graph = build(
            "fragment",
            fragment.nodes,
            joins=fragment.joins,
            hosts=self.scenario.graph.hosts,
            pools=self.scenario.graph.pools,
        )
        self.nodes.update(graph.nodes)
        for unit, before in waits_for(graph).items():
            self.waits[unit] = before | {parent}
            self.parent[unit] = parent
            self.children.setdefault(parent, set()).add(unit)

    def _first(self, what: str) -> dict[Unit, int]:
        found: dict[Unit, int] = {}
        for at, moment in enumerate(self.trace):
            if moment.what == what and not moment.node.startswith(UNDO):
                found.setdefault(self.unit(moment), at)
        return found

    def of(self, unit: Unit, *whats: str) -> Iterator[tuple[int, Moment]]:
        """All moments of this kind in the unit's own life."""
        for at, moment in enumerate(self.trace):
            if moment.what in whats and moment.node in self.nodes and self.unit(moment) == unit:
                yield at, moment

    @cached_property
    def results(self) -> dict[Unit, HostResult]:
        """What each unit came to, before anything was undone."""
        return {unit: self.trace[at].more for unit, at in self.final.items()}

    @cached_property
    def recorded(self) -> dict[Unit, int]:
        """When each unit's end was decided; that it is known to be final may come later."""
        return {
            (moment.more.node, moment.more.host): at
            for at, moment in reversed(list(enumerate(self.trace)))
            if isinstance(moment.more, UnitDone) and not moment.more.node.startswith(UNDO)
        }

    @cached_property
    def upstream(self) -> Order:
        """For each unit all that it stands on, what that has expanded to included."""
        self._known: dict[Unit, frozenset[Unit]] = {}
        return {unit: self._before(unit) for unit in self.waits}

    def _before(self, unit: Unit) -> frozenset[Unit]:
        if unit not in self._known:
            direct, parent = self.waits[unit], self.parent.get(unit)
            # What the parent has grown to are the unit's own peers: not all of it comes before.
            above = (self._before(parent),) if parent is not None else ()
            self._known[unit] = direct.union(*above, *map(self._whole, direct - {parent}))
        return self._known[unit]

    def _whole(self, unit: Unit) -> frozenset[Unit]:
        """A unit with all before it and all that it has grown to."""
        grown = [self._whole(child) for child in self.children.get(unit, ())]
        return frozenset([unit]).union(self._before(unit), *grown)

    def may_start(self, unit: Unit) -> float:
        """When all that it waits for was done with; its parent only has to be final."""
        parent = self.parent.get(unit)
        before = [self.released(other) for other in self.waits[unit] if other != parent]
        above = [self.final.get(parent, math.inf)] if parent is not None else []
        return max((*before, *above), default=-1)

    def released(self, unit: Unit) -> float:
        """When what waits for this unit may go on; minters hold up nobody."""
        if self.role(unit) == "minter":
            return self.may_start(unit)
        if self._comes_last(unit):
            return max(self.may_start(unit), self.halted)
        if unit not in self.final:
            return math.inf
        grown = (self.released(child) for child in self.children.get(unit, ()))
        return max((self.final[unit], *grown))

    def _comes_last(self, unit: Unit) -> bool:
        """Whether it is a hook whose turn comes when all is undone, and holds up nobody."""
        hook = self.nodes[unit[0]].hook
        if hook is None or hook.moment != "always" or self.scenario.policy != "rollback":
            return False
        begun = self.started.get(unit, self.recorded.get(unit, math.inf))
        return self.halted < begun

    @cached_property
    def halted(self) -> float:
        """From when on nothing new starts."""
        halt = Failures(self).halt
        return halt.at if halt is not None else math.inf

    def role(self, unit: Unit) -> Role:
        return self.scenario.role(unit[0])

    def host(self, unit: Unit) -> str:
        """The host it ran on, or would have."""
        return self.results[unit].host_name if unit in self.results else unit[1]

    def life(self, unit: Unit) -> Life:
        node, host = self.nodes[unit[0]], self.host(unit)
        script = self.scenario.script(node.id, host)
        return life(node, self.role(unit), script, script.made)

    def providers(self, unit: Unit) -> Iterator[Unit]:
        """The units that leave what this one needs."""
        for need in self.nodes[unit[0]].step.needs:
            for id, node in self.scenario.graph.nodes.items():
                for key in node.step.provides:
                    if key.name != need:
                        continue
                    yield (id, unit[1]) if key.scope == "host" else next(iter(units_of(node)))


@dataclass(frozen=True)
class Halt:
    """From here on nothing new starts."""

    at: int
    time: float
    causes: frozenset[Unit]


class Failures:
    """What follows from each failure, in the order they happened."""

    def __init__(self, tale: Tale) -> None:
        self.tale = tale
        self.lost: dict[str, int] = {}
        self.lost_by: dict[str, Unit] = {}
        self.tolerated: dict[str, set[str]] = {}
        self.blocking: set[Unit] = set()
        self.orphaned: dict[Unit, Unit] = {}
        """Lost with their host; and who has grown them, is elsewhere, and can't do without."""
        self.all_lost = False
        self.halt: Halt | None = None
        self._counts: dict[tuple[str, FailureClass], int] = {}
        for host in tale.scenario.unreachable:
            self._lose(host, ("@connect", host), -1)
        for at, moment in enumerate(tale.trace):
            if moment.what == "recorded":
                self._take(at, moment.more)

    def _take(self, at: int, record: AnyRecord) -> None:
        if isinstance(record, Quarantined) and record.host not in self.lost:
            self._lose(record.host, self.culprit(record.cause), at)
        elif isinstance(record, UnitDone) and not record.node.startswith(UNDO):
            self._weigh(at, record)

    def _weigh(self, at: int, record: UnitDone) -> None:
        unit = record.node, record.host
        if record.result.failure is not None:
            self._weigh_failure(unit, record.result, record.result.failure, at)
        elif record.result.cause is not None:
            self._weigh_hold(unit, record.result, at)

    def _weigh_failure(
        self, unit: Unit, result: HostResult, failure: FailureClass, at: int
    ) -> None:
        node, host = self.tale.nodes[unit[0]], result.host_name
        if node.ignore_errors:
            return
        tolerated = host in self.lost and not node.one_of
        if not tolerated:
            tolerated = self._tolerates(node, failure)
            if (tolerated or failure == "unreachable") and host not in self.lost:
                self._lose(host, unit, at)
        if tolerated:
            self.tolerated.setdefault(node.id, set()).add(host)
        else:
            self._block(unit, at)

    def _tolerates(self, node: ExecutionNode, failure: FailureClass) -> bool:
        """Unless the plan says otherwise a lost host is, but not the one that stands for all."""
        count = self._counts[node.id, failure] = self._counts.get((node.id, failure), 0) + 1
        default = ONE_MUST_DO_IT if node.one_of else DEFAULT_TOLERANCE
        return (node.tolerance or default).of(failure).admits(count, len(units_of(node)))

    def _weigh_hold(self, unit: Unit, result: HostResult, at: int) -> None:
        """Held back where its host is still there, and nothing before it was: a failure too."""
        if self.reaching(unit) or self.halt is not None or self.tale.role(unit) == "minter":
            return
        if self.tale.nodes[unit[0]].one_of or result.host_name not in self.lost:
            self._block(unit, at)
        elif (above := self._elsewhere(unit, result.host_name)) is not None:
            self.orphaned[unit] = above
            self._block(unit, at)

    def _elsewhere(self, unit: Unit, host: str) -> Unit | None:
        """The nearest unit that has grown this one and does not stand or fall with this host."""
        above = self.tale.parent.get(unit)
        if above is None or self.tale.nodes[above[0]].one_of or self.tale.host(above) != host:
            return above
        return self._elsewhere(above, host)

    def _block(self, unit: Unit, at: int) -> None:
        self.blocking.add(unit)
        if self.tale.scenario.policy != "isolate":
            self._stop(unit, at)

    def _stop(self, unit: Unit, at: int) -> None:
        if self.halt is None:
            self.halt = Halt(at, self.time(at), frozenset([unit, *self.roots(unit)]))

    def _lose(self, host: str, unit: Unit, at: int) -> None:
        self.lost[host] = at
        self.lost_by[host] = unit
        for group in self.tale.scenario.graph.groups:
            left = sum(name not in self.lost for name in group.hosts)
            if host in group.hosts and left < group.minimum:
                self._stop(unit, at)
        if all(name in self.lost for node in self.tale.scenario.graph for name in node.hosts):
            self.all_lost = True
            if self.tale.scenario.policy != "isolate":
                self._stop(unit, at)

    def time(self, at: int) -> float:
        """When that was; hosts may be lost before the first moment."""
        return self.tale.trace[at].at if at >= 0 else 0.0

    def culprit(self, cause: Cause) -> Unit:
        """The unit that a cause names."""
        node = self.tale.nodes.get(cause.node)
        return cause.node, ANY_HOST if node is not None and node.one_of else cause.host

    def reaching(self, unit: Unit) -> set[Unit]:
        """The failures that hold this unit back along the edges.

        A minter's own failure is met by those who ask for its value, not by all behind it.
        """
        return {
            failed
            for failed in self.tale.upstream[unit] & self.blocking
            if not self._minter_failed(failed) and not self._is_peer(unit, failed)
        }

    def _minter_failed(self, unit: Unit) -> bool:
        return self.tale.role(unit) == "minter" and self.tale.results[unit].failure is not None

    def _is_peer(self, unit: Unit, orphan: Unit) -> bool:
        """Whether the same unit has grown both: what one of its own lost counts beyond it."""
        above, parent = self.orphaned.get(orphan), self.tale.parent.get(unit)
        if above is None or parent is None:
            return False
        return parent == above or self._is_peer(parent, orphan)

    def roots(self, unit: Unit) -> set[Unit]:
        """Whom a unit held back by this one may name."""
        result = self.tale.results.get(unit)
        cause = result.cause if result is not None else None
        return {unit} if cause is None else {self.culprit(cause)}

    def lost_host_of(self, unit: Unit, at: float) -> str | None:
        """A host for whose loss before this moment the unit can't run."""
        node = self.tale.nodes[unit[0]]
        candidates = node.hosts if node.one_of else (unit[1],)
        lost = [host for host in candidates if self.lost.get(host, math.inf) < at]
        return lost[0] if len(lost) == len(candidates) else None


def worst(hosts: Iterable[HostResult], tolerated: Container[str]) -> Status:
    """What a node comes to by its hosts: what is tolerated counts only as having started."""
    counted = [h for h in hosts if not (h.status == "Failed" and h.host_name in tolerated)]
    statuses = {"Success" if host.satisfied else host.status for host in counted}
    for status in ("Failed", "Cancelled", "RolledBack"):
        if status in statuses:
            return status
    return "Success" if "Success" in statuses or len(counted) < len(list(hosts)) else "Skipped"


class Hooks:
    """When a hook is due, by what became of its scope."""

    def __init__(self, failures: Failures) -> None:
        self._failures = failures
        self._tale = failures.tale

    def answers(self, unit: Unit, hook: Hook) -> set[str]:
        """What was right to find when everything before it was final, or when it started.

        In between other hosts may be lost, and those don't count.
        """
        tale = self._tale
        begun = tale.started.get(unit, tale.recorded[unit])
        return {self._answer(unit, hook, at) for at in (tale.may_start(unit), begun)}

    def _answer(self, unit: Unit, hook: Hook, at: float) -> str:
        results = list(self._results(unit, hook, at))
        if not any(
            r.satisfied or r.status in ("Success", "Failed", "Cancelled") for _, r in results
        ):
            return "not entered"
        good = all(self._good(node, result) for node, result in results if node.hook is None)
        wanted = {"post": good, "on-failure": not good, "always": True}
        return "due" if wanted[hook.moment] else "not due"

    def _good(self, node: ExecutionNode, result: HostResult) -> bool:
        """It went well, or did not because of a hook, which triggers no other."""
        if node.ignore_errors or result.satisfied or result.status == "Success":
            return True
        culprit = self._tale.nodes.get(result.cause.node) if result.cause is not None else None
        return culprit is not None and culprit.hook is not None

    def _results(
        self, unit: Unit, hook: Hook, at: float
    ) -> Iterator[tuple[ExecutionNode, HostResult]]:
        for other, result in self._tale.results.items():
            node = self._tale.nodes[other[0]]
            if not inside(node.id, hook.scope):
                continue
            if node.hook is not None and node.hook.moment != "pre":
                continue  # what comes before a scope enters it; no other hook counts
            here = other[1] in (unit[1], ANY_HOST) or f"/@{unit[1]}/" in node.id
            if not hook.barrier and not here:
                continue
            if self._tale.role(other) == "minter" and not result.attempts:
                continue  # nobody asked it in time
            if self._tale.final[other] <= at < self._failures.lost.get(result.host_name, math.inf):
                yield node, result

    def held_by_its_own(self, unit: Unit, hook: Hook) -> bool:
        """By a failure before it in the same hook."""
        tale = self._tale
        for other in tale.waits[unit]:
            if not self._belong_together(other[0], unit[0], hook):
                continue
            result = tale.results[other]
            bad = not (result.satisfied or result.status == "Success")
            counts = other[0] in tale.nodes[unit[0]].after_same_host or not self._is_gone(other)
            if bad and counts and not tale.nodes[other[0]].ignore_errors:
                return True
        return False

    def _is_gone(self, unit: Unit) -> bool:
        """Whether its failure was tolerated, or it was lost with its host."""
        host = self._tale.host(unit)
        if self._tale.results[unit].failure is not None:
            return host in self._failures.tolerated.get(unit[0], ())
        return host in self._failures.lost

    def _belong_together(self, one: str, other: str, hook: Hook) -> bool:
        if self._tale.nodes[one].hook != hook:
            return False
        first = len(hook.scope) + 1
        return one[first:].split("/", maxsplit=1)[0] == other[first:].split("/", maxsplit=1)[0]

    def may_be_held_back(self, unit: Unit, hook: Hook) -> bool:
        failures = self._failures
        if failures.lost_host_of(unit, math.inf) is not None or self.held_by_its_own(unit, hook):
            return True
        if hook.moment != "post" and "not entered" not in self.answers(unit, hook):
            return False
        return failures.halt is not None or bool(failures.reaching(unit))


class Undo:
    """What has to be taken back, and in which order."""

    def __init__(self, tale: Tale, failures: Failures) -> None:
        self._tale = tale
        self._failures = failures
        self.changed = {unit for unit, result in tale.results.items() if result.changed}
        if failures.halt is not None:
            self.changed -= {unit for unit in self.changed if self._comes_last(unit)}
        self.is_due = failures.halt is not None and bool(self.changed)
        self._scopes = self._compensated()
        self.begun = {unit for unit in self.changed if self._moments(unit, "started")}

    def _comes_last(self, unit: Unit) -> bool:
        """Whether it is a hook that runs when all is undone."""
        hook, halt = self._tale.nodes[unit[0]].hook, self._failures.halt
        if hook is None or hook.moment != "always" or halt is None:
            return False
        return self._tale.started.get(unit, 0) > halt.at

    def _compensated(self) -> list[str]:
        """The outermost scopes with a compensation in which something changed."""
        found: list[str] = []
        given = {item.scope for item in self._tale.scenario.graph.compensations}
        for scope in sorted(given, key=len):
            touched = any(inside(unit[0], scope) for unit in self.changed)
            if touched and not any(inside(scope, outer) for outer in found):
                found.append(scope)
        return found

    def scope(self, unit: Unit) -> str | None:
        return next((scope for scope in self._scopes if inside(unit[0], scope)), None)

    def _moments(self, unit: Unit, what: str) -> list[tuple[int, Moment]]:
        """In the undo of the unit, or the compensation of its scope."""
        scope, host = self.scope(unit), self._tale.host(unit)
        return [
            (at, moment)
            for at, moment in enumerate(self._tale.trace)
            if moment.what == what
            and (
                (scope is None and (moment.node, moment.host) == (UNDO + unit[0], host))
                or (scope is not None and moment.node.startswith(f"{UNDO}{scope}/@compensate/"))
            )
        ]

    def start(self, unit: Unit) -> int:
        return min(at for at, _ in self._moments(unit, "started"))

    def ended(self, unit: Unit) -> int:
        return max(at for at, _ in self._moments(unit, "final"))

    def after(self, unit: Unit) -> Iterator[Unit]:
        """What changed later and stands on this unit."""
        for later in self.changed:
            apart = self.scope(unit) is None or self.scope(unit) != self.scope(later)
            if apart and unit in self._tale.upstream[later]:
                yield later

    def is_stopped(self, unit: Unit) -> bool:
        """By a host that was never there, or a failed undo of something that stands on it."""
        if self.scope(unit) is not None or self._tale.host(unit) in self._tale.scenario.unreachable:
            return True
        behind = (*self.after(unit), *self._roaming_behind(unit))
        return any(self._failed(later) for later in behind)

    def _roaming_behind(self, unit: Unit) -> Iterator[Unit]:
        """What an expander has added to run elsewhere knows of no single host of its neighbours.

        It is undone before all that stands before the expander's node, on whatever host, and
        after all that stands behind.
        """
        for later in self.changed:
            above = any(self._is_before(unit, parent) for parent in self._left_by(later))
            if above or any(self._is_before(parent, later) for parent in self._left_by(unit)):
                yield later

    def _left_by(self, unit: Unit) -> Iterator[Unit]:
        """The expanders that have added this unit, or one above it, to run elsewhere."""
        while (parent := self._tale.parent.get(unit)) is not None:
            node = self._tale.nodes[unit[0]]
            if node.one_of or node.hosts != (self._tale.host(parent),):
                yield parent
            unit = parent

    def _is_before(self, unit: Unit, later: Unit | None) -> bool:
        while later is not None:
            if unit[0] in self._nodes_before(later[0]):
                return True
            later = self._tale.parent.get(later)
        return False

    def _nodes_before(self, id: str) -> set[str]:
        """All nodes that this one follows, whether on the same hosts or not."""
        graph = self._tale.scenario.graph
        found: set[str] = set()
        line = [id]
        while line:
            vertex = self._tale.nodes.get(line[-1]) or graph.joins.get(line[-1])
            line.pop()
            edges = (*vertex.after, *vertex.after_same_host) if vertex is not None else ()
            line += [other for other in edges if other not in found]
            found.update(edges)
        return found

    def _failed(self, unit: Unit) -> bool:
        return any(moment.more.status == "Failed" for _, moment in self._moments(unit, "final"))

    def succeeded(self, unit: Unit) -> bool:
        """It was taken back: by its own undo, or by all of a compensation that concerns its host.

        What a compensation does on that host concerns it, and so does what it does elsewhere
        and not on that host at all.
        """
        host = self._tale.host(unit)
        ends = [(moment.node, moment.more) for _, moment in self._moments(unit, "final")]
        here = {node for node, end in ends if end.host_name == host}
        concerned = [end for node, end in ends if end.host_name == host or node not in here]
        return bool(ends) and all(e.satisfied or e.status == "Success" for e in concerned)
