"""The deletion of a cluster by its name: backwards through the plan that it was made by."""

from __future__ import annotations

import msgspec

from kubexm.app import known, places
from kubexm.app.params import DeletionParams
from kubexm.common.paths import Home
from kubexm.pipeline.delete import backwards
from kubexm.plan.fragment import ExecutionFragment
from kubexm.plan.graph import ExecutionGraph, as_graph
from kubexm.sim.settings import WorldSettings
from kubexm.spec.inventory import InventoryHost
from kubexm.spec.planner import PlannedPipeline
from kubexm.step import registry


def plan(params: DeletionParams) -> PlannedPipeline:
    """The whole graph; `InvalidInput` if no such cluster is known."""
    home = Home.from_environment()
    cluster = known.cluster_of(home, params.name, params.world)
    with places.store_of(home, cluster.made_by) as store:
        documents = store.documents(cluster.made_by)
    return PlannedPipeline(
        graph=_backwards(documents.graph),
        hosts=msgspec.json.decode(documents.spec, type=tuple[InventoryHost, ...]),
        world=WorldSettings(),
        about=cluster.about,
    )


def _backwards(made: ExecutionGraph) -> ExecutionGraph:
    create = ExecutionFragment(tuple(made.nodes.values()), tuple(made.joins.values()))
    fragment = backwards(create)
    kinds = sorted({node.step.kind for node in fragment.nodes})
    return as_graph(
        made.name,
        fragment,
        hosts=made.hosts,
        pools=made.pools,
        digests={f"step:{kind}": registry.digest(kind) for kind in kinds},
    )
