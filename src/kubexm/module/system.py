"""The operating system of every host."""

from __future__ import annotations

from kubexm.plan import ExecutionFragment, parallel
from kubexm.plan.scope import module
from kubexm.task import clock
from kubexm.task import system as task
from kubexm.task.context import ClusterContext


@module("system")
def system(ctx: ClusterContext) -> ExecutionFragment | None:
    """Names, packages, the kernel and the clock, on each host for itself."""
    return parallel(
        task.places(ctx),
        task.names(ctx),
        task.packages(ctx),
        task.kernel(ctx),
        task.zone(ctx),
        clock.kept(ctx),
    )
