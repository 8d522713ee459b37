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
    crictl, has_logins = task.crictl(ctx), bool(task.logins(ctx))
    return parallel(
        task.places(ctx),
        per_host(
            # Who pulls with a login waits for the service, which needs no crictl itself.
            parallel(task.programs(ctx), task.settings(ctx), crictl if has_logins else None),
            task.service(ctx),
            images.present(ctx),
        ),
        task.plugins(ctx),
        None if has_logins else crictl,
    )
