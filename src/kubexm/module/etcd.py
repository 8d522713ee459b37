"""etcd, as far as kubeadm does not run it."""

from __future__ import annotations

from kubexm.plan import ExecutionFragment, parallel, per_host
from kubexm.plan.scope import module
from kubexm.task import etcd as task
from kubexm.task.context import ClusterContext


@module("etcd")
def etcd(ctx: ClusterContext) -> ExecutionFragment | None:
    """Members of their own begin together; copies are made of whichever there are."""
    if not ctx.etcd:
        return parallel(per_host(task.programs(ctx), task.backup(ctx)))
    return per_host(
        parallel(task.programs(ctx), task.prepare(ctx)),
        task.service(ctx),
        task.health(ctx),
        task.settings(ctx),
        task.backup(ctx),
    )
