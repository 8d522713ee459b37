"""Through whom services of hosts reach the world, where the site has a proxy."""

from __future__ import annotations

from collections.abc import Sequence

from kubexm.plan import ExecutionFragment, node
from kubexm.task.context import ClusterContext
from kubexm.task.writing import directories, parent, rendered
from kubexm.templates.contexts.system import PROXY_DROPIN, ProxyEnvironment

_LOCAL = ("localhost", "127.0.0.1", "::1", ".svc")


def settings(ctx: ClusterContext, unit: str, hosts: Sequence[str]) -> ExecutionFragment | None:
    """The environment of a service; nothing if there is no proxy."""
    if not files(ctx, unit):
        return None
    proxy = ctx.spec.system.proxy
    context = ProxyEnvironment(
        http=proxy.http or "", https=proxy.https or "", no_proxy=_reached_without(ctx)
    )
    return node("proxy", rendered(ctx, "proxy/environment", context, _path(unit)), on=hosts)


def place(ctx: ClusterContext, unit: str, hosts: Sequence[str]) -> ExecutionFragment | None:
    """Where the environment of a service goes."""
    return directories(hosts, *map(parent, files(ctx, unit)))


def files(ctx: ClusterContext, unit: str) -> tuple[str, ...]:
    """What a service reads of it when it starts."""
    proxy = ctx.spec.system.proxy
    return (_path(unit),) if proxy.http or proxy.https else ()


def _path(unit: str) -> str:
    return PROXY_DROPIN.format(unit=unit)


def _reached_without(ctx: ClusterContext) -> tuple[str, ...]:
    """All that belongs to the cluster, and what the operator names."""
    spec = ctx.spec
    known = (
        *_LOCAL,
        f".{spec.dns.domain}",
        ctx.declared.endpoint_host,
        *spec.network.pod_cidr,
        *spec.network.service_cidr,
        *(name for member in ctx.declared.members for name in (member.name, *member.internal)),
        *filter(None, (spec.registry.host,)),
        *spec.system.proxy.no_proxy,
    )
    return tuple(dict.fromkeys(known))
