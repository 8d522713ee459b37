"""Every host is asked whether it is fit for its part in the cluster, before anything is changed."""

from __future__ import annotations

from kubexm.plan import ExecutionFragment, node, parallel
from kubexm.plan.scope import task
from kubexm.step.preflight import SECONDS
from kubexm.task.context import ClusterContext
from kubexm.task.preflight_groups import groups


@task("hosts")
def hosts(ctx: ClusterContext) -> ExecutionFragment | None:
    """Every host is fit for its part."""
    cilium = ctx.version("cilium") if ctx.spec.network.plugin == "cilium" else ""
    found = groups(ctx.declared, ctx.arch, cilium)
    return parallel(
        *(node(group.name, group.step, on=group.hosts, timeout=SECONDS) for group in found)
    )
