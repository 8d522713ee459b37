"""Files, charts and images that go through the machine that runs kubexm."""

from __future__ import annotations

from kubexm.plan import ExecutionFragment, parallel
from kubexm.plan.scope import module
from kubexm.task import artifacts, charts, images
from kubexm.task.context import ClusterContext


@module("assets")
def assets(ctx: ClusterContext) -> ExecutionFragment | None:
    """What has to be at hand; each is had only once something turns out to need it."""
    return parallel(artifacts.files(ctx), charts.stored(ctx), images.stored(ctx))
