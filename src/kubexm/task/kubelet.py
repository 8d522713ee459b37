"""The kubelet and kubeadm on every kube node: what a host needs before it can be one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from kubexm.common import layout
from kubexm.plan import ExecutionFragment, node, parallel
from kubexm.step.data import DataDirectory
from kubexm.step.services import Service
from kubexm.task import proxy
from kubexm.task.artifacts import binary
from kubexm.task.context import ClusterContext
from kubexm.task.dns import addresses
from kubexm.task.writing import (
    as_data,
    data_directories,
    directories,
    of_facts,
    of_host,
    parent,
    rendered,
)
from kubexm.templates.contexts.kubernetes import KubeletConfig
from kubexm.templates.contexts.systemd import KubeletDropin, KubeletUnit

UNIT = f"{layout.UNITS}/kubelet.service"
DROPIN = f"{layout.UNITS}/kubelet.service.d/10-kubexm.conf"
HEALTH_PORT = 10248
_HERE = frozenset(("127.0.0.1", "0.0.0.0", "::"))  # noqa: S104 kubexm binds to none of them
_TEMPLATE = "kubernetes/kubelet"


def programs(ctx: ClusterContext, hosts: Sequence[str]) -> ExecutionFragment:
    """What every kube node has; people ask the cluster on a control plane."""
    planes = tuple(host for host in hosts if host in frozenset(ctx.control_planes))
    return parallel(
        binary(ctx, "kubernetes", "kubeadm", hosts),
        binary(ctx, "kubernetes", "kubelet", hosts),
        binary(ctx, "kubernetes", "kubectl", planes),
    )


def places(ctx: ClusterContext, hosts: Sequence[str]) -> ExecutionFragment | None:
    """Where the settings of a kubelet go, and what it and its pods write."""
    return parallel(
        directories(hosts, parent(DROPIN), *_volumes(ctx)),
        data_directories(hosts, *layout.POD_LOGS, layout.KUBELET_PLUGINS),
    )


def _volumes(ctx: ClusterContext) -> tuple[str, ...]:
    """Pods would make it too, but then nobody could tell later whether it was there before."""
    local = ctx.spec.storage.local_path
    return (local.directory,) if local.enabled else ()


def settings(ctx: ClusterContext, hosts: Sequence[str]) -> ExecutionFragment:
    """How the kubelet runs; kubeadm starts it."""
    spec = ctx.spec.kubernetes.kubelet
    dropin = KubeletDropin(
        node_ips=of_host("addresses"),
        hostname=of_host("node.name"),
        extra_args=spec.extra_args,
    )
    files = {
        "unit": rendered(ctx, "systemd/kubelet", KubeletUnit(), UNIT),
        "flags": rendered(ctx, "kubelet/dropin", dropin, DROPIN),
        "config": rendered(
            ctx,
            _TEMPLATE,
            replace(config(ctx), resolv_conf=of_facts("network.resolv_conf")),
            layout.KUBELET_CONFIG,
            overrides=spec.config,
        ),
    }
    return parallel(
        node("data", DataDirectory(layout.KUBELET_DATA, mode="0700"), on=hosts),
        *(node(name, step, on=hosts) for name, step in files.items()),
        proxy.settings(ctx, "kubelet", hosts),
    )


def step(ctx: ClusterContext) -> Service:
    """The kubelet runs, and with its settings as they are; kubeadm has started it with those."""
    return Service("kubelet", restarts_on=files(ctx), port=_opened(ctx))


def _opened(ctx: ClusterContext) -> int | None:
    """Where a kubelet that has got through its start is heard; nothing if that is not here."""
    spec = ctx.spec.kubernetes.kubelet
    address = spec.extra_args.get("healthz-bind-address", document(ctx)["healthzBindAddress"])
    return HEALTH_PORT if address in _HERE else None


def files(ctx: ClusterContext) -> tuple[str, ...]:
    """What the kubelet reads when it starts."""
    return (layout.KUBELET_CONFIG, UNIT, DROPIN, *proxy.files(ctx, "kubelet"))


def config(ctx: ClusterContext) -> KubeletConfig:
    """How the kubelets of a cluster run."""
    spec = ctx.spec
    return KubeletConfig(
        cluster_dns=addresses(ctx),
        cluster_domain=spec.dns.domain,
        cgroup_driver="systemd" if spec.container_runtime.systemd_cgroup else "cgroupfs",
        max_pods=spec.kubernetes.kubelet.max_pods,
        feature_gates=dict(spec.kubernetes.feature_gates),
    )


def document(ctx: ClusterContext) -> dict[str, Any]:
    """The same as data, which the cluster is told."""
    return as_data(ctx, _TEMPLATE, config(ctx), ctx.spec.kubernetes.kubelet.config)
