"""The scheduler: starts every unit the moment nothing holds it back, and says what follows.

It counts what each unit waits for, hands failures on along the edges, and knows nothing of what
a step does. The life of one unit is in `lifecycle`, the tasks that units live in are in `lives`,
slots in `dispatch` and `limits`, edges in `topology` and `releases`, what follows from a failure
in `losses`, what waits for the journal in `commits`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial

from kubexm.engine.announcements import Announcements
from kubexm.engine.binding import Binding
from kubexm.engine.bus import Bus
from kubexm.engine.commits import Commits
from kubexm.engine.dispatch import Dispatcher
from kubexm.engine.earlier import Earlier
from kubexm.engine.expansion import Expansion, checked_fragment
from kubexm.engine.failures import Ended, classify
from kubexm.engine.floor import Floor
from kubexm.engine.foresight import Foresight
from kubexm.engine.journal import Journal
from kubexm.engine.late import Late
from kubexm.engine.lifecycle import Finished, Lifecycle
from kubexm.engine.limits import Limits
from kubexm.engine.lives import Lives
from kubexm.engine.losses import Losses
from kubexm.engine.options import Options
from kubexm.engine.ports import EngineRuntime
from kubexm.engine.provision import Demand, Provision
from kubexm.engine.releases import Releases
from kubexm.engine.results import host_result
from kubexm.engine.topology import ACTIVE, FINAL, READY, NodeState, Topology, Unit
from kubexm.engine.triggers import Scopes
from kubexm.engine.values import Values
from kubexm.engine.work import NOT_WANTED, LeftOut, Work
from kubexm.plan.events import ProducedValue
from kubexm.plan.fragment import ExecutionFragment
from kubexm.plan.graph import ExecutionGraph
from kubexm.plan.node import ANY_HOST, ExecutionNode, Hook
from kubexm.plan.policy import OnFailure
from kubexm.plan.records import AnyRecord, Quarantined, RunState, UnitDone
from kubexm.plan.result import CONNECT, Cause
from kubexm.step.contract import Step

MakeWork = Callable[[ExecutionNode], Work]


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
        self._commits = Commits(journal, durable)
        self._earlier = Earlier(state, runtime.now, for_good=policy == "rollback")
        self._binding = Binding(self.losses, self._earlier, self._commits, runtime.now)
        self._late = Late(self.losses)
        self._announcements = Announcements(bus, runtime)
        self._values = values
        self._scopes = Scopes(self.topology.states, self.losses.is_lost)
        limits = Limits(options.parallelism, options.per_host, graph.pools)
        self._dispatcher = Dispatcher(limits, self._admit, self._launch)
        self._provision = Provision(self._dispatcher.offer)
        foresight = Foresight(self.topology.states)
        self._floor = Floor(
            self,
            self._dispatcher,
            runtime,
            options,
            values,
            self._announcements,
            journal,
            foresight,
            may_go_back=policy == "rollback",
        )
        self._life = Lifecycle(self._floor)
        self._lives = Lives(self._may_begin, self._life.live, self.finish)
        self._releases = Releases()
        self._open = 0
        self._prepared: dict[str, Work | None] = {}
        self._pumping = False
        self._broken: BaseException | None = None
        self._idle: asyncio.Future[None] | None = None

    # From outside.

    @property
    def lost(self) -> Collection[str]:
        """The hosts that it goes on without, at any time."""
        return self.losses.quarantined.keys()

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
        for units in self._late.take(self.topology.states):
            self._releases.arrived.extend(units)
            await self._drain()

    def cancel(self, reason: str) -> None:
        """Start nothing new; end what runs when its grace is over."""
        if self.cancelled is None:
            self.cancelled = reason
            self._lives.end(self._lives.units, self._options.grace)
            self.pump()

    def broken(self, error: BaseException) -> None:
        """The journal is lost, or this engine wrong: nothing from now on would be known later."""
        if self._broken is None:
            self._broken = error
            self._commits.lose()
            self._floor.lose_journal(error)
            self.cancelled = self.cancelled or str(error)
            self._lives.end(self._lives.units, grace=0.0)
            self.pump()

    def durable(self, number: int) -> None:
        """The journal made everything up to this number durable."""
        self._commits.reached(number)
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
        self._lives.end(self._lives.units, grace=0.0)
        await self._lives.gone()

    def pump(self) -> None:
        """Start all that can start; commit here if there is nothing else to do."""
        if self._pumping:
            return
        self._pumping = True
        try:
            self._start_what_can()
            while not self._dispatcher.busy and self._commits.settle():
                self._start_what_can()
        except Exception as error:
            self.broken(error)
        finally:
            self._pumping = False
        self._check_idle()

    def _start_what_can(self) -> None:
        arrived = self._releases.arrived
        while True:
            self._commits.call_due()
            while arrived:
                self._arrive(arrived.popleft())
            if not self._dispatcher.pump() and not arrived:
                return

    def _check_idle(self) -> None:
        if self._idle is None or self._idle.done() or self._lives.units or self._commits:
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
                    self._releases.arrived.append(unit)

    def _arrive(self, unit: Unit) -> None:
        """Everything before this unit is final."""
        hook = unit.node.spec.hook
        if self._broken is not None:
            return
        if unit.result is None and (record := self._finished_earlier(unit)) is not None:
            self._replay(unit, record)  # also if it is to end at once: what it is, it is by that
        elif self.cancelled is not None:
            return
        elif hook is not None and hook.moment != "pre":
            self._arrive_at_hook(unit, hook)
        elif unit.node.work.minted and unit.cause is None:
            self._make_ready(unit)  # whoever asks will hear if it can't run any more
        elif (cause := unit.cause or self._bar(unit)) is not None:
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

    def _finished_earlier(self, unit: Unit) -> UnitDone | None:
        """What an earlier life made of it; values that can't be made again stay as they are."""
        if not self._earlier:
            return None
        barred = self.losses.halt is not None or self.losses.cause_for(unit) is not None
        return self._earlier.result_of(unit, stale=barred)

    def _replay(self, unit: Unit, record: UnitDone) -> None:
        """An earlier life of this run has finished this unit."""
        unit.host = record.result.host_name
        unit.result = record.result
        self._keep_values(record.values)
        if unit.node.work.minted and unit.cause is None:
            self._release(unit, None)  # only those who ask for its value hear what became of it
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
        elif self._late.concerns(unit):
            self._put_off(unit)
        else:
            self._make_ready(unit)

    def _put_off(self, unit: Unit) -> None:
        self._late.put_off(unit)
        self._release(unit, unit.cause)

    def _finish_leftover(self) -> None:
        """Minters that nobody needed."""
        if self.cancelled is not None:
            return
        for unit, wished in self._provision.leftover():
            if (cause := self.losses.halt or self.losses.cause_for(unit)) is not None:
                self._hold_back(unit, cause)
            elif wished:
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
        cause = self._bar(unit)
        if cause is None and unit.node.spec.one_of:
            cause = self._binding.bind(unit)
        if cause is not None:
            self._hold_back(unit, cause)
            return False
        return self._has_more_to_do(unit)

    def _bar(self, unit: Unit) -> Cause | None:
        """Why a unit that waits for nothing may not start any more."""
        if self.losses.unscathed:
            return None
        halt = self.losses.halt
        barred = halt is not None and not _follows_failure(unit)
        return halt if barred else self.losses.cause_for(unit)

    def _may_begin(self, unit: Unit) -> bool:
        """Whether nothing has come in between since it was launched; if so, it is dealt with."""
        if self.losses.unscathed or self.cancelled is not None:
            return True
        cause, late = self._bar(unit), self._late.concerns(unit)
        if cause is None and not late:
            return True
        held = self._put_off if cause is None else partial(self._hold_back, cause=cause)
        self._leave(unit, partial(held, unit))
        return False

    def _has_more_to_do(self, unit: Unit) -> bool:
        """False if it is left out, or a verdict made ahead says that it is satisfied."""
        reason = self._reason_to_skip(unit)
        if reason is None:
            return True
        unit.started = self._runtime.now()
        unit.attempt = 1
        self.finish(unit, Finished("Skipped", reason, skipped=True, sign="="))
        return False

    def _reason_to_skip(self, unit: Unit) -> str | None:
        if unit.node.work.conditional and self._is_left_out(unit):
            return NOT_WANTED
        verdict = self._life.foreseen(unit)
        if verdict is None or not verdict.satisfied or self._options.dry_run:
            return None
        return verdict.reason

    def _launch(self, unit: Unit) -> None:
        unit.started = self._runtime.now()
        if not unit.node.started:
            unit.node.started = True
            self._announcements.node_started(unit.node)
        self._lives.begin(unit)

    def _is_left_out(self, unit: Unit) -> bool:
        if self._is_special(unit):
            return False
        try:
            return unit.node.work.is_left_out(partial(self._floor.view, unit))
        except BaseException:  # whatever is wrong with it is told in its own life
            return False

    def foresee(self, unit: Unit) -> Step | LeftOut | None:
        """The step of a unit whose precheck may be made before its turn."""
        if self._is_special(unit) or self._earlier.knows(unit):
            return None
        try:
            return unit.node.work.foreseeable(partial(self._floor.view, unit))
        except BaseException:  # whatever is wrong with it is told in its turn
            return None

    @staticmethod
    def _is_special(unit: Unit) -> bool:
        spec = unit.node.spec
        return unit.cause is not None or spec.hook is not None or bool(spec.one_of)

    def was_intended(self, unit: Unit) -> bool:
        """Whether an earlier life of this run was about to change something by this unit."""
        return self._earlier.intended(unit)

    def was_changed(self, unit: Unit) -> bool:
        """Whether this unit had changed something before the run was opened again."""
        return self._earlier.changed(unit)

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
        failure = finished.failure
        if failure is not None and self._binding.may_go_elsewhere(unit, failure):
            self._leave(unit, partial(self._rebind, unit, finished))
        else:
            self._leave(unit, partial(self._record, unit, finished))

    def _leave(self, unit: Unit, decide: Callable[[], None]) -> None:
        """A unit gives its slots back, whatever becomes of it."""
        # The journal may call back at once; nothing is started or ended before all is noted.
        nested, self._pumping = self._pumping, True
        self._lives.units.discard(unit)
        self._dispatcher.give_back(unit)
        try:
            decide()
        except Exception as error:
            self.broken(error)
        finally:
            self._pumping = nested
        self.pump()

    def _rebind(self, unit: Unit, finished: Finished) -> None:
        """A `one_of` unit whose host was lost before anything ran goes to the next."""
        message = host_result(unit, finished, self._runtime, self._options).message
        self._quarantine(unit.host, Cause(unit.node.id, unit.host, message, "unreachable"))
        unit.attempt = 0
        self._dispatcher.offer(unit)

    def _record(self, unit: Unit, finished: Finished) -> None:
        fragment = None
        if finished.fragment is not None:
            try:
                fragment = self._prepare(unit, finished.fragment)
            except Exception as error:
                failure = classify(error)
                finished = Finished("Failed", failure.message, failure=failure)
        if finished.values:
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
        under_way = len(self._lives.units)
        number = self._commits.append(record, urgent=urgent, under_way=under_way)
        if toll is not None:
            self.losses.suffer(toll)
        conclude = partial(self._conclude, unit, fragment, first)
        self._commits.when(number if urgent else 0, conclude)

    def when_durable(self, record: AnyRecord, then: Callable[[], None]) -> None:
        """Append a record and go on when it can't be lost any more."""
        under_way = len(self._lives.units)
        number = self._commits.append(record, urgent=True, under_way=under_way)
        self._commits.when(number, then)

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
            changed = unit.node.work.changes and self._earlier.intended(unit)
            if changed:
                unit.host = self._earlier.host_of(unit) or unit.host
            message = f"held back by {cause}"
            self._record(unit, Finished("Skipped", message, changed=changed, cause=cause))

    def _conclude(
        self,
        unit: Unit,
        fragment: ExecutionFragment | None,
        first: bool = True,
        *,
        replayed: bool = False,
    ) -> None:
        """The result is safe: let the world know, and whoever waits for it."""
        unit.state = FINAL
        self._announcements.unit_finished(unit, replayed=replayed)
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
        self._announcements.expanded(unit, fragment)
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
        doubt = self._options.dry_run and _leaves_doubt(unit)
        self._releases.tell(unit, cause, doubt)
        if (parent := unit.node.parent) is not None:
            self._child_done(parent, unit, cause, doubt)

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
        unit.node.left -= 1
        if not unit.node.left:
            self._announcements.node_finished(unit.node)

    # What follows from failures.

    def _quarantine(self, host: str, cause: Cause) -> None:
        """A host is lost other than by a unit's result."""
        if not self.losses.is_lost(host):
            record = Quarantined(at=self._runtime.now(), host=host, cause=cause)
            self._commits.append(record)
            self.losses.lose(host, cause)

    def _go_on_without(self, host: str, cause: Cause) -> None:
        self._announcements.quarantined(host, cause)
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
            stopped = [unit for unit in self._lives.units if self.stopping(unit) is not None]
            self._lives.end(stopped, self._options.grace)
        for state in list(self.topology.states.values()):
            for unit in state.units.values():
                if not _waits_for_slots(unit):
                    continue
                if self._late.concerns(unit):
                    self._put_off(unit)
                elif not _follows_failure(unit):
                    self._hold_back(unit, cause)


def _waits_for_slots(unit: Unit) -> bool:
    """It could start and has not."""
    return unit.state == READY and unit.wake is None


def _follows_failure(unit: Unit) -> bool:
    hook = unit.node.spec.hook
    return hook is not None and hook.moment in ("on-failure", "always")


def _leaves_doubt(unit: Unit) -> bool:
    result = unit.result
    return unit.doubt or (result is not None and (result.changed or result.sign == "?"))
