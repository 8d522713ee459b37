"""What has to hold before anything is changed."""

from __future__ import annotations

from kubexm.plan.fragment import ExecutionFragment
from kubexm.plan.scope import module
from kubexm.task import preflight as task
from kubexm.task.context import ClusterContext


@module("preflight")
def preflight(ctx: ClusterContext) -> ExecutionFragment | None:
    """Every host is fit for its part in the cluster; else nothing begins on it."""
    return task.hosts(ctx)
