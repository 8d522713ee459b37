"""A registry of the cluster's own."""

from __future__ import annotations

from kubexm.plan import ExecutionFragment, chain, parallel, per_host
from kubexm.plan.scope import module
from kubexm.task import images
from kubexm.task import registry as task
from kubexm.task.context import ClusterContext


@module("registry")
def registry(ctx: ClusterContext) -> ExecutionFragment | None:
    """The registry runs, and has all images."""
    if not ctx.registries:
        return None
    served = per_host(parallel(task.settings(ctx), task.image(ctx)), task.service(ctx))
    return chain(parallel(served, task.authority(ctx)), images.pushed(ctx))
