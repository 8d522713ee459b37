"""The control planes of a cluster."""

from __future__ import annotations

from kubexm.plan import ExecutionFragment, parallel
from kubexm.plan.scope import module
from kubexm.task import charts
from kubexm.task import control_plane as task
from kubexm.task.context import ClusterContext


@module("control-plane")
def control_plane(ctx: ClusterContext) -> ExecutionFragment | None:
    """The first begins the cluster, the others join it, and this machine is let in."""
    return parallel(
        task.prepare(ctx),
        task.init(ctx),
        task.join(ctx),
        task.settings(ctx),
        task.kube_proxy(ctx),
        task.access(ctx),
        task.token(ctx),
        charts.helm(ctx),
    )
