"""What differs from host to host, as variables that the steps of all tasks refer to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from kubexm.common.roles import CONTROL_PLANE, ETCD, REGISTRY, WORKER
from kubexm.config.members import Member
from kubexm.pki.names import Names
from kubexm.pki.request import Host
from kubexm.task import etcd, pki
from kubexm.task.context import API_PORT, ClusterContext, url
from kubexm.templates.contexts.kubeadm import Node, Taint

LOOPBACK = "127.0.0.1"
_USUAL = Taint(key="node-role.kubernetes.io/control-plane")
"""What kubeadm gives a control plane."""
_KNOWN_AUTHORITY = "FileAvailable--etc-kubernetes-pki-ca.crt"


def variables(ctx: ClusterContext) -> dict[str, dict[str, Any]]:
    """The variables of each host of the cluster."""
    shared = [*_shared_lines(ctx)]
    certified_hosts = frozenset(pki.certified_hosts(ctx))
    return {
        member.name: {
            "address": member.internal[0],
            "addresses": member.internal,
            "hosts_file": "\n".join([*shared, *_own_lines(ctx, member)]),
            "node": msgspec.to_builtins(_node(ctx, member)),
            "ignored_errors": _ignored_errors(ctx, is_certified=member.name in certified_hosts),
            "certificates": msgspec.to_builtins(certified(ctx, member)),
            **_etcd(ctx, member),
            **_balancer(ctx, member),
        }
        for member in ctx.declared.members
    }


def _node(ctx: ClusterContext, member: Member) -> Node:
    """The kube node that a host becomes; its kubelet is told its addresses elsewhere."""
    return Node(
        name=member.name,
        taints=_taints(member),
        ignored_errors=ctx.spec.kubernetes.kubeadm.ignore_preflight_errors,
    )


def _taints(member: Member) -> tuple[Taint, ...] | None:
    """Those of the file, beside what keeps pods away from a control plane that is no worker.

    None for what kubeadm gives a kube node by itself, which it does not if it is given any.
    """
    own = tuple(Taint(key=t.key, value=t.value, effect=t.effect) for t in member.taints)
    if CONTROL_PLANE not in member.roles or WORKER in member.roles:
        return own
    given = {(taint.key, taint.effect) for taint in own}
    usual = () if (_USUAL.key, _USUAL.effect) in given else (_USUAL,)
    return (*own, *usual) if own else None


def _ignored_errors(ctx: ClusterContext, *, is_certified: bool) -> list[str]:
    """What kubeadm may find on a worker: the authority, where we lay it before the host joins."""
    known = (_KNOWN_AUTHORITY,) if is_certified else ()
    return [*ctx.spec.kubernetes.kubeadm.ignore_preflight_errors, *known]


def _shared_lines(ctx: ClusterContext) -> Iterator[str]:
    """Lines of the hosts file that all hosts have."""
    for member in ctx.declared.members:
        yield from (f"{address} {member.name}" for address in member.internal)
    endpoint = ctx.spec.endpoint
    if endpoint.domain and endpoint.address:
        yield f"{endpoint.address} {endpoint.domain}"
    elif endpoint.domain and ctx.declared.endpoint_kind == "single":
        yield f"{ctx.address(ctx.first)} {endpoint.domain}"
    for entry in ctx.spec.system.hosts:
        yield f"{entry.address} {' '.join(entry.names)}"


def _own_lines(ctx: ClusterContext, member: Member) -> Iterator[str]:
    """The way to the API where every host has its own.

    A worker asks its own balancer. A control plane asks its own API server, and the others as long
    as it has none: whoever looks a name up tries all its addresses in turn.
    """
    if ctx.declared.endpoint_kind not in ("haproxy", "nginx"):
        return
    name = ctx.declared.endpoint_host
    if CONTROL_PLANE not in member.roles:
        yield f"{LOOPBACK} {name}"
        return
    planes = ctx.control_planes
    at = planes.index(member.name)
    for other in (*planes[at:], *planes[:at]):
        yield f"{ctx.address(other)} {name}"


def certified(ctx: ClusterContext, member: Member) -> Host:
    """A host as its certificates see it."""
    spec = ctx.spec
    return Host(
        names=Names(
            host=member.name,
            addresses=member.internal,
            services=spec.network.service_cidr,
            domain=spec.dns.domain,
            endpoints=tuple(filter(None, (ctx.declared.endpoint_host, spec.endpoint.address))),
            extra=spec.kubernetes.api_server.cert_sans,
        ),
        roles=frozenset(_certified_roles(ctx, member)),
        endpoint=ctx.endpoint,
        own=url(member.internal[0], API_PORT),
        without=_without(ctx, member),
    )


def _certified_roles(ctx: ClusterContext, member: Member) -> Iterator[str]:
    """The roles that count for certificates: etcd is where a member of it runs."""
    yield from (role for role in member.roles if role in (CONTROL_PLANE, WORKER, REGISTRY))
    if member in ctx.declared.etcd_members:
        yield ETCD


def _without(ctx: ClusterContext, member: Member) -> frozenset[str]:
    """Kubelets ask for their own; what passes every check lies on one control plane alone."""
    left = {"kubelet"}
    if member.name != ctx.first:
        left.add("super-admin")
    if ctx.declared.etcd_kind == "external":
        left |= {"apiserver-etcd-client", "etcd/ca"}
    return frozenset(left)


def _etcd(ctx: ClusterContext, member: Member) -> Mapping[str, Any]:
    """Where a member of etcd listens, and where it is reached."""
    if member.name not in ctx.etcd:
        return {}
    clients = [etcd.client_url(address) for address in member.internal]
    return {
        "etcd": {
            "name": member.name,
            "listen_client": [*clients, etcd.client_url(LOOPBACK)],
            "advertise_client": clients,
            "listen_peer": [etcd.peer_url(address) for address in member.internal],
        }
    }


def _balancer(ctx: ClusterContext, member: Member) -> Mapping[str, Any]:
    """The place of a load balancer among the others, and where each is on their network."""
    is_v6 = ":" in (ctx.spec.endpoint.address or "")
    if ctx.declared.endpoint_kind == "kube-vip" and member.name in ctx.control_planes:
        return {"balancer": {"address": _of_family(member, is_v6)}}
    if member.name not in ctx.balancers:
        return {}
    at = {name: _of_family(ctx.members[name], is_v6) for name in ctx.balancers}
    own = at.pop(member.name)
    order = ctx.balancers.index(member.name)
    return {"balancer": {"order": order, "address": own, "peers": [*at.values()]}}


def _of_family(member: Member, is_v6: bool) -> str:
    found = (address for address in member.internal if (":" in address) == is_v6)
    return next(found, member.internal[0])
