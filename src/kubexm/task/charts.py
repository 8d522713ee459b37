"""Helm charts: fetched once to the machine that runs kubexm."""

from __future__ import annotations

from typing import Any

from kubexm.common import layout
from kubexm.common.roles import CONTROL_NODE
from kubexm.plan import ExecutionFragment, node, parallel
from kubexm.plan.policy import ResourceConstraints, RetryPolicy
from kubexm.plan.scope import task
from kubexm.resource import keys
from kubexm.resource.catalog import ChartRelease
from kubexm.step.charts import ChartStored
from kubexm.task.artifacts import DOWNLOADS, unpacked
from kubexm.task.context import ClusterContext

_AGAIN = RetryPolicy(attempts=3, delay=2.0, exponential_backoff=True)


@task("charts")
def stored(ctx: ClusterContext) -> ExecutionFragment | None:
    """Every chart of the bill of materials, once it turns out to be needed."""
    return parallel(*(_stored(ctx, chart) for chart in ctx.bill.charts))


def _stored(ctx: ClusterContext, chart: ChartRelease) -> ExecutionFragment | None:
    step = ChartStored(
        name=chart.name,
        version=chart.version,
        repository=chart.repository,
        value=_value(chart),
        outside=not ctx.is_bundled,
    )
    limits = ResourceConstraints(pools=(DOWNLOADS,))
    return node(chart.name, step, on=(CONTROL_NODE,), retry=_AGAIN, limits=limits)


@task("helm")
def helm(ctx: ClusterContext) -> ExecutionFragment | None:
    """What installs charts, on control planes."""
    program = {"linux-{arch}/helm": f"{layout.BINARIES}/helm"}
    return unpacked(ctx, "helm", ctx.control_planes, program)


def source(chart: ChartRelease) -> dict[str, Any]:
    """The fields of a step that takes a chart out of the store."""
    return {
        "artifact": keys.of_chart(chart),
        "version": chart.version,
        "value": _value(chart),
    }


def _value(chart: ChartRelease) -> str:
    return f"chart_{chart.name}".replace("-", "_").replace(".", "_")
