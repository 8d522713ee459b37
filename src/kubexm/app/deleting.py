"""The deletion of a cluster: backwards through all plans that it was made by."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

import msgspec

from kubexm.app import known, leftovers, places
from kubexm.app.foreknown import plan_of
from kubexm.app.leftovers import Leftovers, Newest, as_fragment
from kubexm.app.params import DeletionParams
from kubexm.common.nearest import did_you_mean
from kubexm.common.paths import Home
from kubexm.common.roles import CONTROL_NODE
from kubexm.errors import InvalidInput
from kubexm.pipeline.delete import backwards
from kubexm.plan.fragment import ExecutionFragment, replace
from kubexm.plan.graph import ExecutionGraph, as_graph
from kubexm.sim.settings import WorldSettings
from kubexm.spec.inventory import InventoryHost
from kubexm.spec.planner import PlannedPipeline
from kubexm.step import registry
from kubexm.store import Store


def plan(params: DeletionParams) -> PlannedPipeline:
    """The whole graph; `InvalidInput` if no such cluster is known."""
    home = Home.from_environment()
    cluster = known.cluster_of(home, params.name, params.world)
    with places.open_store(places.database_path(home, params.world)) as store:
        newest = plan_of(store.documents(cluster.made_by))
        created = PlannedPipeline(newest.graph, newest.hosts, WorldSettings(), about=cluster.about)
        return _turned(created, store, params.without)


def turned(
    created: PlannedPipeline, world: Path | None, without: Collection[str]
) -> PlannedPipeline:
    """The way back of a creation, and of others that this machine knows of the same cluster."""
    database = places.database_path(Home.from_environment(), world)
    if not database.exists():
        return _turned(created, None, without)
    with places.open_store(database) as store:
        return _turned(created, store, without)


def _turned(
    created: PlannedPipeline, store: Store | None, without: Collection[str]
) -> PlannedPipeline:
    noted = store.makers(created.graph.name) if store is not None else {}
    _refuse_unknown(without, {*noted, *(host.name for host in created.hosts)})
    graph = created.graph
    newest = Newest(graph.name, _on_others(as_fragment(graph), without), created.hosts)
    left = Leftovers((), ()) if store is None else leftovers.found(store, newest, without)
    hosts = tuple(host for host in (*created.hosts, *left.hosts) if host.name not in without)
    return msgspec.structs.replace(
        created,
        graph=_as_graph(graph, backwards(newest.create, left.former), hosts),
        hosts=hosts,
        judge=None,
    )


def _refuse_unknown(without: Iterable[str], hosts: Collection[str]) -> None:
    there = sorted({*hosts} - {CONTROL_NODE})
    for name in without:
        if name not in there:
            message = f"`--without {name}`: the cluster has no host of that name"
            raise InvalidInput(message, hint=did_you_mean(name, there))


def _on_others(create: ExecutionFragment, without: Collection[str]) -> ExecutionFragment:
    """A plan without these hosts; what was on no other is there for its order alone."""
    nodes = (
        replace(node, hosts=tuple(host for host in node.hosts if host not in without))
        for node in create.nodes
    )
    return ExecutionFragment(tuple(nodes), create.joins)


def _as_graph(
    made: ExecutionGraph, fragment: ExecutionFragment, hosts: Iterable[InventoryHost]
) -> ExecutionGraph:
    kinds = sorted({node.step.kind for node in fragment.nodes})
    return as_graph(
        made.name,
        fragment,
        hosts=tuple(host.name for host in hosts),
        pools=made.pools,
        digests={f"step:{kind}": registry.digest(kind) for kind in kinds},
    )
