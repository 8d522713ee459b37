"""What else is put into the cluster."""

from __future__ import annotations

from kubexm.plan import ExecutionFragment
from kubexm.plan.scope import module
from kubexm.task import addons as task
from kubexm.task.context import ClusterContext


@module("add-ons")
def addons(ctx: ClusterContext) -> ExecutionFragment | None:
    """Add-ons of the file, in its order."""
    return task.addons(ctx)
