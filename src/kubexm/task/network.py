"""The pod network, and kube nodes that are ready once it is there."""

from __future__ import annotations

from typing import Any

from kubexm.common import layout
from kubexm.plan import ExecutionFragment, node, one_of, parallel, per_host
from kubexm.plan.scope import task
from kubexm.step.helm import Released
from kubexm.step.kube import PodNetworks
from kubexm.step.kube_node import MarkedNode
from kubexm.step.kube_nodes import NodesReady
from kubexm.step.manifests import AppliedFile
from kubexm.step.services import Service
from kubexm.task import artifacts, charts
from kubexm.task.context import ClusterContext
from kubexm.task.objects import AGAIN, SECONDS, applied, rolled_out
from kubexm.task.writing import as_data, of_host, of_run, rendered
from kubexm.templates.contexts.network import CalicoChanges, CiliumValues, FlannelManifest
from kubexm.templates.contexts.routed import (
    CNI_CONFIG,
    SCRIPT,
    UNIT,
    RoutedCni,
    RoutedRoutes,
    RoutedUnit,
)

_NETWORKS = "pod_networks"


@task("plugin")
def plugin(ctx: ClusterContext) -> ExecutionFragment | None:
    """What carries packets between pods, where it runs in the cluster itself."""
    plans = {"flannel": _flannel, "calico": _calico, "cilium": _cilium}
    plan = plans.get(ctx.spec.network.plugin)
    return None if plan is None else plan(ctx)


def _flannel(ctx: ClusterContext) -> ExecutionFragment | None:
    spec = ctx.spec.network
    context = FlannelManifest(
        image=ctx.image("flannel", "flannel"),
        plugin_image=ctx.image("flannel", "cni-plugin"),
        **_cidrs(ctx),
        backend=spec.flannel.backend,
        interface=spec.flannel.interface or "",
        # Told one address, it takes nothing for the other family.
        by_host_address=spec.flannel.interface is None and len(ctx.declared.pods) == 1,
        mtu=spec.mtu,
    )
    return applied(ctx, "flannel", "flannel/manifest", context)


def _calico(ctx: ClusterContext) -> ExecutionFragment | None:
    """Calico publishes its objects as one file; only what is different is said here."""
    (file,) = ctx.binaries("calico", "manifest")
    names = ctx.catalog.images("calico", file.version)
    step = AppliedFile(
        name="calico",
        resource="daemonset/calico-node",
        images={name: ctx.image("calico", title) for title, name in names.items()},
        **_changes(ctx),
        **artifacts.source(file),
    )
    return node("calico", step, on=one_of(ctx.control_planes), retry=AGAIN)


def _changes(ctx: ClusterContext) -> dict[str, Any]:
    """The fields of the step by what the template says: settings, environment, probes."""
    spec = ctx.spec.network
    context = CalicoChanges(
        **_cidrs(ctx),
        encapsulation=spec.calico.encapsulation,
        block_size=spec.calico.block_size,
        mtu=spec.mtu,
    )
    found: dict[str, dict[str, Any]] = {"config": {}, "environment": {}, "unprobed": {}}
    for change in as_data(ctx, "calico/changes", context)["set"]:
        if "merge" in change:
            found["config"][change["object"].partition("/")[2]] = change["merge"]["data"]
        else:
            found["environment"][change["container"]] = change["env"]
            found["unprobed"][change["container"]] = tuple(change["without"])
    return found


def _cilium(ctx: ClusterContext) -> ExecutionFragment | None:
    spec = ctx.spec.network
    context = CiliumValues(
        api_host=ctx.declared.endpoint_host,
        api_port=ctx.spec.endpoint.port,
        agent_image=ctx.image("cilium", "agent"),
        envoy_image=ctx.image("cilium", "envoy"),
        operator_image=ctx.image("cilium", "operator"),
        replaces_kube_proxy=ctx.spec.kubernetes.kube_proxy.mode == "none",
        **_cidrs(ctx),
        node_mask=spec.node_mask,
        node_mask_ipv6=spec.node_mask_ipv6,
        mtu=spec.mtu,
        operator_replicas=min(2, len(ctx.kube_nodes)),
    )
    chart = next(chart for chart in ctx.bill.charts if chart.name == "cilium")
    values = as_data(ctx, "cilium/values", context, spec.cilium.values)
    # Some of it waits for nodes that have yet to join, and so must not hold up anything.
    step = Released(
        name="cilium", namespace="kube-system", values=values, wait=False, **charts.source(chart)
    )
    return node("cilium", step, on=one_of(ctx.control_planes), timeout=SECONDS, retry=AGAIN)


@task("controllers")
def controllers(ctx: ClusterContext) -> ExecutionFragment | None:
    """What looks after the pod network runs too, where it is not the network itself."""
    found = {"calico": "calico-kube-controllers", "cilium": "cilium-operator"}
    name = found.get(ctx.spec.network.plugin)
    return None if name is None else rolled_out(ctx, name, f"deployment/{name}", "kube-system")


@task("routes")
def routes(ctx: ClusterContext) -> ExecutionFragment | None:
    """A route on each host to the pods of each other one, where the network is routed."""
    if ctx.spec.network.plugin != "routed":
        return None
    hosts = ctx.kube_nodes
    cni = RoutedCni(
        node=of_host("node.name"), networks=of_run(_NETWORKS), mtu=ctx.spec.network.mtu or 0
    )
    way = RoutedRoutes(
        node=of_host("node.name"),
        networks=of_run(_NETWORKS),
        addresses={name: ctx.members[name].internal for name in hosts},
        pod_networks=ctx.spec.network.pod_cidr,
    )
    unit = f"{layout.UNITS}/{UNIT}"
    laid = per_host(
        parallel(
            node("script", rendered(ctx, "routed/routes", way, SCRIPT, mode="0755"), on=hosts),
            node("unit", rendered(ctx, "systemd/routed", RoutedUnit(), unit), on=hosts),
        ),
        node("service", Service(UNIT, restarts_on=(SCRIPT, unit)), on=hosts),
        node("cni", rendered(ctx, "routed/cni", cni, CNI_CONFIG), on=hosts),
    )
    step = PodNetworks(nodes=hosts, value=_NETWORKS)
    known = node("networks", step, on=one_of(ctx.control_planes), timeout=SECONDS, retry=AGAIN)
    return parallel(known, laid)


@task("ready")
def ready(ctx: ClusterContext) -> ExecutionFragment | None:
    """Every kube node that has joined takes pods; one without a pod network never does."""
    if ctx.spec.network.plugin == "none":
        return None
    step = NodesReady(nodes=ctx.kube_nodes)
    return node("nodes", step, on=one_of(ctx.control_planes), timeout=SECONDS, retry=AGAIN)


@task("marks")
def marks(ctx: ClusterContext) -> ExecutionFragment | None:
    """Labels and taints of kube nodes, where the file names some."""
    marked = (ctx.members[name] for name in ctx.kube_nodes)
    return parallel(
        *(
            node(
                member.name,
                MarkedNode(
                    node=member.name,
                    labels=dict(member.labels),
                    taints=tuple(f"{t.key}={t.value}:{t.effect}" for t in member.taints),
                ),
                on=one_of(ctx.control_planes),
                timeout=SECONDS,
                retry=AGAIN,
            )
            for member in marked
            if member.labels or member.taints
        )
    )


def _cidrs(ctx: ClusterContext) -> dict[str, str]:
    """The addresses of pods, by family."""
    return {f"ipv{network.version}_cidr": str(network) for network in ctx.declared.pods}
