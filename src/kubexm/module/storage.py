"""Where pods keep what they write."""

from __future__ import annotations

from kubexm.plan import ExecutionFragment, parallel
from kubexm.plan.scope import module
from kubexm.task import storage as task
from kubexm.task.context import ClusterContext


@module("storage")
def storage(ctx: ClusterContext) -> ExecutionFragment | None:
    """The kinds of volumes that the file names."""
    return parallel(task.local_path(ctx), task.nfs(ctx))
