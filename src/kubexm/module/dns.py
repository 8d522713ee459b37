"""Names inside the cluster."""

from __future__ import annotations

from kubexm.plan import ExecutionFragment, parallel
from kubexm.plan.scope import module
from kubexm.task import dns as task
from kubexm.task.context import ClusterContext


@module("dns")
def dns(ctx: ClusterContext) -> ExecutionFragment | None:
    """CoreDNS, a cache on every kube node if there is to be one, and that they answer."""
    return parallel(task.coredns(ctx), task.node_local(ctx), task.answers(ctx))
