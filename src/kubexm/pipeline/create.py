"""Create a cluster: its modules, and who waits for whom."""

from __future__ import annotations

from collections.abc import Callable

from kubexm.module.addons import addons
from kubexm.module.assets import assets
from kubexm.module.container_runtime import container_runtime
from kubexm.module.control_plane import control_plane
from kubexm.module.dns import dns
from kubexm.module.etcd import etcd
from kubexm.module.load_balancer import load_balancer
from kubexm.module.network import network
from kubexm.module.pki import pki
from kubexm.module.preflight import preflight
from kubexm.module.registry import registry
from kubexm.module.storage import storage
from kubexm.module.system import system
from kubexm.module.workers import workers
from kubexm.pipeline.whole import MODULES
from kubexm.plan.fragment import ExecutionFragment, parallel, prefixed
from kubexm.plan.ordering import Wait, Waits, on_all, on_same, ordered, supplied
from kubexm.plan.scope import hooked
from kubexm.spec.hooks import PlannedHooks
from kubexm.task.context import ClusterContext

NAME = "create-cluster"
Plan = Callable[[ClusterContext], ExecutionFragment | None]
_PLANS: dict[str, Plan] = {
    "preflight": preflight,
    "assets": assets,
    "system": system,
    "container-runtime": container_runtime,
    "pki": pki,
    "registry": registry,
    "etcd": etcd,
    "load-balancer": load_balancer,
    "control-plane": control_plane,
    "network": network,
    "workers": workers,
    "dns": dns,
    "storage": storage,
    "add-ons": addons,
}


def create_cluster(ctx: ClusterContext, hooks: PlannedHooks) -> ExecutionFragment:
    """Everything from the first look at a host to the last add-on."""
    whole = parallel(*(hooked(name, _PLANS[name](ctx), hooks.of.get(name, ())) for name in MODULES))
    return prefixed(NAME, supplied(ordered(whole, waits(ctx)))) or ExecutionFragment()


def waits(ctx: ClusterContext) -> Waits:
    """Who waits for whom: on the same host wherever that is enough, so that each goes its own way.

    Nothing is changed before every host has passed its checks. Workers get ready while the
    control plane comes up; objects of the cluster are laid as soon as its first API server is
    there, and only what needs them to run waits for nodes.
    """
    begun, joined = "control-plane/init", ("control-plane", "workers/join")
    lane = on_same("container-runtime", "pki")
    return {
        "assets": on_all("preflight"),
        "system": on_all("preflight"),
        "container-runtime": on_same("system"),
        "pki": on_same("system"),
        "registry/service": on_same("container-runtime/service", "pki"),
        "registry/authority": on_same("pki"),
        "container-runtime/images": on_all("registry"),
        "etcd": on_same("system", "pki"),
        "load-balancer": on_same("system"),
        "load-balancer/worker": on_same("container-runtime/service"),
        "control-plane/prepare": on_same("system"),
        "control-plane/helm": on_same("system"),
        begun: (*lane, *on_same("control-plane/prepare"), *_before_beginning(ctx)),
        "control-plane/join": (*lane, *on_same("control-plane/prepare", "load-balancer/kube-vip")),
        "control-plane/token": on_all(begun),
        "workers/prepare": on_same("system"),
        "workers/join": (
            *lane,
            *on_same("workers/prepare", "load-balancer/worker"),
            *on_all(begun),
        ),
        "network/plugin": (*on_all(begun), *on_same("control-plane/helm")),
        "network/routes": on_all(*joined),
        "network/ready": on_all("network/plugin", "network/routes", *joined),
        "network/marks": on_all(*joined),
        "dns/coredns": on_all(begun),
        "dns/node-local": on_all(begun),
        "dns/answers": on_all("dns/coredns", "dns/node-local", "network/ready"),
        "storage": on_all("network/ready"),
        "add-ons": (*on_all("dns", "storage"), *on_same("control-plane/helm")),
    }


def _before_beginning(ctx: ClusterContext) -> tuple[Wait, ...]:
    """What the first API server needs that is elsewhere: its store, and the way to itself."""
    balancer = on_all("load-balancer") if ctx.balancers else on_same("load-balancer/kube-vip")
    return (*on_all("etcd/health"), *balancer)
