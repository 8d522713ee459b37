"""What else is put into the cluster once it is there, each after the one before."""

from __future__ import annotations

from typing import Any

from kubexm.config.model.addons import AddonSpec, ChartSpec
from kubexm.document.source import DataPath
from kubexm.document.writing import dumped
from kubexm.plan import ExecutionFragment, chain, node, one_of
from kubexm.plan.fragment import prefixed
from kubexm.resource.catalog import ChartRelease
from kubexm.step.helm import Released
from kubexm.step.manifests import Applied
from kubexm.task import charts
from kubexm.task.chart_files import chart_version
from kubexm.task.context import ClusterContext
from kubexm.task.objects import AGAIN, applied, rolled_out
from kubexm.templates.contexts.addons import MetricsServerManifest
from kubexm.templates.merging import merged

_THERE = ("default", "kube-system", "kube-public", "kube-node-lease")


def addons(ctx: ClusterContext) -> ExecutionFragment:
    """All add-ons of the file, in its order."""
    return chain(
        *(
            prefixed(addon.name, _addon(ctx, addon, ("spec", "addons", number)))
            for number, addon in enumerate(ctx.spec.addons)
        )
    )


def _addon(ctx: ClusterContext, addon: AddonSpec, place: DataPath) -> ExecutionFragment | None:
    if addon.component is not None:
        return _component(ctx, addon)
    if addon.chart is not None:
        return _chart(ctx, addon, addon.chart, place)
    if addon.inline is not None:
        return _objects(ctx, "objects", addon, addon.inline)
    files = enumerate(addon.manifests or ())
    return chain(
        *(
            _objects(ctx, f"file-{at + 1}", addon, ctx.files.text(path, (*place, "manifests", at)))
            for at, path in files
        )
    )


def _objects(
    ctx: ClusterContext, title: str, addon: AddonSpec, text: str
) -> ExecutionFragment | None:
    if not text:
        return None  # that it can't be read is told at its place
    content = f"{_namespace(addon.namespace)}{text}"
    step = Applied(name=f"{addon.name}-{title}", content=content, namespace=addon.namespace)
    hosts = one_of(ctx.control_planes)
    return node(title, step, on=hosts, retry=AGAIN, timeout=addon.timeout)


def _namespace(name: str) -> str:
    """The object of a namespace that is not there by itself."""
    if name in _THERE:
        return ""
    document = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    return f"{dumped(document)}---\n"


def _component(ctx: ClusterContext, addon: AddonSpec) -> ExecutionFragment | None:
    context = MetricsServerManifest(
        image=ctx.image("metrics-server"),
        # Kubelets vouch for themselves until somebody signs what they ask for.
        insecure_tls=not ctx.spec.kubernetes.kubelet.config.get("serverTLSBootstrap", False),
    )
    return chain(
        applied(ctx, "objects", "metrics-server/manifest", context),
        rolled_out(ctx, "runs", "deployment/metrics-server", "kube-system", addon.timeout),
    )


def _chart(
    ctx: ClusterContext, addon: AddonSpec, chart: ChartSpec, place: DataPath
) -> ExecutionFragment | None:
    step = Released(
        name=addon.name,
        namespace=addon.namespace,
        values=_values(ctx, chart, (*place, "chart")),
        timeout=addon.timeout,
        **_source(ctx, chart, (*place, "chart", "name")),
    )
    hosts = one_of(ctx.control_planes)
    return node("release", step, on=hosts, retry=AGAIN, timeout=addon.timeout + 60)


def _source(ctx: ClusterContext, chart: ChartSpec, place: DataPath) -> dict[str, Any]:
    """Where a chart comes from: the store, or a file of the operator's."""
    if chart.repository is not None:
        known = ChartRelease(
            name=chart.name, version=chart.version or "", repository=chart.repository
        )
        return charts.source(known)
    digest = ctx.files.digest(chart.name, place)
    path = ctx.files.path(chart.name)
    version = chart.version or (chart_version(path, ctx.files, place) if digest else "")
    return {"source": str(path), "sha256": digest, "version": version}


def _values(ctx: ClusterContext, chart: ChartSpec, place: DataPath) -> dict[str, Any]:
    """The values of all files, the later over the earlier, and those of the cluster file last."""
    values: dict[str, Any] = {}
    for at, path in enumerate(chart.values_files):
        values = merged(values, ctx.files.data(path, (*place, "valuesFiles", at)))
    found: dict[str, Any] = merged(values, chart.values)
    return found
