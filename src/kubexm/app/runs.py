"""Run a pipeline, resume a run that was interrupted, retry one that ended badly."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from kubexm.app import places, planning, visits, worlds
from kubexm.app.execution import (
    Front,
    Job,
    perform,
    perform_held,
    readiness,
)
from kubexm.app.foreknown import Plan, plan_of
from kubexm.app.former import hosts_of, on_hosts
from kubexm.app.keeping import planned_again, without_secrets
from kubexm.app.params import (
    Operation,
    OperationParams,
    PipelineParams,
    PlanParams,
    ResumeParams,
    RetryParams,
    RunParams,
)
from kubexm.app.planning import Planned
from kubexm.app.readiness import Readiness, early
from kubexm.app.remembered import Facts
from kubexm.app.reopening import reopening
from kubexm.app.stored import KeptOperation, StoredOptions, storable
from kubexm.common.digests import Digests
from kubexm.common.paths import Home
from kubexm.engine import MemoryJournal, Options
from kubexm.errors import InvalidGraph, InvalidInput, Problem, Refused
from kubexm.plan.graph import ExecutionGraph
from kubexm.plan.history import Span
from kubexm.plan.records import RunState, Unit
from kubexm.plan.result import GraphExecutionResult
from kubexm.plan.select import named
from kubexm.step import registry
from kubexm.store import Documents, Lease, Run, Store
from kubexm.templates import render

_UNDONE = "undone"
"""The kind of the steps that go back to what was there before any run."""


class RunOutcome(msgspec.Struct, frozen=True):
    """What came of a run; a dry run has no task."""

    graph: ExecutionGraph
    result: GraphExecutionResult
    run: Run | None = None
    world: Path | None = None
    warnings: tuple[Problem, ...] = ()
    lives: Sequence[Span] = ()
    """When somebody worked on it."""
    operation: Operation | None = None
    """What was done with a cluster, if it was about one."""

    @property
    def task(self) -> str | None:
        """The id of the run."""
        return self.run.id if self.run is not None else None

    @property
    def made_a_cluster(self) -> bool:
        """Whether one is there now, maybe without some hosts; a selected part is none."""
        was_whole = self.run is not None and not self.run.selected
        is_creation = self.operation == "create-cluster"
        return is_creation and was_whole and self.result.status == "Success"

    @property
    def deleted_a_cluster(self) -> bool:
        """Whether nothing is left of one on real hosts."""
        was_real = self.run is not None and self.run.world is None
        is_whole = self.result.status == "Success" and not self.result.degraded
        return self.operation == "delete-cluster" and was_real and is_whole


def foreseen(params: RunParams) -> Planned:
    """What would run; what is wrong with the wish is told before anybody is asked."""
    _refuse_what_has_no_effect(params)
    return planning.plan(params.plan)


async def run(params: RunParams, front: Front, home: Home) -> RunOutcome:
    """Plan a pipeline and carry it out."""
    _refuse_what_has_no_effect(params)
    facts = await _facts(params, front, home)
    planned = planning.plan(params.plan, Digests(home.digests), facts)
    params = replace(params, breakpoints=named(planned.graph, params.breakpoints, "--break"))
    with worlds.world_of(params, planned, home) as world:
        return await _carried_out(params, planned, world, front, home)


async def _facts(params: RunParams, front: Front, home: Home) -> Facts | None:
    """What has to be known of hosts before an operation on their cluster can be planned."""
    if not isinstance(params.plan.pipeline, OperationParams):
        return None
    from kubexm.app.preparing import prepared

    return await prepared(params, front, home)


async def _carried_out(
    params: RunParams, planned: Planned, world: Path | None, front: Front, home: Home
) -> RunOutcome:
    front.warn(planned.warnings)
    ready = readiness(_job(params, planned, world, None), front, planned.places)
    ready.require(early(planned.hosts))
    if params.check:
        return await _check(params, planned, world, front, home)
    with places.open_store(places.database_path(home, world)) as store:
        documents = _documents(planned, _stored_options(params, planned))
        _tell_of_an_interrupted_one(store, planned.graph.name, front)
        front.begun = True
        stored, lease = store.start_run(
            planned.graph.name,
            documents,
            selected=planned.selected,
            world=str(world) if world is not None else None,
        )
        with lease:
            job = _job(params, planned, world, store)
            result = await perform_held(job, store, lease, front, home)
            outcome = _outcome(store, stored.id, job, result)
    kept = KeptOperation.of(params.plan.pipeline)
    return replace(outcome, warnings=planned.warnings, operation=_operation(kept))


def _refuse_what_has_no_effect(params: RunParams) -> None:
    """Who asks for something wants it: half of a wish is a mistake."""
    halves = (
        (params.world is not None and not params.simulate, "--world", "--simulate"),
        (bool(params.breakpoints) and not params.debug, "--break", "--debug"),
    )
    for is_half, given, missing in halves:
        if is_half:
            raise InvalidInput(
                f"`{given}` has no effect without `{missing}`",
                hint=f"add `{missing}`, or leave `{given}` out",
            )
    if params.debug and params.parallelism is not None:
        raise InvalidInput(
            "`--parallelism` has no effect with `--debug`, which goes one unit at a time",
            hint="leave one of them out",
        )


async def _check(
    params: RunParams, planned: Planned, world: Path | None, front: Front, home: Home
) -> RunOutcome:
    """Prechecks only: no lock is taken and nothing is written anywhere."""
    database = places.database_path(home, world)
    if database.exists():
        with places.open_store(database) as store:
            job = _job(params, planned, world, store)
    else:
        job = _job(params, planned, world, None)
    result = await perform(job, MemoryJournal(), front, home)
    asked = places.world_path(home, planned.graph.name, params.world)
    return RunOutcome(planned.graph, result, None, asked if world else None, planned.warnings)


def _options(params: RunParams) -> Options:
    given: dict[str, Any] = {"on_failure": params.on_failure, "dry_run": params.check}
    if params.debug:
        given["parallelism"] = 1
    elif params.parallelism is not None:
        given["parallelism"] = params.parallelism
    return Options(**given)


def _stored_options(params: RunParams, planned: Planned) -> StoredOptions:
    source = params.plan.pipeline
    return StoredOptions(
        _options(params),
        params.require_all_hosts,
        params.plan.selection,
        operation=KeptOperation.of(source),
        about=storable(planned.about),
        **without_secrets(_overrides(params)),
    )


def _is_bundled(params: RunParams) -> bool:
    source = params.plan.pipeline
    return isinstance(source, OperationParams) and source.bundle is not None


def _overrides(params: RunParams) -> tuple[str, ...]:
    """What was given by `--set`, which only a pipeline takes."""
    source = params.plan.pipeline
    return source.overrides if isinstance(source, PipelineParams) else ()


def _job(params: RunParams, planned: Planned, world: Path | None, store: Store | None) -> Job:
    name = planned.graph.name
    return Job(
        graph=planned.graph,
        hosts=planned.hosts,
        options=_options(params),
        world=world,
        durations=store.durations(name) if store is not None else {},
        ledger=store.in_ledger(name) if store is not None else {},
        first=_first(store, planned.graph) if store is not None else {},
        require_all_hosts=params.require_all_hosts,
        breakpoints=params.breakpoints,
        bundled=_is_bundled(params),
        registries=planned.about.registries if planned.about is not None else {},
        judge=planned.judge,
        gone=_gone(KeptOperation.of(params.plan.pipeline)),
    )


def _gone(kept: KeptOperation | None) -> tuple[str, ...]:
    return kept.without if kept is not None else ()


def _first(store: Store, graph: ExecutionGraph) -> dict[str, dict[str, Mapping[str, Any]]]:
    """By host what its resources were like before any run of the name, if a step goes back to it.

    The ledger holds whole files: whoever has no use for it does not load it.
    """
    found: dict[str, dict[str, Mapping[str, Any]]] = {}
    if any(node.step.kind == _UNDONE for node in graph.nodes.values()):
        for entry in store.ledger(graph.name):
            found.setdefault(entry.host, {})[entry.resource] = entry.prior
    return found


def _documents(planned: Planned, options: StoredOptions) -> Documents:
    return Documents(
        graph=planned.graph,
        spec=msgspec.json.encode(planned.hosts),
        options=msgspec.json.encode(options),
    )


async def resume(params: ResumeParams, front: Front, home: Home) -> RunOutcome:
    """Go on with a run that has not ended; what is finished is not run again."""
    with places.store_of(home, params.task) as store:
        _refuse_if_ended(store.run(params.task))
        front.begun = True
        with store.acquire(params.task) as lease:
            stored = store.run(params.task)
            _refuse_if_ended(stored)  # it may have in the meantime
            documents = store.documents(stored.id)
            _refuse_unknown_steps(stored, documents.graph)
            if not params.force:
                _refuse_if_stale(store, stored, documents.graph)
            done = store.state(stored.id).done
            _refuse_if_unready(plan_of(documents), stored, front, done)
            return await _continue(store, stored, lease, documents, front, home)


async def retry(params: RetryParams, front: Front, home: Home) -> RunOutcome:
    """Open an ended run again: what succeeded is kept, the rest is tried once more."""
    with places.store_of(home, params.task) as store, store.acquire(params.task) as lease:
        stored = store.run(params.task)
        _refuse_if_not_ended(stored)
        known = store.documents(stored.id)
        documents = _asked_for(known, params)
        corrected = await _corrected(stored, documents, params, front, home)
        _refuse_unknown_steps(stored, (corrected or documents).graph)
        if not params.force:
            _refuse_if_stale(store, stored, (corrected or documents).graph)
        changed = plan_of(corrected) if corrected is not None else None
        state = store.state(stored.id)
        units = reopening(state, plan_of(documents), changed)
        kept = state.done.keys() - set(units.units)
        _refuse_if_unready(plan_of(corrected or documents), stored, front, kept)
        front.begun = True
        renewed = corrected or (documents if documents is not known else None)
        store.reopen(lease, units, renewed)
        return await _continue(store, stored, lease, corrected or documents, front, home)


def _asked_for(documents: Documents, params: RetryParams) -> Documents:
    """What the run was made from, with what is asked for otherwise now."""
    if params.on_failure is None:
        return documents
    kept = msgspec.json.decode(documents.options, type=StoredOptions)
    options = replace(kept.options, on_failure=params.on_failure)
    changed = replace(kept, options=options)
    return replace(documents, options=msgspec.json.encode(changed))


def _refuse_if_unready(plan: Plan, stored: Run, front: Front, finished: Collection[Unit]) -> None:
    hosts = visits.named(plan.graph, plan.hosts) if stored.world is None else []
    ready = Readiness(plan.graph, front.confirm, finished=finished, hosts=hosts, vault=front.vault)
    ready.require(early(plan.hosts))


def _refuse_if_ended(stored: Run) -> None:
    if stored.status == "Success" and not stored.degraded:
        raise InvalidInput(
            f"task `{stored.id}` has ended: Success",
            hint="there is nothing left to do; run the pipeline again to look at its hosts anew",
        )
    if stored.status not in ("Pending", "Running", "Cancelled"):
        raise InvalidInput(
            f"task `{stored.id}` has ended: {stored.status}",
            hint=f"open it again with: kubexm task retry {stored.id}",
        )


def _refuse_if_not_ended(stored: Run) -> None:
    if stored.status in ("Pending", "Running"):
        raise InvalidInput(
            f"task `{stored.id}` has not ended: it was interrupted{_on_its_way_back(stored)}",
            hint=f"go on with: kubexm task resume {stored.id}",
        )


def _on_its_way_back(stored: Run) -> str:
    return " on its way back" if stored.direction == "back" else ""


def _tell_of_an_interrupted_one(store: Store, name: str, front: Front) -> None:
    """Nobody is kept from starting anew, but who does so should know what it means."""
    for last in store.runs(name, limit=1):
        if last.interrupted:
            left = ", so what it changed is undone in part" if last.direction == "back" else ""
            front.tell(
                f"note: task {last.id} of `{name}` was interrupted{_on_its_way_back(last)}{left};"
                f" this run begins anew, that one goes on with: kubexm task resume {last.id}"
            )


async def _corrected(
    stored: Run, documents: Documents, params: RetryParams, front: Front, home: Home
) -> Documents | None:
    """What the run is made of from now on, if there is a new file."""
    if params.pipeline is None:
        if stored.status == "Success" and not stored.degraded:
            raise InvalidInput(
                f"task `{stored.id}` succeeded, there is nothing to retry",
                hint="run the pipeline again, or give a changed file:"
                f" kubexm task retry {stored.id} -f FILE",
            )
        return None
    options = msgspec.json.decode(documents.options, type=StoredOptions)
    if options.operation is not None:
        world = Path(stored.world) if stored.world is not None else None
        plan = PlanParams(options.operation.on(params.pipeline, world), options.selection)
        operation = RunParams(plan, simulate=stored.world is not None)
        facts = await _facts(operation, front, home)
        planned = planning.plan(plan, Digests(home.digests), facts)
        options = replace(options, about=storable(planned.about))
    else:
        planned, options = planned_again(params.pipeline, options)
    if planned.graph.name != stored.name:
        raise InvalidInput(
            f"task `{stored.id}` ran `{stored.name}`, but the file describes"
            f" `{planned.graph.name}`",
            hint="give the corrected file of the same pipeline",
        )
    front.warn(planned.warnings)
    if stored.world is not None:
        worlds.refuse_if_another(Path(stored.world), planned, worlds.SAME)
    return _documents(planned, options)


async def _continue(
    store: Store, stored: Run, lease: Lease, documents: Documents, front: Front, home: Home
) -> RunOutcome:
    options = msgspec.json.decode(documents.options, type=StoredOptions)
    plan = plan_of(documents)
    world = Path(stored.world) if stored.world is not None else None
    job = Job(
        graph=plan.graph,
        hosts=plan.hosts,
        options=options.options,
        world=world,
        state=_within_reach(store.state(stored.id), plan, front),
        durations=store.durations(stored.name),
        ledger=store.in_ledger(stored.name),
        first=_first(store, plan.graph),
        require_all_hosts=options.require_all_hosts,
        bundled=options.operation is not None and bool(options.operation.bundle),
        registries=options.about.registries if options.about is not None else {},
        gone=_gone(options.operation),
    )
    result = await perform_held(job, store, lease, front, home)
    outcome = _outcome(store, stored.id, job, result)
    return replace(outcome, operation=_operation(options.operation))


def _within_reach(state: RunState, plan: Plan, front: Front) -> RunState:
    """What is known of a run, without changes on hosts that its file has no more."""
    known = {host.name for host in plan.hosts}
    if gone := sorted(hosts_of(state.former) - known):
        front.tell(
            f"note: what this run has changed on {', '.join(gone)} stays, also if it is rolled"
            " back: the file has no such host any more"
        )
    state.former = on_hosts(state.former, known)
    return state


def _outcome(store: Store, id: str, job: Job, result: GraphExecutionResult) -> RunOutcome:
    run = replace(store.run(id), holder=None)  # whose work is done
    return RunOutcome(job.graph, result, run, job.world, lives=store.lives(run))


def _operation(kept: KeptOperation | None) -> Operation | None:
    return kept.operation if kept is not None else None


def _refuse_unknown_steps(stored: Run, graph: ExecutionGraph) -> None:
    """The run may have been planned by a kubexm that knows other steps; no force helps there."""
    try:
        graph.validate(registry.kinds())
    except InvalidGraph as error:
        raise InvalidGraph(
            f"task `{stored.id}` has steps that this kubexm does not know",
            problems=error.problems,
            hint="go on with the kubexm that it was planned by, or run the pipeline anew",
        ) from error


def _refuse_if_stale(store: Store, stored: Run, graph: ExecutionGraph) -> None:
    later = store.later_change(stored.id)
    if later is not None:
        raise Refused(
            f"task `{later.id}` has changed `{stored.name}` since",
            hint="run the pipeline anew, or insist with --force",
        )
    changed = [name for name, old in graph.digests.items() if _digest(name) not in (None, old)]
    if changed:
        raise Refused(
            "kubexm is another version now, in which these are not what they were when"
            f" `{stored.id}` was planned: "
            + ", ".join(f"{kind} `{name}`" for kind, name in sorted(map(_parts, changed))),
            hint="run the pipeline anew, or insist with --force",
        )


def _parts(name: str) -> tuple[str, str]:
    kind, _, rest = name.partition(":")
    return kind, rest


def _digest(name: str) -> str | None:
    """What a part of the program that a graph stands on is now; None if it is no such part."""
    kind, rest = _parts(name)
    if kind == "step":
        return registry.digest(rest) if rest in registry.kinds() else ""
    if kind == "template":
        return render.digest(rest) if rest in render.names() else ""
    return None
