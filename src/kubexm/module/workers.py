"""Workers of a cluster."""

from __future__ import annotations

from kubexm.plan import ExecutionFragment, parallel
from kubexm.plan.fragment import settled
from kubexm.plan.policy import ALL_HOSTS, Tolerance
from kubexm.plan.scope import module
from kubexm.task import workers as task
from kubexm.task.context import ClusterContext


@module("workers")
def workers(ctx: ClusterContext) -> ExecutionFragment | None:
    """Every worker is prepared and joins; one that fails leaves the others alone."""
    whole = parallel(task.prepare(ctx), task.join(ctx))
    return settled(whole, tolerance=Tolerance(failed=ALL_HOSTS))
