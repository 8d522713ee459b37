"""Execute a graph: forward, and if its policy says so after a failure, back."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, datetime

import msgspec

from kubexm.engine import collector
from kubexm.engine.backward import backward, settles
from kubexm.engine.bus import Bus
from kubexm.engine.expansion import Grown
from kubexm.engine.former import Moves, Successors
from kubexm.engine.journal import Journal
from kubexm.engine.options import Control, Options
from kubexm.engine.ports import EngineRuntime, Load
from kubexm.engine.results import (
    node_results,
    nothing_to_do,
    rolled_back,
    run_status,
    with_rollback,
)
from kubexm.engine.scheduler import MakeWork, Scheduler
from kubexm.engine.undo import is_undo, undo_graph
from kubexm.engine.values import Values
from kubexm.engine.work import forward
from kubexm.plan import events
from kubexm.plan.fragment import replace
from kubexm.plan.graph import ExecutionGraph
from kubexm.plan.node import ExecutionNode
from kubexm.plan.policy import OnFailure
from kubexm.plan.records import HostSeen, Layer, RunState, Turned, Unit
from kubexm.plan.result import Cause, GraphExecutionResult
from kubexm.runtime.contexts import UnitView


async def execute(
    graph: ExecutionGraph,
    runtime: EngineRuntime,
    options: Options,
    *,
    load: Load,
    journal: Journal,
    state: RunState | None = None,
    control: Control | None = None,
    durations: Mapping[str, float] | None = None,
    bus: Bus | None = None,
) -> GraphExecutionResult:
    """Run a graph to its end and say what came of it.

    `state` is what an earlier life of the same run left in the journal. A failure of a unit is in
    the result; an exception from here means that the run itself could not go on.
    """
    graph.validate()
    run = _Run(
        graph=graph,
        runtime=runtime,
        options=options,
        load=load,
        journal=journal,
        state=state or RunState(),
        control=control or Control(),
        durations=durations or {},
        bus=bus or Bus(),
    )
    with collector.calm():
        return await run.execute()


class _Run(msgspec.Struct, kw_only=True):
    graph: ExecutionGraph
    runtime: EngineRuntime
    options: Options
    load: Load
    journal: Journal
    state: RunState
    control: Control
    durations: Mapping[str, float]
    bus: Bus
    values: Values = msgspec.field(default_factory=Values)
    policy: OnFailure = "isolate"
    started: float = 0.0
    durable: int = 0
    walks: list[Scheduler] = msgspec.field(default_factory=list)
    broken: BaseException | None = None
    changed: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)

    async def execute(self) -> GraphExecutionResult:
        self.started = self.runtime.now()
        self.policy = self.options.on_failure or self.graph.on_failure
        if self.options.dry_run and self.policy == "rollback":
            self.policy = "fail-fast"
        if self.state.turned is not None:
            self.policy = "rollback"  # whatever was asked for now: it is on its way back
        self.journal.start(self._on_durable, self._on_broken)
        self.control.on_cancel(self._on_cancel)
        self._see_hosts()
        self._announce()
        hosts = frozenset(host for node in self.graph for host in node.hosts)
        walk = self._scheduler(self.graph, forward(self.load), self.policy, vital=hosts)
        await walk.walk(quarantined=self._lost_before(undo=False), halted=self.state.turned)
        back = await self._roll_back(walk)
        await self.journal.close()
        if self.broken is not None:
            raise self.broken
        result = self._result(walk, back)
        self.bus.publish(events.RunFinished(at=self.runtime.now(), result=result))
        return result

    def _on_durable(self, number: int) -> None:
        self.durable = number
        if self.walks:
            self.walks[-1].durable(number)

    def _on_broken(self, error: BaseException) -> None:
        self.broken = error
        if self.walks:
            self.walks[-1].broken(error)

    def _on_cancel(self, reason: str) -> None:
        for walk in self.walks:
            walk.cancel(reason)

    def _lost_before(self, *, undo: bool) -> dict[str, Cause]:
        """Hosts that an earlier life lost on the way there, or on the way back."""
        lost = self.state.quarantined.items()
        return {host: cause for host, cause in lost if is_undo(cause.node) == undo}

    def _see_hosts(self) -> None:
        """Note each host's boot id; a host that rebooted since starts again at its prechecks."""
        named = {host: None for node in self.graph for host in node.hosts}
        for host in named:
            if host in self.runtime.unreachable or host in self.state.quarantined:
                continue  # nothing will be done there, and what was done still counts
            boot_id = str(self.runtime.view(host, {}).facts.get("boot_id", ""))
            if boot_id and self.state.boots.get(host) != boot_id:
                record = HostSeen(at=self.started, host=host, boot_id=boot_id)
                self.journal.append(record, urgent=False)
                self.state.apply(record)

    def _announce(self) -> None:
        self.bus.publish(
            events.RunStarted(
                at=self.started,
                graph=self.graph.name,
                units=self.graph.unit_count,
                dry_run=self.options.dry_run,
                resumed=bool(self.state.done),
            )
        )

    def _scheduler(
        self,
        graph: ExecutionGraph,
        work: MakeWork,
        policy: OnFailure,
        vital: frozenset[str] = frozenset(),
        values: Values | None = None,
    ) -> Scheduler:
        walk = Scheduler(
            graph,
            self.runtime,
            self.options,
            work=work,
            journal=self.journal,
            state=self.state,
            bus=self.bus,
            values=values or self.values,
            durations=self.durations,
            policy=policy,
            vital=vital,
            durable=self.durable,
        )
        self.walks.append(walk)
        if self.broken is not None:
            walk.broken(self.broken)
        if self.control.cancelled is not None:
            walk.cancel(self.control.cancelled)
        return walk

    async def _roll_back(self, walk: Scheduler) -> Scheduler | None:
        """Undo what this run changed, then run what always runs."""
        cause = walk.losses.halt
        if self.policy != "rollback" or cause is None or walk.cancelled is not None:
            return None
        back = await self._undo(walk, cause)
        if back is None or back.cancelled is None:
            self.walks.append(walk)
            await walk.run_deferred()
        return back

    def _has_yet_to_go_back(self, walk: Scheduler) -> bool:
        """Whether it was stopped right before it would have turned."""
        due = self.policy == "rollback" and walk.losses.halt is not None
        changed = bool(_changed(walk, self.state.late) or self.state.former)
        return due and walk.cancelled is not None and changed

    async def _undo(self, walk: Scheduler, cause: Cause) -> Scheduler | None:
        grown = Grown(self.graph, walk.expanded)
        self.changed = _changed(walk, self.state.late)
        moves = self._moves(grown)
        undone = grown.nodes | {node.id: node for layer in self.state.former for node in layer}
        changed = (*self.changed, *(undone.keys() - grown.nodes.keys()))
        settling = {id for id in changed if settles(self.load(undone[id]))}
        own = {id: moves.staying(id, hosts) for id, hosts in self.changed.items()}
        former = [tuple(_staying(layer, moves)) for layer in self.state.former]
        undo = undo_graph(self.graph, grown, own, settling, [*filter(None, former)])
        if undo is None:
            return None
        if self.state.turned is None:
            await walk.durably(Turned(at=self.runtime.now(), cause=cause))
        now = self.runtime.now()
        units = {id: len(node.hosts) for id, node in undo.nodes.items()}
        self.bus.publish(events.TurnedBack(at=now, cause=cause, undo=units))
        work = backward(self.load, undone, _compensating(grown), moves.to)
        # Nothing is made on the way back but by a compensation itself.
        back = self._scheduler(undo, work, "isolate", values=self.values.kept(self.state.left))
        await back.walk(quarantined=self._lost_before(undo=True))
        return back

    def _moves(self, grown: Grown) -> Moves:
        values = self.values.kept(self.state.left)

        def view(node: ExecutionNode, host: str) -> UnitView:
            return self.runtime.view(host, values.view(node.step.needs, host))

        return Successors(grown.nodes, self.changed, self.load, view).moves(self.state.former)

    def _result(self, walk: Scheduler, back: Scheduler | None) -> GraphExecutionResult:
        losses = walk.losses
        nodes = node_results(walk.topology.states, walk.cancelled, self.state.done)
        status = run_status(losses, walk.cancelled, nodes)
        if back is None and self._has_yet_to_go_back(walk):
            status = "Cancelled"
        said = walk.cancelled
        if losses.failure is not None and status != "Cancelled":
            said = str(losses.failure)
        result = GraphExecutionResult(
            graph_name=self.graph.name,
            status=status,
            node_results=nodes,
            start_time=datetime.fromtimestamp(self.started, UTC),
            end_time=datetime.fromtimestamp(self.runtime.now(), UTC),
            dry_run=self.options.dry_run,
            degraded=status == "Success" and bool(losses.quarantined),
            message=said or nothing_to_do(nodes),
            quarantined=dict(losses.quarantined),
        )
        if back is None:
            return result
        undone = node_results(back.topology.states, back.cancelled, self.state.done)
        result = rolled_back(result, walk.topology.states, undone, self.changed)
        return with_rollback(result, undone, back.losses, back.cancelled)


def _changed(walk: Scheduler, late: Collection[Unit]) -> dict[str, tuple[str, ...]]:
    """Hosts on which each node changed something on the way there, in this life or before."""
    changed: dict[str, tuple[str, ...]] = {}
    for id, state in walk.topology.states.items():
        hosts = [
            unit.host
            for unit in state.units.values()
            if unit.result is not None and unit.result.changed and unit.key not in late
        ]
        if hosts:
            changed[id] = tuple(hosts)
    return changed


def _staying(layer: Layer, moves: Moves) -> Iterator[ExecutionNode]:
    for node in layer:
        if hosts := moves.staying(node.id, node.hosts):
            yield replace(node, hosts=hosts)


def _compensating(graph: Grown) -> dict[str, ExecutionNode]:
    return {node.id: node for item in graph.compensations for node in item.nodes}
