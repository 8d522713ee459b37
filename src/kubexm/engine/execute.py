"""Execute a graph: forward, and if its policy says so after a failure, back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from kubexm.engine.bus import Bus
from kubexm.engine.journal import Journal
from kubexm.engine.options import Control, Options
from kubexm.engine.ports import EngineRuntime, Load
from kubexm.engine.results import node_results, run_status, with_rollback
from kubexm.engine.scheduler import MakeWork, Scheduler
from kubexm.engine.undo import UNDO, undo_graph
from kubexm.engine.values import Values
from kubexm.engine.work import backward, forward
from kubexm.plan import events
from kubexm.plan.graph import ExecutionGraph
from kubexm.plan.node import ExecutionNode
from kubexm.plan.policy import OnFailure
from kubexm.plan.records import HostSeen, RunState, Turned
from kubexm.plan.result import Cause, GraphExecutionResult


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

    `state` is what an earlier life of the same run left in the journal. A failure of a unit is
    in the result; an exception from here means that the run itself could not go on.
    """
    graph.validate()
    run = _Run(
        graph,
        runtime,
        options,
        load,
        journal,
        state or RunState(),
        control or Control(),
        durations or {},
        bus or Bus(),
    )
    return await run.execute()


class _Run:
    def __init__(
        self,
        graph: ExecutionGraph,
        runtime: EngineRuntime,
        options: Options,
        load: Load,
        journal: Journal,
        state: RunState,
        control: Control,
        durations: Mapping[str, float],
        bus: Bus,
    ) -> None:
        self._graph = graph
        self._runtime = runtime
        self._options = options
        self._load = load
        self._journal = journal
        self._state = state
        self._control = control
        self._durations = durations
        self._bus = bus
        self._values = Values()
        self._quarantined = dict(state.quarantined)
        self._policy: OnFailure = options.on_failure or graph.on_failure
        if options.dry_run and self._policy == "rollback":
            self._policy = "fail-fast"
        self._started = runtime.now()
        self._durable = 0
        self._walks: list[Scheduler] = []

    async def execute(self) -> GraphExecutionResult:
        self._journal.start(self._on_durable, self._on_broken)
        self._control.on_cancel(self._on_cancel)
        self._see_hosts()
        self._announce()
        walk = self._scheduler(self._graph, forward(self._load), self._policy)
        await walk.walk(halted=self._state.turned)
        back = await self._roll_back(walk)
        await self._journal.close()
        result = self._result(walk, back)
        self._bus.publish(events.RunFinished(at=self._runtime.now(), result=result))
        return result

    def _on_durable(self, number: int) -> None:
        self._durable = number
        if self._walks:
            self._walks[-1].durable(number)

    def _on_broken(self, error: BaseException) -> None:
        if self._walks:
            self._walks[-1].broken(error)

    def _on_cancel(self, reason: str) -> None:
        for walk in self._walks:
            walk.cancel(reason)

    def _see_hosts(self) -> None:
        """Note each host's boot id; a host that rebooted since starts again at its prechecks."""
        for host in self._graph.hosts:
            if host in self._runtime.unreachable:
                continue
            boot_id = str(self._runtime.view(host, {}).facts.get("boot_id", ""))
            if boot_id and self._state.boots.get(host) != boot_id:
                record = HostSeen(at=self._started, host=host, boot_id=boot_id)
                self._journal.append(record, urgent=False)
                self._state.apply(record)

    def _announce(self) -> None:
        self._bus.publish(
            events.RunStarted(
                at=self._started,
                graph=self._graph.name,
                units=self._graph.unit_count,
                dry_run=self._options.dry_run,
                resumed=bool(self._state.done),
            )
        )

    def _scheduler(self, graph: ExecutionGraph, work: MakeWork, policy: OnFailure) -> Scheduler:
        walk = Scheduler(
            graph,
            self._runtime,
            self._options,
            work=work,
            journal=self._journal,
            state=self._state,
            bus=self._bus,
            values=self._values,
            durations=self._durations,
            quarantined=self._quarantined,
            policy=policy,
            durable=self._durable,
        )
        self._walks.append(walk)
        if self._control.cancelled is not None:
            walk.cancel(self._control.cancelled)
        return walk

    async def _roll_back(self, walk: Scheduler) -> Scheduler | None:
        """Undo what this run changed, then run what always runs."""
        cause = walk.halt
        if self._policy != "rollback" or cause is None or walk.cancelled is not None:
            return None
        back = await self._undo(walk, cause)
        if back is None or back.cancelled is None:
            self._walks.append(walk)
            await walk.run_deferred()
        return back

    async def _undo(self, walk: Scheduler, cause: Cause) -> Scheduler | None:
        whole = self._graph
        for fragment in walk.expanded:
            whole = whole.merge(fragment.nodes, fragment.joins)
        undo = undo_graph(whole, _changed(walk))
        if undo is None:
            return None
        if self._state.turned is None:
            await walk.durably(Turned(at=self._runtime.now(), cause=cause))
        now = self._runtime.now()
        self._bus.publish(events.TurnedBack(at=now, cause=cause, undo=tuple(undo.nodes)))
        back = self._scheduler(undo, backward(self._load, *_origins(whole)), "isolate")
        await back.walk()
        return back

    def _result(self, walk: Scheduler, back: Scheduler | None) -> GraphExecutionResult:
        nodes = node_results(walk)
        status = run_status(walk, nodes)
        result = GraphExecutionResult(
            graph_name=self._graph.name,
            status=status,
            node_results=nodes,
            start_time=datetime.fromtimestamp(self._started, UTC),
            end_time=datetime.fromtimestamp(self._runtime.now(), UTC),
            dry_run=self._options.dry_run,
            degraded=status == "Success" and bool(self._quarantined),
            message=str(walk.failure) if walk.failure is not None else walk.cancelled or "",
            quarantined=dict(self._quarantined),
        )
        return with_rollback(result, walk, back) if back is not None else result


def _changed(walk: Scheduler) -> dict[str, tuple[str, ...]]:
    """Hosts on which each node changed something, in this life of the run or an earlier one."""
    changed: dict[str, tuple[str, ...]] = {}
    for id, state in walk.topology.states.items():
        hosts = [unit.host for unit in state.units.values() if unit.result and unit.result.changed]
        if hosts:
            changed[id] = tuple(hosts)
    return changed


def _origins(graph: ExecutionGraph) -> tuple[Callable[[str], ExecutionNode], Callable[[str], bool]]:
    """For a path of the undo graph: the node it comes from, and whether it undoes that node."""
    compensating = {node.id: node for item in graph.compensations for node in item.nodes}

    def origin(id: str) -> ExecutionNode:
        path = id.removeprefix(f"{UNDO}/")
        return graph.nodes.get(path) or compensating[path]

    return origin, lambda id: id.removeprefix(f"{UNDO}/") in graph.nodes
