"""Workers: prepared while the control plane comes up, and let in when it is there."""

from __future__ import annotations

from kubexm.common import layout
from kubexm.plan import ExecutionFragment, node, parallel, per_host
from kubexm.plan.policy import ResourceConstraints
from kubexm.plan.scope import task
from kubexm.task import control_plane, kubelet
from kubexm.task.context import ClusterContext
from kubexm.task.writing import directories, referring

AT_ONCE = 64
"""So many hosts join at the same time: each of them asks the API servers for much."""


@task("prepare")
def prepare(ctx: ClusterContext) -> ExecutionFragment | None:
    """All that a worker needs before it can join."""
    hosts = ctx.workers
    return parallel(
        kubelet.places(ctx, hosts),
        # On a control plane kubeadm makes it; without it a kubelet complains all the time.
        directories(hosts, layout.MANIFESTS),
        kubelet.programs(ctx, hosts),
        kubelet.settings(ctx, hosts),
    )


@task("join")
def join(ctx: ClusterContext) -> ExecutionFragment | None:
    """The workers join, many at a time."""
    step = referring(control_plane.worker_join(ctx))
    limits = ResourceConstraints(global_concurrency_limit=AT_ONCE)
    return per_host(
        node(
            "node",
            step,
            on=ctx.workers,
            limits=limits,
            timeout=control_plane.SECONDS,
            retry=control_plane.AGAIN,
        ),
        node("kubelet", kubelet.step(ctx), on=ctx.workers),
    )
