"""The scheduler: starts every unit the moment nothing holds it back, and says what follows.

It counts what each unit waits for, hands failures on along the edges, and knows nothing of what
a step does. The life of one unit is in `lifecycle`, slots are in `dispatch` and `limits`, edges
in `topology`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime

from kubexm.engine.bus import Bus
from kubexm.engine.dispatch import Dispatcher
from kubexm.engine.expansion import checked_fragment
from kubexm.engine.failures import classify, clipped
from kubexm.engine.floor import Floor
from kubexm.engine.journal import Journal
from kubexm.engine.lifecycle import Finished, Lifecycle, found_satisfied
from kubexm.engine.limits import Limits
from kubexm.engine.options import Options
from kubexm.engine.ports import EngineRuntime
from kubexm.engine.topology import ACTIVE, FINAL, READY, Gate, NodeState, Topology, Unit
from kubexm.engine.triggers import Scopes, own_failure
from kubexm.engine.values import Values
from kubexm.engine.work import Work
from kubexm.plan import events
from kubexm.plan.fragment import ExecutionFragment
from kubexm.plan.graph import ExecutionGraph
from kubexm.plan.node import ANY_HOST, DEFAULT_TOLERANCE, ExecutionNode, Hook
from kubexm.plan.policy import FailureClass, OnFailure
from kubexm.plan.records import AnyRecord, Quarantined, RunState, UnitBound, UnitDone
from kubexm.plan.result import Cause, HostResult, node_status
from kubexm.step.contract import Step, Verdict

REAP_EVERY = 0.5
MakeWork = Callable[[ExecutionNode], Work]
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
        quarantined: dict[str, Cause],
        policy: OnFailure,
        durable: int = 0,
    ) -> None:
        self.topology = Topology(durations)
        self.halt: Cause | None = None
        self.failure: Cause | None = None
        self.cancelled: str | None = None
        self.expanded: list[ExecutionFragment] = []
        self.quarantined = quarantined
        self._graph = graph
        self._runtime = runtime
        self._options = options
        self._policy = policy
        self._work = work
        self._journal = journal
        self._state = state
        self._bus = bus
        self._values = values
        self._scopes = Scopes()
        limits = Limits(options.parallelism, options.per_host, graph.pools)
        self._dispatcher = Dispatcher(limits, self._admit, self._launch)
        floor = Floor(self, self._dispatcher, runtime, options, values, bus)
        self._life = Lifecycle(floor)
        self._arrived: deque[Unit] = deque()
        self._opened: deque[Gate] = deque()
        self._awaiting: deque[tuple[int, Callable[[], None]]] = deque()
        self._durable = durable
        self._open = 0
        self._live: set[Unit] = set()
        self._armed: dict[Unit, asyncio.Future[None] | None] = {}
        self._wished: set[Unit] = set()
        self._deferred: list[Unit] = []
        self._defers_always = policy == "rollback"
        self._pumping = False
        self._broken: BaseException | None = None
        self._idle: asyncio.Future[None] | None = None
        self._promised: asyncio.Future[None] | None = None

    # From outside.

    async def walk(self, halted: Cause | None = None) -> None:
        """Run until every unit is final, or nothing more may start and nothing runs."""
        self.halt = halted
        for host, message in self._runtime.unreachable.items():
            self._quarantine(host, Cause(CONNECT, host, message, "unreachable"))
        self._adopt(self.topology.add(self._graph.nodes, self._graph.joins))
        await self._drain()

    async def run_deferred(self) -> None:
        """Run the `always` hooks that had to wait for the rollback."""
        self._defers_always = False
        deferred, self._deferred = self._deferred, []
        self._arrived.extend(deferred)
        await self._drain()

    def cancel(self, reason: str) -> None:
        """Start nothing new; end what runs when its grace is over."""
        if self.cancelled is None:
            self.cancelled = reason
            self._end_running()
            self.pump()

    def broken(self, error: BaseException) -> None:
        """The journal is lost: nothing that happened from now on would be known later."""
        if self._broken is None:
            self._broken = error
            self._awaiting.clear()
            if self._promised is not None and not self._promised.done():
                self._promised.set_exception(error)
            # Also if it was cancelled before: whatever still had its grace has it no more.
            self.cancelled = self.cancelled or str(error)
            self._end_running()
            self.pump()

    def durable(self, number: int) -> None:
        """The journal made everything up to this number durable."""
        self._durable = number
        while self._awaiting and self._awaiting[0][0] <= number:
            self._awaiting.popleft()[1]()
        self.pump()

    async def _drain(self) -> None:
        self._idle = asyncio.get_running_loop().create_future()
        self.pump()
        try:
            await self._idle
        finally:
            self._idle = None
            self._life.close()
        if self._broken is not None:
            raise self._broken
        self._disarm()

    def pump(self) -> None:
        """Start all that can start; commit here if there is nothing else to do."""
        if self._pumping:
            return
        self._pumping = True
        try:
            self._start_what_can()
            while not self._dispatcher.busy and self._awaiting and self._journal.settle():
                self._start_what_can()
        finally:
            self._pumping = False
        self._check_idle()

    def _start_what_can(self) -> None:
        # Arrivals are a list and not calls of each other: a chain may be 100,000 units long.
        while True:
            while self._arrived:
                self._arrive(self._arrived.popleft())
            self._dispatcher.pump()
            if not self._arrived:
                return

    def _check_idle(self) -> None:
        if self._idle is None or self._idle.done() or self._live or self._awaiting:
            return
        if self._open and not self._deferred and self.cancelled is None:
            self._idle.set_exception(RuntimeError(f"nothing can start, yet {self._stuck()}"))
        else:
            self._idle.set_result(None)

    def _stuck(self) -> str:
        units = [unit for state in self.topology.states.values() for unit in state.units.values()]
        left = [unit for unit in units if unit.state != FINAL]
        return f"{len(left)} units are open, the first is {left[0]!r}"

    # A unit's way in.

    def _adopt(self, states: Iterable[NodeState], parent: Unit | None = None) -> None:
        """Make nodes part of the walk and start what waits for nothing."""
        fresh = list(states)
        for state in fresh:
            state.work = self._work(state.spec)
            state.parent = parent
            self._open += len(state.units)
        self._values.register(fresh)
        self._scopes.register(fresh)
        for state in fresh:
            for unit in state.units.values():
                if not unit.waiting:
                    self._arrived.append(unit)

    def _arrive(self, unit: Unit) -> None:
        """Everything before this unit is final."""
        if self.cancelled is not None:
            return
        unit.intended = unit.key in self._state.intended
        record = self._state.done.get(unit.key)
        hook = unit.node.spec.hook
        if record is not None and self._still_counts(unit, record):
            self._replay(unit, record)
        elif hook is not None and hook.moment != "pre":
            self._arrive_at_hook(unit, hook)
        elif unit.cause is not None:
            self._hold_back(unit, unit.cause)
        elif self.halt is not None:
            self._hold_back(unit, self.halt)
        elif (cause := self._quarantine_of(unit)) is not None:
            self._hold_back(unit, cause)
        elif unit.node.work.minted:
            self._arm(unit)
        else:
            self._dispatcher.offer(unit)

    def _still_counts(self, unit: Unit, record: UnitDone) -> bool:
        """Whether a unit that an earlier life of this run finished need not run again."""
        if record.result.status == "Cancelled":
            return False
        now = self._runtime.now()
        return all(value.expires is None or now < value.expires for value in record.values)

    def _replay(self, unit: Unit, record: UnitDone) -> None:
        unit.host = record.result.host_name
        unit.result = record.result
        self._values.keep(record.values)
        failure = record.result.failure
        if failure is not None and unit.node.work.minted:
            self._release(unit, None)  # only those who ask for its value hear of it
        if failure is not None and not unit.node.spec.ignore_errors:
            self._recall_failure(unit, record, failure)
        elif failure is None and record.result.cause is not None:
            self._pass_on(unit, record.result.cause, record.blocks)
        self._conclude(unit, record.fragment)

    def _recall_failure(self, unit: Unit, record: UnitDone, failure: FailureClass) -> None:
        """What followed from the unit's failure then follows from it now."""
        node = unit.node
        cause = Cause(node.id, unit.host, record.result.message, failure)
        if record.quarantines or record.blocks:
            node.failures[failure] = node.failures.get(failure, 0) + 1
        if record.quarantines:
            self.quarantined.setdefault(unit.host, cause)
        if not record.blocks:
            node.tolerated.add(unit.host)
        if not record.blocks and record.quarantines:
            return
        self._pass_on(unit, unit.cause or cause, record.blocks)

    def _quarantine_of(self, unit: Unit) -> Cause | None:
        if unit.node.spec.one_of:
            hosts = unit.node.spec.hosts
            lost = all(host in self.quarantined for host in hosts)
            return self.quarantined[hosts[0]] if lost else None
        return self.quarantined.get(unit.host)

    def _arrive_at_hook(self, unit: Unit, hook: Hook) -> None:
        if self.halt is not None and hook.moment == "always" and self._defers_always:
            self._deferred.append(unit)
        elif (cause := self._hook_held_by(unit, hook)) is not None:
            self._hold_back(unit, cause)
        elif (answer := self._scopes.answer(unit, hook, self.quarantined)) == "run":
            self._dispatcher.offer(unit)
        elif answer == "not-entered" and unit.cause is not None:
            self._hold_back(unit, unit.cause)
        else:
            message = f"{hook.moment} is not due: the scope is {answer}"
            self.finish(unit, Finished("Skipped", message, skipped=True, sign="="))

    def _hook_held_by(self, unit: Unit, hook: Hook) -> Cause | None:
        if hook.moment == "post" and self.halt is not None:
            return self.halt
        if (lost := self._quarantine_of(unit)) is not None:
            return lost
        return own_failure(unit, hook, self.topology.states, self.quarantined)

    def _arm(self, unit: Unit) -> None:
        """A minter runs when somebody needs it; nobody waits for that but who does."""
        self._armed[unit] = None
        self._release(unit, None)

    def _disarm(self) -> None:
        """Nobody needed these."""
        for unit in [unit for unit in self._armed if unit.result is None]:
            if unit in self._wished:
                self.finish(unit, Finished("Success", "would be made", changed=True, sign="+"))
            elif self.cancelled is None:
                self.finish(unit, Finished("Skipped", "nobody needs it", skipped=True, sign="="))

    def wish(self, provider: Unit) -> None:
        """In a dry run: somebody would need this value."""
        self._wished.add(provider)

    def demand(self, provider: Unit) -> asyncio.Future[None]:
        """Run a provider, once for all who wait; resolved when it is final."""
        future = self._armed.get(provider)
        if future is None:
            future = self._armed[provider] = asyncio.get_running_loop().create_future()
            provider.released = True
            provider.attempt = 0
            self._dispatcher.offer(provider)
            self.pump()
        return future

    def _admit(self, unit: Unit) -> bool:
        """Whether a unit that waited for slots may still start; if not, it is dealt with."""
        if self.cancelled is not None:
            return False
        if self.halt is not None and not _follows_failure(unit):
            self._hold_back(unit, self.halt)
            return False
        if (cause := self._quarantine_of(unit)) is not None:
            self._hold_back(unit, cause)
            return False
        if unit.node.spec.one_of:
            self._bind(unit)
        return self._has_more_to_do(unit)

    def _bind(self, unit: Unit) -> None:
        """Choose the first candidate that is not quarantined."""
        earlier = self._state.bound.get(unit.node.id)
        candidates = [host for host in unit.node.spec.hosts if host not in self.quarantined]
        chosen = earlier if earlier in candidates else candidates[0]
        if unit.host != chosen:
            unit.host = chosen
            record = UnitBound(at=self._runtime.now(), node=unit.node.id, host=chosen)
            self._journal.append(record, urgent=False)

    def _has_more_to_do(self, unit: Unit) -> bool:
        """False if a verdict made ahead says that the unit is satisfied."""
        unit.ahead = self._life.foreseen(unit)
        if unit.ahead is None or not unit.ahead.satisfied:
            return True
        unit.started = self._runtime.now()
        unit.attempt = 1
        self.finish(unit, found_satisfied(unit, unit.ahead))
        return False

    def _launch(self, unit: Unit) -> None:
        unit.started = self._runtime.now()
        if not unit.node.started:
            unit.node.started = True
            if self._bus.heard:
                self._bus.publish(events.NodeStarted(at=unit.started, node=unit.node.id))
        self._live.add(unit)
        ahead: Verdict | None = unit.ahead
        unit.task = asyncio.get_running_loop().create_task(self._life.live(unit, ahead))

    def foresee(self, unit: Unit) -> Step | None:
        """The step of a unit whose precheck may be made before its turn."""
        if unit.cause is not None or unit.node.spec.hook is not None:
            return None
        if unit.node.spec.one_of or unit.key in self._state.done:
            return None
        return unit.node.work.foreseeable()

    # A unit's way out.

    def finish(self, unit: Unit, finished: Finished) -> None:
        """A unit's life is over: record it, and tell its dependents when that is durable."""
        # The journal may call back at once; nothing is started or ended before all is noted.
        nested, self._pumping = self._pumping, True
        self._live.discard(unit)
        self._dispatcher.give_back(unit)
        if self._rebinds(unit, finished):
            self._dispatcher.offer(unit)
        else:
            self._record(unit, finished)
        self._pumping = nested
        self.pump()

    def _rebinds(self, unit: Unit, finished: Finished) -> bool:
        """A `one_of` unit whose host was lost before anything ran goes to the next."""
        failure = finished.failure
        if failure is None or failure.failure != "unreachable":
            return False
        if not unit.node.spec.one_of or unit.ran:
            return False
        if not any(host not in self.quarantined for host in self._others(unit)):
            return False
        self._quarantine(unit.host, Cause(unit.node.id, unit.host, failure.message, "unreachable"))
        unit.attempt = 0
        return True

    @staticmethod
    def _others(unit: Unit) -> Iterable[str]:
        return (host for host in unit.node.spec.hosts if host != unit.host)

    def _record(self, unit: Unit, finished: Finished) -> None:
        fragment = None
        if finished.fragment is not None:
            try:
                fragment = checked_fragment(unit, finished.fragment)
            except Exception as error:
                failure = classify(error)
                finished = Finished("Failed", failure.message, failure=failure)
        result = self._result(unit, finished)
        unit.result = result
        for value in finished.values:
            if value.secret:
                self._runtime.conceal(value.value)
        self._values.keep(finished.values)
        lost = blocks = False
        if finished.failure is not None:
            lost, blocks = self._weigh(unit, finished.failure.failure, result.message)
        elif finished.cause is not None:
            blocks = self._missed(unit)
            self._pass_on(unit, finished.cause, blocks)
        node, host = unit.key
        record = UnitDone(
            at=self._runtime.now(),
            node=node,
            host=host,
            result=result,
            quarantines=lost,
            blocks=blocks,
            values=finished.values,
            fragment=fragment,
        )
        if result.changed or result.status == "Failed" or finished.values or fragment is not None:
            self.when_durable(record, lambda: self._conclude(unit, fragment))
        else:
            self._journal.append(record, urgent=False)
            self._conclude(unit, fragment)

    def when_durable(self, record: AnyRecord, then: Callable[[], None]) -> None:
        """Append a record and go on when it can't be lost any more."""
        if self._broken is not None:
            return
        number = self._journal.append(record, urgent=True)
        if number <= self._durable:
            then()
        else:
            self._awaiting.append((number, then))

    async def durably(self, record: AnyRecord) -> None:
        """Append a record and wait until it can't be lost any more."""
        if self._broken is not None:
            raise self._broken
        done = self._promised = asyncio.get_running_loop().create_future()
        self.when_durable(record, lambda: done.set_result(None))
        self.pump()
        await done

    def _result(self, unit: Unit, finished: Finished) -> HostResult:
        limit, redact = self._options.output_limit, self._runtime.redact
        now = self._runtime.now()
        return HostResult(
            host_name=unit.host,
            status=finished.status,
            message=clipped(redact(finished.message), limit) if finished.message else "",
            stdout=clipped(redact(finished.stdout), limit) if finished.stdout else "",
            stderr=clipped(redact(finished.stderr), limit) if finished.stderr else "",
            start_time=datetime.fromtimestamp(unit.started, UTC) if unit.attempt else None,
            end_time=datetime.fromtimestamp(now, UTC),
            skipped=finished.skipped,
            changed=finished.changed,
            attempts=unit.attempt,
            failure=finished.failure.failure if finished.failure is not None else None,
            cause=finished.cause,
            sign=finished.sign,
            diff=redact(finished.diff) if finished.diff else "",
        )

    def _hold_back(self, unit: Unit, cause: Cause) -> None:
        """The unit will not run, because of another's failure."""
        unit.state = ACTIVE  # what follows from this may hold back all that is ready
        self._record(unit, Finished("Skipped", f"held back by {cause}", cause=cause))

    def _conclude(self, unit: Unit, fragment: ExecutionFragment | None) -> None:
        """The result is safe: let the world know, and whoever waits for it."""
        assert unit.result is not None
        node = unit.node
        unit.state = FINAL
        if self._bus.heard:
            now = self._runtime.now()
            self._bus.publish(
                events.UnitFinished(at=now, node=node.id, host=unit.host, result=unit.result)
            )
        if fragment is not None and not unit.released:
            self._expand(unit, fragment)
        if not unit.children and not unit.released:
            self._release(unit, unit.cause)
        if (future := self._armed.get(unit)) is not None:
            del self._armed[unit]
            if not future.done():
                future.set_result(None)

    def _expand(self, unit: Unit, fragment: ExecutionFragment) -> None:
        """The unit counts as final for others when the nodes it added are."""
        self.expanded.append(fragment)
        if self._bus.heard:
            now = self._runtime.now()
            self._bus.publish(
                events.Expanded(at=now, node=unit.node.id, host=unit.host, fragment=fragment)
            )
        states = self.topology.add(
            {node.id: node for node in fragment.nodes}, {join.id: join for join in fragment.joins}
        )
        unit.children = sum(len(state.units) for state in states)
        self._adopt(states, parent=unit)

    def _release(self, unit: Unit, cause: Cause | None) -> None:
        """Tell everything that waits for this unit."""
        unit.released = True
        self._open -= 1
        node = unit.node
        doubt = self._options.dry_run and self._leaves_doubt(unit)
        for state in node.same_host:
            if (follower := state.units.get(unit.host)) is not None:
                self._count_down(follower, cause, unit.blocks, doubt)
        for follower in unit.also or ():
            self._count_down(follower, cause, unit.blocks, doubt)
        self._approach(node.gate, cause if unit.blocks else None, doubt)
        self._open_gates()
        node.left -= 1
        if not node.left and self._bus.heard:
            self._publish_finished(node)
        if node.parent is not None:
            self._child_done(node.parent, unit, cause, doubt)

    def _leaves_doubt(self, unit: Unit) -> bool:
        result = unit.result
        return unit.doubt or (result is not None and (result.changed or result.sign == "?"))

    def _child_done(self, parent: Unit, child: Unit, cause: Cause | None, doubt: bool) -> None:
        parent.children -= 1
        parent.doubt = parent.doubt or doubt
        if cause is not None:
            # A child that is lost with its host takes along a parent that is not on that host.
            apart = parent.node.spec.one_of or child.host != parent.host
            self._pass_on(parent, parent.cause or cause, child.blocks or apart)
        if not parent.children and not parent.released:
            self._release(parent, parent.cause)

    def _publish_finished(self, node: NodeState) -> None:
        status = node_status(
            (unit.result for unit in node.units.values() if unit.result is not None),
            frozenset(node.tolerated),
        )
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

    # Failures.

    def _weigh(self, unit: Unit, failure: FailureClass, message: str) -> tuple[bool, bool]:
        """What follows from a unit's failure: whether its host is lost, and whether it blocks."""
        node = unit.node
        if node.spec.ignore_errors:
            return False, False
        cause = Cause(node.id, unit.host, message, failure)
        if unit.host in self.quarantined:
            node.tolerated.add(unit.host)
            unit.cause = unit.cause or cause
            return False, False
        count = node.failures[failure] = node.failures.get(failure, 0) + 1
        allowance = (node.spec.tolerance or DEFAULT_TOLERANCE).of(failure)
        tolerated = allowance.admits(count, len(node.units))
        if tolerated:
            node.tolerated.add(unit.host)
        lost = tolerated or failure == "unreachable"
        if lost:
            self._lose(unit.host, cause)
        if not tolerated:
            self._pass_on(unit, unit.cause or cause, blocks=True)
        return lost, not tolerated

    def _missed(self, unit: Unit) -> bool:
        """Whether others can't do without a unit that was held back: its host is still there."""
        if unit.released:
            return False
        return unit.blocks or unit.node.spec.one_of or unit.host not in self.quarantined

    def _pass_on(self, unit: Unit, cause: Cause, blocks: bool) -> None:
        """Same-host edges hand on every cause, barriers only one that blocks."""
        unit.cause = cause
        unit.blocks = unit.blocks or blocks
        if blocks:
            self._trip(cause)

    def _quarantine(self, host: str, cause: Cause) -> None:
        """A host is lost other than by a unit's result."""
        if host not in self.quarantined:
            record = Quarantined(at=self._runtime.now(), host=host, cause=cause)
            self._journal.append(record, urgent=False)
            self._lose(host, cause)

    def _lose(self, host: str, cause: Cause) -> None:
        self.quarantined[host] = cause
        if self._bus.heard:
            now = self._runtime.now()
            self._bus.publish(events.HostQuarantined(at=now, host=host, cause=cause))
        for state in self.topology.states.values():
            unit = state.units.get(host) or state.units.get(ANY_HOST)
            if unit is None or unit.host != host or unit.state != READY or unit.wake is not None:
                continue
            if unit.node.spec.one_of:
                self._dispatcher.offer(unit)  # it need not wait for a slot of this host
            else:
                self._hold_back(unit, cause)
        for group in self._graph.groups:
            left = sum(1 for name in group.hosts if name not in self.quarantined)
            if host in group.hosts and left < group.minimum:
                message = f"group `{group.name}` has {left} hosts left, needs {group.minimum}"
                self._stop(Cause(cause.node, host, f"{message}: {cause.message}", cause.failure))

    def _trip(self, cause: Cause) -> None:
        """A failure that nothing tolerates."""
        if self.failure is None:
            self.failure = cause
        if self._policy != "isolate":
            self._stop(cause)

    def _stop(self, cause: Cause) -> None:
        """Start nothing new but the hooks that follow a failure."""
        if self.halt is not None:
            return
        self.halt = cause
        self.failure = self.failure or cause
        if self._policy == "rollback":
            self._end_running()
        for state in self.topology.states.values():
            for unit in state.units.values():
                if unit.state == READY and unit.wake is None and not _follows_failure(unit):
                    self._hold_back(unit, cause)

    def _end_running(self) -> None:
        """What only waits ends now, what runs gets its grace, what may not be ended is awaited."""
        grace = 0.0 if self._broken is not None else self._options.grace
        units = list(self._live)
        for unit in units:
            if not unit.slots and unit.task is not None:
                unit.task.cancel()
        asyncio.get_running_loop().call_later(grace, self._reap, units)

    def _reap(self, units: list[Unit]) -> None:
        left = [unit for unit in units if unit in self._live and unit.task is not None]
        for unit in left:
            if not unit.shielded and unit.task is not None:
                unit.task.cancel()
        if left:
            asyncio.get_running_loop().call_later(REAP_EVERY, self._reap, left)

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


def _follows_failure(unit: Unit) -> bool:
    hook = unit.node.spec.hook
    return hook is not None and hook.moment in ("on-failure", "always")
