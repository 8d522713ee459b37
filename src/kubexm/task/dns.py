"""Names inside the cluster: CoreDNS, and a cache on every kube node."""

from __future__ import annotations

from itertools import islice

from kubexm.plan import ExecutionFragment
from kubexm.plan.scope import task
from kubexm.task.context import ClusterContext
from kubexm.task.objects import applied, rolled_out
from kubexm.task.writing import of_facts
from kubexm.templates.contexts.dns import CoreDnsManifest, NodeLocalDnsManifest, Zone

_TENTH = 10
"""The place of the address of CoreDNS among those of services, as everyone has it."""
_USUAL = 2
"""So many CoreDNS there are, of which one may fail."""


@task("coredns")
def coredns(ctx: ClusterContext) -> ExecutionFragment | None:
    """CoreDNS answers for services, and asks others for the rest."""
    spec = ctx.spec.dns
    context = CoreDnsManifest(
        image=ctx.image("coredns"),
        addresses=service_addresses(ctx),
        domain=spec.domain,
        replicas=spec.replicas or min(_USUAL, len(ctx.kube_nodes)),
        upstream=_upstream(ctx),
        zones=tuple(Zone(names=zone.names, servers=zone.servers) for zone in spec.zones),
    )
    return applied(ctx, "coredns", "coredns/manifest", context)


@task("node-local")
def node_local(ctx: ClusterContext) -> ExecutionFragment | None:
    """Every kube node has a cache of names."""
    spec = ctx.spec.dns.node_local
    if not spec.enabled:
        return None
    context = NodeLocalDnsManifest(
        image=ctx.image("nodelocaldns"), upstream=service_addresses(ctx), address=spec.address
    )
    return applied(ctx, "node-local", "nodelocaldns/manifest", context)


@task("answers")
def answers(ctx: ClusterContext) -> ExecutionFragment | None:
    """Names are answered."""
    return rolled_out(ctx, "coredns", "deployment/coredns", "kube-system")


def addresses(ctx: ClusterContext) -> tuple[str, ...]:
    """Where pods ask for names."""
    local = ctx.spec.dns.node_local
    return (local.address,) if local.enabled else service_addresses(ctx)


def service_addresses(ctx: ClusterContext) -> tuple[str, ...]:
    """Where CoreDNS is asked: one address of each family."""
    return tuple(
        str(next(islice(network, min(_TENTH, network.num_addresses - 2), None)))
        for network in ctx.declared.services
    )


def _upstream(ctx: ClusterContext) -> tuple[str, ...]:
    """Whom CoreDNS asks; the host tells if it knows anybody itself."""
    given = ctx.spec.dns.upstream
    return of_facts("network.nameservers") if given is None else given
