"""Run a pipeline, resume a run that was interrupted, retry one that ended badly."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from kubexm.app import places, planning
from kubexm.app.execution import Front, Job, perform, perform_held
from kubexm.app.params import PipelineParams, PlanParams, ResumeParams, RetryParams, RunParams
from kubexm.app.planning import Planned
from kubexm.common.paths import Home
from kubexm.engine import MemoryJournal, Options
from kubexm.engine.undo import is_undo, rolled_back
from kubexm.errors import InvalidInput, Refused
from kubexm.plan.graph import ExecutionGraph
from kubexm.plan.node import ExecutionNode
from kubexm.plan.records import Reopened, RunState, Unit
from kubexm.plan.result import GraphExecutionResult
from kubexm.sim.world import World
from kubexm.spec.inventory import InventoryHost
from kubexm.step import registry
from kubexm.store import Documents, Run, Store


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """What came of a run; a dry run has no task."""

    graph: ExecutionGraph
    result: GraphExecutionResult
    task: str | None = None
    world: Path | None = None


class StoredOptions(msgspec.Struct, frozen=True):
    """How a run was to be carried out, kept for its resume."""

    options: Options
    require_all_hosts: bool = False


async def run(params: RunParams, front: Front, home: Home) -> RunOutcome:
    """Plan a pipeline and carry it out."""
    planned = planning.plan(params.plan)
    world = _world(params, planned, home)
    if params.check:
        return await _check(params, planned, world, front, home)
    with places.store_at(places.database_path(home, world)) as store:
        documents = _documents(planned, StoredOptions(_options(params), params.require_all_hosts))
        stored, lease = store.start_run(
            planned.graph.name,
            documents,
            selected=planned.selected,
            world=str(world) if world is not None else None,
        )
        with lease:
            job = _job(params, planned, world, store)
            result = await perform_held(job, store, lease, front, home)
    return RunOutcome(planned.graph, result, stored.id, world)


async def _check(
    params: RunParams, planned: Planned, world: Path | None, front: Front, home: Home
) -> RunOutcome:
    """Prechecks only: no lock is taken and nothing is written anywhere."""
    database = places.database_path(home, world)
    if database.exists():
        with places.store_at(database) as store:
            job = _job(params, planned, world, store)
    else:
        job = _job(params, planned, world, None)
    result = await perform(job, MemoryJournal(), front, home)
    return RunOutcome(planned.graph, result, None, world)


def _world(params: RunParams, planned: Planned, home: Home) -> Path | None:
    """The simulated world of this run, made if it is not there yet."""
    if not params.simulate:
        return None
    path = places.world_path(home, planned.graph.name, params.world)
    if not (path / "world.json").exists():
        World.create(path, planned.world)
    return path


def _options(params: RunParams) -> Options:
    given: dict[str, Any] = {"on_failure": params.on_failure, "dry_run": params.check}
    if params.debug:
        given["parallelism"] = 1
    elif params.parallelism is not None:
        given["parallelism"] = params.parallelism
    return Options(**given)


def _job(params: RunParams, planned: Planned, world: Path | None, store: Store | None) -> Job:
    name = planned.graph.name
    return Job(
        graph=planned.graph,
        hosts=planned.hosts,
        options=_options(params),
        world=world,
        durations=store.durations(name) if store is not None else {},
        ledger=store.ledger(name) if store is not None else (),
        require_all_hosts=params.require_all_hosts,
        breakpoints=params.breakpoints,
    )


def _documents(planned: Planned, options: StoredOptions) -> Documents:
    return Documents(
        graph=planned.graph,
        spec=msgspec.json.encode(planned.hosts),
        options=msgspec.json.encode(options),
    )


async def resume(params: ResumeParams, front: Front, home: Home) -> RunOutcome:
    """Go on with a run that has not ended; what is finished is not run again."""
    with places.store_of(home, params.task) as store:
        stored = store.run(params.task)
        if stored.status not in ("Pending", "Running", "Cancelled"):
            raise InvalidInput(
                f"task `{stored.id}` has ended: {stored.status}",
                hint=f"open it again with: kubexm task retry {stored.id}",
            )
        return await _continue(store, stored, front, home, force=params.force)


async def retry(params: RetryParams, front: Front, home: Home) -> RunOutcome:
    """Open an ended run again: what succeeded is kept, the rest is tried once more."""
    with places.store_of(home, params.task) as store:
        stored = store.run(params.task)
        if stored.status == "Success" and not stored.degraded and params.pipeline is None:
            raise InvalidInput(
                f"task `{stored.id}` succeeded, there is nothing to retry",
                hint="run the pipeline again, or give a changed file with -f",
            )
        corrected = None
        if params.pipeline is not None:
            corrected = _corrected(stored, params.pipeline)
        return await _continue(
            store, stored, front, home, force=params.force, reopen=True, corrected=corrected
        )


def _corrected(stored: Run, pipeline: PipelineParams) -> Planned:
    planned = planning.plan(PlanParams(pipeline))
    if planned.graph.name != stored.name:
        raise InvalidInput(
            f"task `{stored.id}` ran `{stored.name}`, but the file describes"
            f" `{planned.graph.name}`",
            hint="give the corrected file of the same pipeline",
        )
    return planned


async def _continue(
    store: Store,
    stored: Run,
    front: Front,
    home: Home,
    *,
    force: bool,
    reopen: bool = False,
    corrected: Planned | None = None,
) -> RunOutcome:
    documents = store.documents(stored.id)
    options = msgspec.json.decode(documents.options, type=StoredOptions)
    graph = documents.graph
    hosts = msgspec.json.decode(documents.spec, type=tuple[InventoryHost, ...])
    if not force:
        _refuse_if_stale(store, stored, graph if corrected is None else corrected.graph)
    with store.acquire(stored.id) as lease:
        state = store.state(stored.id)
        opening = (_reopening(state, graph, corrected),) if reopen else ()
        if corrected is not None:
            graph, hosts = corrected.graph, corrected.hosts
            store.replace_documents(lease, _documents(corrected, options))
        world = Path(stored.world) if stored.world is not None else None
        job = Job(
            graph=graph,
            hosts=hosts,
            options=options.options,
            world=world,
            state=state,
            opening=opening,
            durations=store.durations(stored.name),
            ledger=store.ledger(stored.name),
            require_all_hosts=options.require_all_hosts,
        )
        result = await perform_held(job, store, lease, front, home)
    return RunOutcome(graph, result, stored.id, world)


def _refuse_if_stale(store: Store, stored: Run, graph: ExecutionGraph) -> None:
    later = store.later_change(stored.id)
    if later is not None:
        raise Refused(
            f"task `{later.id}` has changed `{stored.name}` since",
            hint="run the pipeline anew, or insist with --force",
        )
    changed = [
        kind.removeprefix("step:")
        for kind, digest in graph.digests.items()
        if kind.startswith("step:") and _digest(kind) != digest
    ]
    if changed:
        raise Refused(
            f"these steps are not what they were when `{stored.id}` was planned: "
            + ", ".join(sorted(changed)),
            hint="run the pipeline anew, or insist with --force",
        )


def _digest(name: str) -> str | None:
    kind = name.removeprefix("step:")
    return registry.digest(kind) if kind in registry.kinds() else None


def _reopening(state: RunState, graph: ExecutionGraph, corrected: Planned | None) -> Reopened:
    """Everything but what succeeded, was not undone and, in a corrected file, is the same."""
    taken_back = rolled_back(state)
    kept = {
        unit
        for unit, done in state.done.items()
        if unit not in taken_back
        and not is_undo(unit[0])
        and (done.result.status == "Success" or done.result.satisfied)
        and (corrected is None or _same(unit, graph.nodes, corrected.graph.nodes))
    }
    return Reopened(at=time.time(), units=tuple(sorted(state.done.keys() - kept)))


def _same(
    unit: Unit, before: Mapping[str, ExecutionNode], after: Mapping[str, ExecutionNode]
) -> bool:
    node = after.get(unit[0])
    return node is not None and before.get(unit[0]) == node
