"""Workers of a cluster."""

from __future__ import annotations

from kubexm.plan import ExecutionFragment, parallel
from kubexm.plan.scope import module
from kubexm.task import workers as task
from kubexm.task.context import ClusterContext


@module("workers")
def workers(ctx: ClusterContext) -> ExecutionFragment | None:
    """Every worker is prepared, and joins."""
    return parallel(task.prepare(ctx), task.join(ctx))
