"""One run from its first connection to its last record, whoever asked for it."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from kubexm import engine, logger
from kubexm.app import visits
from kubexm.app.reaching import Reach
from kubexm.app.readiness import Readiness, Scopes
from kubexm.common.assets import RegistrySource
from kubexm.common.counting import counted
from kubexm.common.digests import Digests
from kubexm.common.paths import Home
from kubexm.connector.base import Claim
from kubexm.engine import Bus, Control, Journal, Options
from kubexm.engine.bus import Subscription
from kubexm.engine.debug import Ask, Debugger
from kubexm.errors import LeaseLost, Problem, Refused
from kubexm.plan import events
from kubexm.plan.graph import ExecutionGraph
from kubexm.plan.records import RunState
from kubexm.plan.result import GraphExecutionResult
from kubexm.runtime.assets import NOTHING, Assets
from kubexm.runtime.build import Confirm, Runtime, RuntimeConfig, nobody_to_ask
from kubexm.runtime.ledger import Book
from kubexm.runtime.secrets import SecretVault
from kubexm.spec.inventory import InventoryHost
from kubexm.spec.loader import Loader
from kubexm.store import Lease, Store
from kubexm.store.process import Process

if TYPE_CHECKING:
    from kubexm.sim.world import World

SHOWN_HOSTS = 20
ASSET_KINDS = frozenset(
    (
        *("artifact", "binary", "unpacked", "image", "image-archive", "image-pushed"),
        *("chart-archive", "helm-release", "manifest-file", "undone"),
    )
)
"""Steps that take something out of the store of artifacts."""
Show = Callable[[Subscription, ExecutionGraph], Awaitable[None]]
"""Follows the events of a run until they end."""
Facts = Mapping[str, Mapping[str, Any]]
"""What hosts told of themselves, by host."""


def unheard(warnings: Sequence[Problem]) -> None:
    """Say them to nobody: the outcome has them too."""


def unkept(facts: Facts) -> None:
    """Keep them nowhere: a dry run leaves nothing behind."""


class Front(msgspec.Struct):
    """What a front door brings along: who watches, who answers, who may stop the run."""

    control: Control = msgspec.field(default_factory=Control)
    shows: Sequence[Show] = ()
    confirm: Confirm = nobody_to_ask
    ask: Ask | None = None
    vault: SecretVault = msgspec.field(default_factory=SecretVault)
    """The secrets of the run; it knows whom to ask for those that only a person has."""
    warn: Callable[[Sequence[Problem]], None] = unheard
    tell: Callable[[str], None] = lambda _: None
    """Takes what is worth knowing before a run begins."""
    begun: bool = False
    """Whether there is something to be stopped in order; before, one may go at any time."""


class Job(msgspec.Struct, frozen=True):
    """All that one execution needs to know."""

    graph: ExecutionGraph
    hosts: tuple[InventoryHost, ...]
    options: Options
    world: Path | None = None
    state: RunState = msgspec.field(default_factory=RunState)
    durations: Mapping[str, float] = msgspec.field(default_factory=dict)
    ledger: Mapping[str, frozenset[str]] = msgspec.field(default_factory=dict)
    """By host the resources of which the store has the first entry."""
    first: Mapping[str, Mapping[str, Mapping[str, Any]]] = msgspec.field(default_factory=dict)
    """Those entries themselves, by host and resource, if the graph goes back to them."""
    require_all_hosts: bool = False
    breakpoints: tuple[str, ...] = ()
    bundled: bool = False
    """Whether nobody outside may be asked: all comes out of the store of artifacts."""
    registries: Mapping[str, RegistrySource] = {}
    """How registries are reached that images and charts are taken from, by their names."""
    judge: Callable[[Facts], Sequence[Problem]] | None = None
    """Holds hosts against each other before anything is changed; warnings, or `Refused`."""
    gone: tuple[str, ...] = ()
    """Hosts that are gone for good: nothing is known of them once all else is done."""
    claim: Claim | None = None
    """What tells this holder of the run from an earlier one; a dry run holds nothing."""


async def perform(
    job: Job,
    journal: Journal,
    front: Front,
    home: Home,
    keep: Callable[[Facts], None] = unkept,
) -> GraphExecutionResult:
    """Open the hosts, execute the graph, and let everyone watch."""
    front.begun = True
    bus = Bus()
    # No task group: an error of the run would come out of it wrapped in another.
    views = [asyncio.create_task(_shown(s, bus.subscribe(), job.graph)) for s in front.shows]
    if not job.options.dry_run:  # it only looks, which takes another time
        bus.publish(events.Expected(at=time.time(), seconds=dict(job.durations)))
    try:
        return await _execute(job, journal, front, home, bus, keep)
    finally:
        bus.close()
        await journal.close()
        await asyncio.gather(*views)


async def _shown(show: Show, subscription: Subscription, graph: ExecutionGraph) -> None:
    """Let somebody watch; a terminal that is gone must not take the run with it."""
    try:
        await show(subscription, graph)
    except Exception as error:  # noqa: BLE001 whatever is wrong with a view, the run goes on
        logger.get().warning("a view of the run ended early", reason=repr(error))


async def _execute(
    job: Job,
    journal: Journal,
    front: Front,
    home: Home,
    bus: Bus,
    keep: Callable[[Facts], None],
) -> GraphExecutionResult:
    load: engine.Load = Loader()
    async with _runtime(job, front, home) as runtime:
        if front.ask is not None:
            debugger = Debugger(front.ask, front.control, job.breakpoints, runtime.redact)
            load = debugger.wrap(load)
        if job.require_all_hosts and runtime.unreachable:
            raise _not_all(runtime.unreachable)
        readiness(job, front).require(_told(runtime))
        if job.judge is not None:
            front.warn(job.judge(runtime.facts()))
        keep(runtime.facts())
        gc.freeze()  # what is loaded by now stays, and nobody has to look at it again
        result = await engine.execute(
            job.graph,
            runtime,
            job.options,
            load=load,
            journal=journal,
            state=job.state,
            control=front.control,
            durations=job.durations,
            bus=bus,
        )
        keep(runtime.facts())  # a host may have been rebooted
        return result


def readiness(job: Job, front: Front, places: Mapping[str, str] | None = None) -> Readiness:
    """What a job asks for beside its hosts, and who is there to answer."""
    return Readiness(
        job.graph,
        front.confirm,
        job.options.dry_run,
        job.state.done,
        places or {},
        _reached(job),
        front.vault,
    )


def _reached(job: Job) -> list[InventoryHost]:
    """The hosts that a connection is made to: none in a simulated world."""
    if job.world is not None:
        return []
    idle = visits.idle(job.graph, job.hosts, job.state)
    return [
        host
        for host in visits.named(job.graph, job.hosts, job.state.former)
        if host.name not in idle
    ]


def _told(runtime: Runtime) -> Scopes:
    """What is known of the hosts once they have answered."""
    views = {name: runtime.view(name, {}) for name in runtime.reached()}
    return {
        name: {"vars": view.vars, "host": view.host, "facts": view.facts}
        for name, view in views.items()
    }


@asynccontextmanager
async def _runtime(job: Job, front: Front, home: Home) -> AsyncIterator[Runtime]:
    """The hosts of a job, real or simulated, open."""
    with ExitStack() as stack:
        world = None
        if job.world is not None:
            from kubexm.sim.world import World

            world = stack.enter_context(closing(World.open(job.world)))
            if job.claim is not None:
                world.claim(job.claim)
        needed = visits.named(job.graph, job.hosts, job.state.former)
        reach = stack.enter_context(closing(Reach(home, job.claim, front.vault, world)))
        reach.call(_reached(job))
        config = RuntimeConfig(
            hosts=[reach.host(host) for host in needed],
            idle=visits.idle(job.graph, job.hosts, job.state),
            asked=visits.asked(job.graph, job.state.former),
            books={host.name: _book(host.name, job) for host in needed},
            confirm=front.confirm,
            secrets=front.vault,
            digests=Digests(home.digests),
            assets=_assets(job, home, world, front.vault),
        )
        async with Runtime.build(config) as runtime:
            yield runtime


def _assets(job: Job, home: Home, world: World | None, vault: SecretVault) -> Assets:
    """Files and images that go to hosts; most runs have none, and load nothing for them."""
    if not any(node.step.kind in ASSET_KINDS for node in job.graph):
        return NOTHING
    if world is not None:
        from kubexm.sim.assets import SimAssets

        return SimAssets(world)
    from kubexm.app import bills
    from kubexm.resource.bundle_gather import Sources
    from kubexm.resource.store import Store as Artifacts
    from kubexm.runtime.store_assets import StoreAssets

    # A registry that kubexm can't reach as the file says was told of before; hosts may reach it.
    ways, _ = ({}, {}) if job.bundled else bills.registries(job.registries, vault)
    sources = Sources(options=bills.usual_options(), registries=ways)
    return StoreAssets(Artifacts(home.artifacts), sources, outside=not job.bundled)


async def perform_held(
    job: Job, store: Store, lease: Lease, front: Front, home: Home
) -> GraphExecutionResult:
    """The same under a lease: renewed meanwhile, and stopped when it is lost or cancelled."""
    loop = asyncio.get_running_loop()

    def lost(error: LeaseLost) -> None:
        loop.call_soon_threadsafe(journal.abandon, error)

    def cancelled() -> None:
        loop.call_soon_threadsafe(front.control.cancel, "cancelled by `kubexm task cancel`")

    logger.bind(task_id=lease.run)
    store.begin(lease)
    journal = store.journal(lease)
    lease.keep(lost, cancelled)
    claim = Claim(lease.name, lease.token, lease.run, who=str(Process.current()))
    keep = _keeping(store, lease)
    result = await perform(replace(job, claim=claim), journal, front, home, keep)
    if job.gone and result.status == "Success" and not result.degraded:
        store.forget(lease, job.gone)
    store.finish(lease, result.status, message=result.message, degraded=result.degraded)
    store.learn_durations(lease.name, learned(result))
    return result


def _keeping(store: Store, lease: Lease) -> Callable[[Facts], None]:
    """Stores facts, each time only what is new."""
    kept: dict[str, Mapping[str, Any]] = {}

    def keep(facts: Facts) -> None:
        new = {host: told for host, told in facts.items() if kept.get(host) != told}
        if new:
            store.keep_facts(lease, new)
            kept.update(new)

    return keep


def learned(result: GraphExecutionResult) -> dict[str, float]:
    """How long each node took where it ran, on average over its hosts."""
    seconds: dict[str, float] = {}
    for id, node in result.node_results.items():
        times = [
            (host.end_time - host.start_time).total_seconds()
            for host in node.host_results.values()
            if host.status == "Success" and host.start_time and host.end_time
        ]
        if times:
            seconds[id] = sum(times) / len(times)
    return seconds


def _not_all(unreachable: Mapping[str, str]) -> Refused:
    names = "; ".join(f"{name}: {reason}" for name, reason in sorted(unreachable.items()))
    return Refused(
        f"{counted(len(unreachable), 'host')} can't be reached: {names}",
        hint="mend them, or go without them by leaving `--require-all-hosts` out",
    )


def _book(host: str, job: Job) -> Book:
    """The ledger of a host: what this run has found, and what earlier ones have kept."""
    known = job.ledger.get(host, frozenset())
    found, first = job.state.priors.get(host, {}), job.first.get(host, {})
    return Book(job.graph.name, dict(found), known, dict(first))
