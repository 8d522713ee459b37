"""Objects of the cluster, laid by whichever control plane answers."""

from __future__ import annotations

from kubexm.plan import ExecutionFragment, node, one_of
from kubexm.plan.policy import RetryPolicy
from kubexm.step.kube import RolledOut
from kubexm.step.manifests import Applied
from kubexm.task.context import ClusterContext
from kubexm.task.writing import referring, template
from kubexm.templates.context import Context

AGAIN = RetryPolicy(
    attempts=6, delay=2.0, exponential_backoff=True, max_delay=20.0, waits_again=False
)
"""An API server that has just begun may not answer for a moment."""
SECONDS = 600.0
"""How long to wait for what comes by itself; what is not there by then does not come."""


def applied(
    ctx: ClusterContext, title: str, name: str, context: Context
) -> ExecutionFragment | None:
    """Objects by one of our templates."""
    fields = template(ctx, name, context)
    fields.pop("format")  # it is always that of manifests
    step = referring(Applied(name=title, **fields))
    return node(title, step, on=one_of(ctx.control_planes), retry=AGAIN)


def rolled_out(
    ctx: ClusterContext, title: str, resource: str, namespace: str, seconds: float = SECONDS
) -> ExecutionFragment | None:
    """All pods of a workload run; without a pod network nobody waits for that."""
    if ctx.spec.network.plugin == "none":
        return None
    step = RolledOut(resource=resource, namespace=namespace)
    return node(title, step, on=one_of(ctx.control_planes), timeout=seconds, retry=AGAIN)
