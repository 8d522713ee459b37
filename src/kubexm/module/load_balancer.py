"""What stands in front of the control planes."""

from __future__ import annotations

from kubexm.plan import ExecutionFragment, parallel
from kubexm.plan.scope import module
from kubexm.task import balancer
from kubexm.task.context import ClusterContext


@module("load-balancer")
def load_balancer(ctx: ClusterContext) -> ExecutionFragment | None:
    """The endpoint of the kind that the file names, as far as kubexm sets it up."""
    return parallel(
        balancer.haproxy(ctx) if ctx.balancers else None,
        balancer.keepalived(ctx) if ctx.balancers else None,
        balancer.on_workers(ctx),
        balancer.kube_vip(ctx),
    )
