"""What stands in front of the API servers, as far as kubexm sets it up."""

from __future__ import annotations

from kubexm.common import layout
from kubexm.plan import ExecutionFragment, node, parallel, per_host
from kubexm.plan.fragment import prefixed
from kubexm.plan.scope import task
from kubexm.step.services import Service
from kubexm.task import images
from kubexm.task.context import API_PORT, ClusterContext, bracketed
from kubexm.task.writing import directories, of_facts, of_host, rendered
from kubexm.templates.contexts.balancer import (
    CONTAINED_CONNECTIONS,
    CONTAINED_HAPROXY_CONFIG,
    CONTAINED_NGINX_CONFIG,
    HAPROXY_CONFIG,
    KEEPALIVED_CONFIG,
    Backend,
    HaproxyConfig,
    KeepalivedConfig,
    NginxConfig,
)
from kubexm.templates.contexts.network import Bgp, BgpPeer, KubeVipPod
from kubexm.templates.contexts.systemd import ContainedUnit, Mount

_KUBE_VIP = f"{layout.MANIFESTS}/kube-vip.yaml"
_INTERFACE, _OTHERS = "network.interface", "network.others"


@task("haproxy")
def haproxy(ctx: ClusterContext) -> ExecutionFragment | None:
    """haproxy on the load-balancer hosts leads to the API servers that are ready."""
    config = HaproxyConfig(binds=(_everywhere(ctx),), backends=_backends(ctx), user="haproxy")
    return per_host(
        node("config", rendered(ctx, "haproxy/config", config, HAPROXY_CONFIG), on=ctx.balancers),
        node("service", Service("haproxy", restarts_on=(HAPROXY_CONFIG,)), on=ctx.balancers),
    )


def _everywhere(ctx: ClusterContext) -> str:
    """All addresses of a load-balancer host, as haproxy wants it written."""
    spec = ctx.spec.endpoint
    own = (address for name in ctx.balancers for address in ctx.members[name].internal)
    # By `*` it means IPv4 alone; but where there is no IPv6, nothing can be opened at `::`.
    has_v6 = any(":" in address for address in (spec.address or "", *own))
    return f"[::]:{spec.port} v4v6" if has_v6 else f"*:{spec.port}"


@task("keepalived")
def keepalived(ctx: ClusterContext) -> ExecutionFragment | None:
    """One of the load-balancer hosts holds the address: the first that is well."""
    spec = ctx.spec.endpoint
    config = KeepalivedConfig(
        name=of_host("node.name"),
        interface=spec.keepalived.interface or of_facts(_INTERFACE),
        others={} if spec.keepalived.interface else of_facts(_OTHERS),
        router_id=spec.keepalived.router_id,
        order=of_host("balancer.order"),
        address=of_host("balancer.address"),
        peers=of_host("balancer.peers"),
        virtual_address=spec.address or "",
    )
    file = rendered(ctx, "keepalived/config", config, KEEPALIVED_CONFIG)
    return per_host(
        node("config", file, on=ctx.balancers),
        node("service", Service("keepalived", restarts_on=(KEEPALIVED_CONFIG,)), on=ctx.balancers),
    )


@task("worker")
def on_workers(ctx: ClusterContext) -> ExecutionFragment | None:
    """Every worker reaches the API servers through a balancer of its own."""
    kind, hosts = ctx.declared.endpoint_kind, ctx.workers
    if kind not in ("haproxy", "nginx") or not hosts:
        return None
    path = CONTAINED_HAPROXY_CONFIG if kind == "haproxy" else CONTAINED_NGINX_CONFIG
    unit = f"{layout.UNITS}/kubexm-{kind}.service"
    written = parallel(
        directories(hosts, layout.BALANCER),
        prefixed("image", images.beside(ctx, kind, hosts)),
        node("config", rendered(ctx, f"{kind}/config", _contained(ctx, kind), path), on=hosts),
        node("unit", rendered(ctx, "systemd/contained", _unit(ctx, kind, path), unit), on=hosts),
    )
    service = Service(f"kubexm-{kind}", restarts_on=(path, unit))
    return per_host(written, node("service", service, on=hosts))


def _contained(ctx: ClusterContext, kind: str) -> HaproxyConfig | NginxConfig:
    binds = (f"127.0.0.1:{ctx.spec.endpoint.port}",)
    if kind == "nginx":
        return NginxConfig(binds=binds, backends=_backends(ctx))
    return HaproxyConfig(
        binds=binds, backends=_backends(ctx), max_connections=CONTAINED_CONNECTIONS
    )


def _unit(ctx: ClusterContext, kind: str, path: str) -> ContainedUnit:
    # Outside of a cluster these programs want their settings as a flag.
    program = {"haproxy": ("haproxy", "-W", "-db", "-f"), "nginx": ("nginx", "-c")}[kind]
    return ContainedUnit(
        description=f"{kind} in front of the API servers",
        name=f"kubexm-{kind}",
        image=ctx.image(kind),
        arguments=(*program, path),
        mounts=(Mount(source=path, target=path),),
    )


@task("kube-vip")
def kube_vip(ctx: ClusterContext) -> ExecutionFragment | None:
    """One of the control planes holds the address itself."""
    if ctx.declared.endpoint_kind != "kube-vip":
        return None
    others = ctx.control_planes[1:]
    first = _pod(ctx, ctx.trait("kubernetes", "first-kubeconfig") or "admin.conf")
    return parallel(
        directories(ctx.control_planes, layout.MANIFESTS),
        node("first", rendered(ctx, "kube-vip/pod", first, _KUBE_VIP), on=(ctx.first,)),
        node("others", rendered(ctx, "kube-vip/pod", _pod(ctx), _KUBE_VIP), on=others),
    )


def _pod(ctx: ClusterContext, kubeconfig: str = "admin.conf") -> KubeVipPod:
    spec = ctx.spec.endpoint
    is_found = spec.kube_vip.interface is None and spec.kube_vip.bgp is None
    return KubeVipPod(
        image=ctx.image("kube-vip"),
        address=spec.address or "",
        port=API_PORT,
        interface=spec.kube_vip.interface or "",
        own=of_host("balancer.address") if is_found else "",
        others=of_facts(_OTHERS) if is_found else {},
        bgp=_bgp(ctx),
        kubeconfig=f"{layout.KUBERNETES}/{kubeconfig}",
    )


def _bgp(ctx: ClusterContext) -> Bgp | None:
    spec = ctx.spec.endpoint.kube_vip.bgp
    if spec is None:
        return None
    peers = tuple(BgpPeer(address=peer.address, asn=peer.asn) for peer in spec.peers)
    return Bgp(router_id=of_host("address"), asn=spec.asn, peers=peers)


def _backends(ctx: ClusterContext) -> tuple[Backend, ...]:
    return tuple(
        Backend(name=name, address=f"{bracketed(ctx.address(name))}:{API_PORT}")
        for name in ctx.control_planes
    )
