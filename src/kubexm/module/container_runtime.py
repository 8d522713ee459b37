"""What runs containers, and the images that will be wanted."""

from __future__ import annotations

from kubexm.plan import ExecutionFragment, parallel, per_host
from kubexm.plan.scope import module
from kubexm.task import container_runtime as task
from kubexm.task import images
from kubexm.task.context import ClusterContext


@module("container-runtime")
def container_runtime(ctx: ClusterContext) -> ExecutionFragment | None:
    """containerd runs on every host that has containers, and has the images they need."""
    return parallel(
        task.places(ctx),
        per_host(
            parallel(task.programs(ctx), task.settings(ctx)),
            task.service(ctx),
            images.present(ctx),
        ),
        task.plugins(ctx),
        task.crictl(ctx),
    )
