"""The pod network."""

from __future__ import annotations

from kubexm.plan import ExecutionFragment, parallel
from kubexm.plan.scope import module
from kubexm.task import network as task
from kubexm.task.context import ClusterContext


@module("network")
def network(ctx: ClusterContext) -> ExecutionFragment | None:
    """Packets go between pods, kube nodes are ready, and marked as the file says."""
    return parallel(
        task.plugin(ctx),
        task.controllers(ctx),
        task.routes(ctx),
        task.ready(ctx),
        task.marks(ctx),
    )
