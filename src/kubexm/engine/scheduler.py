"""The scheduler: starts every unit the moment nothing holds it back, and says what follows.

It counts what each unit waits for, hands failures on along the edges, and knows nothing of what
a step does. The life of one unit is in `lifecycle`, slots are in `dispatch` and `limits`, edges
in `topology`, what follows from a failure in `losses`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Mapping

from kubexm.engine.bus import Bus
from kubexm.engine.dispatch import Dispatcher
from kubexm.engine.endings import Endings
from kubexm.engine.expansion import Expansion, checked_fragment
from kubexm.engine.failures import Ended, classify
from kubexm.engine.floor import Floor
from kubexm.engine.journal import Journal
from kubexm.engine.lifecycle import Finished, Lifecycle
from kubexm.engine.limits import Limits
from kubexm.engine.losses import Losses
from kubexm.engine.options import Options
from kubexm.engine.ports import EngineRuntime
from kubexm.engine.provision import Demand, Provision
from kubexm.engine.results import host_result
from kubexm.engine.topology import ACTIVE, FINAL, PENDING, READY, Gate, NodeState, Topology, Unit
from kubexm.engine.triggers import Scopes
from kubexm.engine.values import Values
from kubexm.engine.work import Work
from kubexm.plan import events
from kubexm.plan.events import ProducedValue
from kubexm.plan.fragment import ExecutionFragment
from kubexm.plan.graph import ExecutionGraph
from kubexm.plan.node import ANY_HOST, ExecutionNode, Hook
from kubexm.plan.policy import OnFailure
from kubexm.plan.records import AnyRecord, Quarantined, RunState, UnitBound, UnitDone
from kubexm.plan.result import Cause, node_status
from kubexm.step.contract import Step

MakeWork = Callable[[ExecutionNode], Work]
TURNS = 16
"""So many units may live in one task, one after the other, before the loop has its turn."""
CONNECT = "@connect"
"""Stands for a node in the cause of a host that could not be opened."""


class Scheduler:
    """One walk over one graph."""

    def __init__(
        self,
        graph: ExecutionGraph,
        runtime: EngineRuntime,
        options: Options,
        *,
        work: MakeWork,
        journal: Journal,
        state: RunState,
        bus: Bus,
        values: Values,
        durations: Mapping[str, float],
        policy: OnFailure,
        vital: frozenset[str] = frozenset(),
        durable: int = 0,
    ) -> None:
        """`vital` are the hosts of which not all may be lost."""
        self.topology = Topology(durations)
        self.losses = Losses(
            policy, graph.groups, vital, on_lost=self._go_on_without, on_halt=self._halt
        )
        self.cancelled: str | None = None
        self.expanded: list[Expansion] = []
        self._graph = graph
        self._runtime = runtime
        self._options = options
        self._work = work
        self._journal = journal
        self._state = state
        self._bus = bus
        self._values = values
        self._scopes = Scopes(self.topology.states, self.losses.is_lost)
        limits = Limits(options.parallelism, options.per_host, graph.pools)
        self._dispatcher = Dispatcher(limits, self._admit, self._launch)
        self._provision = Provision(self._dispatcher.offer)
        self._floor = Floor(self, self._dispatcher, runtime, options, values, bus)
        self._life = Lifecycle(self._floor)
        self._arrived: deque[Unit] = deque()
        self._opened: deque[Gate] = deque()
        self._awaiting: deque[tuple[int, Callable[[], None]]] = deque()
        self._durable = durable
        self._open = 0
        self._live: set[Unit] = set()
        self._endings = Endings(self._live)
        self._prepared: dict[str, Work | None] = {}
        self._deferred: list[Unit] = []
        self._vacant: asyncio.Task[None] | None = None
        self._heir: Unit | None = None
        self._defers_always = policy == "rollback"
        self._pumping = False
        self._broken: BaseException | None = None
        self._idle: asyncio.Future[None] | None = None

    # From outside.

    async def walk(
        self, *, quarantined: Mapping[str, Cause] | None = None, halted: Cause | None = None
    ) -> None:
        """Run until every unit is final, or nothing more may start and nothing runs."""
        self.losses.restore(quarantined or {}, halted)
        for host, message in self._runtime.unreachable.items():
            self._quarantine(host, Cause(CONNECT, host, message, "unreachable"))
        self._adopt(self.topology.add(self._graph.nodes, self._graph.joins))
        await self._drain()

    async def run_deferred(self) -> None:
        """Run the `always` hooks that had to wait for the rollback, the inner before the outer."""
        self._defers_always = False
        places = {id: number for number, id in enumerate(self.topology.states)}
        waves: dict[tuple[int, ...], list[Unit]] = {}
        for unit in self._deferred:
            waves.setdefault(_place(unit.node, places), []).append(unit)
        self._deferred.clear()
        for _, units in sorted(waves.items(), key=lambda wave: wave[0]):
            self._arrived.extend(units)
            await self._drain()

    def cancel(self, reason: str) -> None:
        """Start nothing new; end what runs when its grace is over."""
        if self.cancelled is None:
            self.cancelled = reason
            self._endings.begin(self._live, self._options.grace)
            self.pump()

    def broken(self, error: BaseException) -> None:
        """The journal is lost, or this engine wrong: nothing from now on would be known later."""
        if self._broken is None:
            self._broken = error
            self._awaiting.clear()
            self._floor.lose_journal(error)
            self.cancelled = self.cancelled or str(error)
            self._endings.begin(self._live, grace=0.0)
            self.pump()

    def durable(self, number: int) -> None:
        """The journal made everything up to this number durable."""
        self._durable = number
        self.pump()

    async def durably(self, record: AnyRecord) -> None:
        """Append a record when nothing runs, and wait until it can't be lost any more."""
        self.when_durable(record, lambda: None)
        await self._drain()

    async def _drain(self) -> None:
        self._idle = asyncio.get_running_loop().create_future()
        self.pump()
        try:
            await self._idle
        except asyncio.CancelledError:
            await self._abandon()
            raise
        finally:
            self._idle = None
            self._life.close()
        if self._broken is not None:
            raise self._broken
        self._finish_leftover()

    async def _abandon(self) -> None:
        """Whoever waits for this walk gave up: leave nothing behind that still runs."""
        self.cancelled = self.cancelled or "given up"
        self._endings.begin(self._live, grace=0.0)
        tasks = [unit.task for unit in self._live if unit.task is not None]
        await asyncio.gather(*tasks, return_exceptions=True)

    def pump(self) -> None:
        """Start all that can start; commit here if there is nothing else to do."""
        if self._pumping:
            return
        self._pumping = True
        try:
            self._start_what_can()
            while not self._dispatcher.busy and self._awaiting and self._journal.settle():
                self._start_what_can()
        except Exception as error:
            self.broken(error)
        finally:
            self._pumping = False
        self._check_idle()

    def _start_what_can(self) -> None:
        # Arrivals are a list and not calls of each other: a chain may be 100,000 units long.
        while True:
            while self._awaiting and self._awaiting[0][0] <= self._durable:
                self._awaiting.popleft()[1]()
            while self._arrived:
                self._arrive(self._arrived.popleft())
            self._dispatcher.pump()
            if not self._arrived:
                return

    def _check_idle(self) -> None:
        if self._idle is None or self._idle.done() or self._live or self._awaiting:
            return
        if self._open and self.cancelled is None:
            self._idle.set_exception(RuntimeError(f"nothing can start, yet {self._stuck()}"))
        else:
            self._idle.set_result(None)

    def _stuck(self) -> str:
        units = [unit for state in self.topology.states.values() for unit in state.units.values()]
        left = [unit for unit in units if not unit.released]
        return f"{self._open} units are open, among them {left[:1]!r}"

    # A unit's way in.

    def _adopt(self, states: list[NodeState], parent: Unit | None = None) -> None:
        """Make nodes part of the walk and start what waits for nothing."""
        for state in states:
            prepared = self._prepared.pop(state.id, None)
            state.work = prepared if prepared is not None else self._work(state.spec)
            state.parent = parent
            self._open += len(state.units)
        self._values.register(states)
        self._scopes.register(states)
        for state in states:
            for unit in state.units.values():
                unit.doubt = parent is not None and parent.doubt
                if not unit.waiting:
                    self._arrived.append(unit)

    def _arrive(self, unit: Unit) -> None:
        """Everything before this unit is final."""
        if self.cancelled is not None:
            return
        record = self._state.done.get(unit.key)
        hook = unit.node.spec.hook
        if record is not None and unit.result is None and self._still_counts(unit, record):
            self._replay(unit, record)
        elif hook is not None and hook.moment != "pre":
            self._arrive_at_hook(unit, hook)
        elif (cause := unit.cause or self.losses.halt or self.losses.cause_for(unit)) is not None:
            self._hold_back(unit, cause)
        else:
            self._make_ready(unit)

    def _make_ready(self, unit: Unit) -> None:
        if unit.node.work.minted and not unit.released:
            # It runs when somebody needs it; nobody waits for that but who does.
            self._provision.arm(unit)
            self._release(unit, None)
        else:
            self._dispatcher.offer(unit)

    def _still_counts(self, unit: Unit, record: UnitDone) -> bool:
        """Whether a unit that an earlier life of this run finished need not run again."""
        if record.result.status == "Cancelled":
            # A run on its way back ended it for good, a person only for the time being.
            return record.result.cause is not None and self.losses.policy == "rollback"
        if unit.node.work.minted:
            return True  # it stays made; who needs a fresh value will ask for one
        now = self._runtime.now()
        return all(value.expires is None or now < value.expires for value in record.values)

    def _replay(self, unit: Unit, record: UnitDone) -> None:
        unit.host = record.result.host_name
        unit.result = record.result
        self._keep_values(record.values)
        if unit.node.work.minted and record.result.failure is not None:
            self._release(unit, None)  # only those who ask for its value hear of it
        self.losses.recall(unit, record)
        self._conclude(unit, record.fragment, replayed=True)

    def _arrive_at_hook(self, unit: Unit, hook: Hook) -> None:
        answer = self._scopes.answer(unit, hook)
        cause = None
        if hook.moment == "post" or answer == "was not entered":
            cause = unit.cause
        if cause is None and hook.moment == "post":
            cause = self.losses.halt
        cause = cause or self.losses.cause_for(unit) or self._scopes.own_failure(unit, hook)
        if cause is not None:
            self._hold_back(unit, cause)
        elif answer != "is due":
            message = f"{hook.moment} is not due: the scope {answer}"
            self.finish(unit, Finished("Skipped", message, skipped=True, sign="="))
        elif self._comes_last(unit):
            self._defer(unit)
        else:
            self._make_ready(unit)

    def _comes_last(self, unit: Unit) -> bool:
        """Whether its turn is when all is undone."""
        hook = unit.node.spec.hook
        always = hook is not None and hook.moment == "always"
        return always and self._defers_always and self.losses.halt is not None

    def _defer(self, unit: Unit) -> None:
        unit.state = PENDING
        self._deferred.append(unit)
        self._release(unit, unit.cause)

    def _finish_leftover(self) -> None:
        """Minters that nobody needed."""
        if self.cancelled is not None:
            return
        for unit, wished in self._provision.leftover():
            if wished:
                self.finish(unit, Finished("Success", "would be made", changed=True, sign="+"))
            else:
                self.finish(unit, Finished("Skipped", "nobody needs it", skipped=True, sign="="))

    def wish(self, provider: Unit) -> None:
        """In a dry run: somebody would need this value."""
        self._provision.wish(provider)

    def demand(self, provider: Unit) -> Demand:
        """Run a provider, once for all who wait; resolved when it is final."""
        demand = self._provision.demand(provider)
        self.pump()
        return demand

    def _admit(self, unit: Unit) -> bool:
        """Whether a unit that waited for slots may still start; if not, it is dealt with."""
        if self.cancelled is not None:
            return False
        cause = self.losses.cause_for(unit)
        if self.losses.halt is not None and not _follows_failure(unit):
            cause = self.losses.halt
        if cause is None and unit.node.spec.one_of:
            cause = self._bind(unit)
        if cause is not None:
            self._hold_back(unit, cause)
            return False
        return self._has_more_to_do(unit)

    def _bind(self, unit: Unit) -> Cause | None:
        """Choose the first candidate that is not lost; a cause if it ran on one that is."""
        earlier = self._state.bound.get(unit.node.id)
        candidates = [host for host in unit.node.spec.hosts if not self.losses.is_lost(host)]
        if earlier is not None and self.losses.is_lost(earlier) and self.was_intended(unit):
            unit.host = earlier
            return self.losses.quarantined[earlier]
        chosen = earlier if earlier in candidates else candidates[0]
        if unit.host != chosen:
            unit.host = chosen
            record = UnitBound(at=self._runtime.now(), node=unit.node.id, host=chosen)
            self._journal.append(record, urgent=False)
        return None

    def _has_more_to_do(self, unit: Unit) -> bool:
        """False if a verdict made ahead says that the unit is satisfied."""
        verdict = self._life.foreseen(unit)
        if verdict is None or not verdict.satisfied:
            return True
        unit.started = self._runtime.now()
        unit.attempt = 1
        self.finish(unit, Finished("Skipped", verdict.reason, skipped=True, sign="="))
        return False

    def _launch(self, unit: Unit) -> None:
        unit.started = self._runtime.now()
        if not unit.node.started:
            unit.node.started = True
            if self._bus.heard:
                self._bus.publish(events.NodeStarted(at=unit.started, node=unit.node.id))
        self._live.add(unit)
        if self._vacant is not None:
            unit.task, self._vacant, self._heir = self._vacant, None, unit
        else:
            unit.task = asyncio.get_running_loop().create_task(self._carry(unit))

    async def _carry(self, unit: Unit) -> None:
        """Live a unit, and then the first that its end lets start: a task less, a turn less."""
        for left in reversed(range(TURNS)):
            finished = await self._life.live(unit)
            if left and unit.task is not None and not unit.task.cancelling():
                self._vacant = unit.task
            self.finish(unit, finished)
            heir, self._heir, self._vacant = self._heir, None, None
            if heir is None:
                return
            unit = heir

    def foresee(self, unit: Unit) -> Step | None:
        """The step of a unit whose precheck may be made before its turn."""
        if unit.cause is not None or unit.node.spec.hook is not None or unit.node.spec.one_of:
            return None
        if unit.key in self._state.done or self.was_intended(unit):
            return None
        return unit.node.work.foreseeable()

    def was_intended(self, unit: Unit) -> bool:
        """Whether an earlier life of this run was about to change something by this unit."""
        intended = self._state.intended
        return bool(intended) and unit.key in intended

    def stopping(self, unit: Unit) -> Ended | None:
        """Why this unit has to end, if it has to."""
        if self.cancelled is not None:
            return Ended(self.cancelled)
        halt = self.losses.halt
        if halt is None or self.losses.policy != "rollback" or _follows_failure(unit):
            return None
        return Ended(f"ended by {halt}", halt)

    # A unit's way out.

    def finish(self, unit: Unit, finished: Finished) -> None:
        """A unit's life is over: record it, and tell its dependents when that is durable."""
        # The journal may call back at once; nothing is started or ended before all is noted.
        nested, self._pumping = self._pumping, True
        self._live.discard(unit)
        self._dispatcher.give_back(unit)
        try:
            if self._rebinds(unit, finished):
                self._dispatcher.offer(unit)
            else:
                self._record(unit, finished)
        except Exception as error:
            self.broken(error)
        finally:
            self._pumping = nested
        self.pump()

    def _rebinds(self, unit: Unit, finished: Finished) -> bool:
        """A `one_of` unit whose host was lost before anything ran goes to the next."""
        failure = finished.failure
        if failure is None or failure.failure != "unreachable":
            return False
        if not unit.node.spec.one_of or unit.ran or self.was_intended(unit):
            return False
        others = [host for host in unit.node.spec.hosts if host != unit.host]
        if all(self.losses.is_lost(host) for host in others):
            return False
        message = self._runtime.redact(failure.message)
        self._quarantine(unit.host, Cause(unit.node.id, unit.host, message, "unreachable"))
        unit.attempt = 0
        return True

    def _record(self, unit: Unit, finished: Finished) -> None:
        fragment = None
        if finished.fragment is not None:
            try:
                fragment = self._prepare(unit, finished.fragment)
            except Exception as error:
                failure = classify(error)
                finished = Finished("Failed", failure.message, failure=failure)
        self._keep_values(finished.values)
        first = unit.result is None
        result = unit.result = host_result(unit, finished, self._runtime, self._options)
        toll = None
        if finished.failure is not None:
            toll = self.losses.weigh(unit, finished.failure.failure, result.message)
        elif finished.cause is not None:
            toll = self.losses.weigh_absence(unit, finished.cause)
        node, host = unit.key
        record = UnitDone(
            at=self._runtime.now(),
            node=node,
            host=host,
            result=result,
            quarantines=toll is not None and toll.loses,
            blocks=toll is not None and toll.blocks,
            values=finished.values,
            fragment=fragment,
        )
        urgent = bool(
            result.changed or result.status == "Failed" or finished.values or fragment is not None
        )
        number = self._journal.append(record, urgent=urgent)
        if toll is not None:
            self.losses.suffer(toll)
        if not urgent or number <= self._durable:
            self._conclude(unit, fragment, first=first)
        elif self._broken is None:
            self._awaiting.append((number, lambda: self._conclude(unit, fragment, first=first)))

    def when_durable(self, record: AnyRecord, then: Callable[[], None]) -> None:
        """Append a record and go on when it can't be lost any more."""
        if self._broken is not None:
            return
        number = self._journal.append(record, urgent=True)
        if number <= self._durable:
            then()
        else:
            self._awaiting.append((number, then))

    def _keep_values(self, values: Iterable[ProducedValue]) -> None:
        for value in values:
            if value.secret:
                self._runtime.conceal(value.value)
        self._values.keep(values)

    def _prepare(self, unit: Unit, fragment: ExecutionFragment) -> ExecutionFragment | None:
        """What an expander returned, checked and loaded; whatever is wrong is its failure."""
        checked = checked_fragment(unit, fragment, self._graph.pools)
        if checked is not None:
            self._values.refuse_rivals(checked.nodes)
            self._prepared.update((node.id, self._work(node)) for node in checked.nodes)
        return checked

    def _hold_back(self, unit: Unit, cause: Cause) -> None:
        """The unit will not run, because of another's failure."""
        if unit.result is not None:
            # It ran before and was asked for once more: what it did then stands.
            unit.state = FINAL
            self._provision.settle(unit, cause)
        else:
            unit.state = ACTIVE  # what follows from this may hold back all that is ready
            # If an earlier life of the run was killed amid this unit, its change may be there.
            changed = unit.node.work.changes and self.was_intended(unit)
            if changed:
                unit.host = self._state.bound.get(unit.node.id, unit.host)
            message = f"held back by {cause}"
            self._record(unit, Finished("Skipped", message, changed=changed, cause=cause))

    def _conclude(
        self,
        unit: Unit,
        fragment: ExecutionFragment | None,
        *,
        first: bool = True,
        replayed: bool = False,
    ) -> None:
        """The result is safe: let the world know, and whoever waits for it."""
        assert unit.result is not None
        unit.state = FINAL
        if self._bus.heard:
            now, node = self._runtime.now(), unit.node.id
            self._bus.publish(
                events.UnitFinished(
                    at=now, node=node, host=unit.host, result=unit.result, replayed=replayed
                )
            )
        if fragment is not None and first:
            self._expand(unit, fragment)
        if not unit.children:
            if first:
                self._leave_node(unit)
            if not unit.released:
                self._release(unit, unit.cause)
        self._provision.settle(unit)

    def _expand(self, unit: Unit, fragment: ExecutionFragment) -> None:
        """The unit counts as final for others when the nodes it added are."""
        node = unit.node
        self.expanded.append(Expansion(node.id, unit.host, fragment))
        if self._bus.heard:
            now = self._runtime.now()
            self._bus.publish(
                events.Expanded(at=now, node=node.id, host=unit.host, fragment=fragment)
            )
        states = self.topology.add(
            {node.id: node for node in fragment.nodes},
            {join.id: join for join in fragment.joins},
            beyond=unit.rank - node.duration,
        )
        unit.children = sum(len(state.units) for state in states)
        self._adopt(states, parent=unit)

    def _release(self, unit: Unit, cause: Cause | None) -> None:
        """Tell everything that waits for this unit."""
        unit.released = True
        self._open -= 1
        node = unit.node
        doubt = self._options.dry_run and _leaves_doubt(unit)
        for state in node.same_host:
            if (follower := state.units.get(unit.host)) is not None:
                self._count_down(follower, cause, unit.blocks, doubt)
        for follower in unit.also or ():
            self._count_down(follower, cause, unit.blocks, doubt)
        self._approach(node.gate, cause if unit.blocks else None, doubt)
        self._open_gates()
        if node.parent is not None:
            self._child_done(node.parent, unit, cause, doubt)

    def _child_done(self, parent: Unit, child: Unit, cause: Cause | None, doubt: bool) -> None:
        parent.doubt = parent.doubt or doubt
        if cause is not None:
            # First, for this may hold back the other children, and one of them is the last.
            self.losses.inherit(parent, child, cause)
        parent.children -= 1
        if not parent.children:
            self._leave_node(parent)
            self._release(parent, parent.cause)

    def _leave_node(self, unit: Unit) -> None:
        """Count a unit as finished; a node is when all its units are."""
        node = unit.node
        node.left -= 1
        if node.left or not self._bus.heard:
            return
        results = [unit.result for unit in node.units.values() if unit.result is not None]
        status = node_status(results, node.tolerated)
        now = self._runtime.now()
        self._bus.publish(events.NodeFinished(at=now, node=node.id, status=status))

    def _approach(self, gate: Gate, cause: Cause | None, doubt: bool) -> None:
        if cause is not None and gate.cause is None:
            gate.cause = cause
        gate.doubt = gate.doubt or doubt
        gate.waiting -= 1
        if not gate.waiting:
            self._opened.append(gate)

    def _open_gates(self) -> None:
        while self._opened:
            gate = self._opened.popleft()
            for further in gate.gates:
                self._approach(further, gate.cause, gate.doubt)
            for state in gate.nodes:
                for unit in state.units.values():
                    self._count_down(unit, gate.cause, True, gate.doubt)
            for unit in gate.units:
                self._count_down(unit, gate.cause, True, gate.doubt)

    def _count_down(self, unit: Unit, cause: Cause | None, blocks: bool, doubt: bool) -> None:
        if cause is not None:
            unit.cause = unit.cause or cause
            unit.blocks = unit.blocks or blocks
        if doubt:
            unit.doubt = True
        unit.waiting -= 1
        if not unit.waiting:
            self._arrived.append(unit)

    # What follows from failures.

    def _quarantine(self, host: str, cause: Cause) -> None:
        """A host is lost other than by a unit's result."""
        if not self.losses.is_lost(host):
            record = Quarantined(at=self._runtime.now(), host=host, cause=cause)
            self._journal.append(record, urgent=False)
            self.losses.lose(host, cause)

    def _go_on_without(self, host: str, cause: Cause) -> None:
        if self._bus.heard:
            now = self._runtime.now()
            self._bus.publish(events.HostQuarantined(at=now, host=host, cause=cause))
        for state in list(self.topology.states.values()):
            unit = state.units.get(host) or state.units.get(ANY_HOST)
            if unit is None or unit.host != host or not _waits_for_slots(unit):
                continue
            if state.spec.one_of:
                self._dispatcher.offer(unit)  # another candidate may have room
            else:
                self._hold_back(unit, cause)

    def _halt(self, cause: Cause) -> None:
        """Start nothing new but the hooks that follow a failure."""
        if self.losses.policy == "rollback":
            stopped = [unit for unit in self._live if self.stopping(unit) is not None]
            self._endings.begin(stopped, self._options.grace)
        for state in list(self.topology.states.values()):
            for unit in state.units.values():
                if not _waits_for_slots(unit):
                    continue
                if self._comes_last(unit):
                    self._defer(unit)
                elif not _follows_failure(unit):
                    self._hold_back(unit, cause)

    def log(self, unit: Unit, stream: str, text: str) -> None:
        """One line that a unit said."""
        line = events.LogLine(
            at=self._runtime.now(),
            node=unit.node.id,
            host=unit.host,
            stream=stream,
            text=self._runtime.redact(text),
        )
        if self._bus.heard:
            self._bus.publish(line)
        self._journal.log(line)


def _waits_for_slots(unit: Unit) -> bool:
    """It could start and has not."""
    return unit.state == READY and unit.wake is None


def _follows_failure(unit: Unit) -> bool:
    hook = unit.node.spec.hook
    return hook is not None and hook.moment in ("on-failure", "always")


def _leaves_doubt(unit: Unit) -> bool:
    result = unit.result
    return unit.doubt or (result is not None and (result.changed or result.sign == "?"))


def _place(node: NodeState, places: Mapping[str, int]) -> tuple[int, ...]:
    """Where a node stands in the order of the graph; what was added stands behind who added it."""
    around = _place(node.parent.node, places) if node.parent is not None else ()
    return (*around, places[node.id])
