"""Checks for others on a host: another cluster, what an older one has left, who listens there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kubexm.common.counting import few
from kubexm.common.probing import CLUSTER_UNITS, HARMLESS
from kubexm.step.preflight_look import Found, Judge, Look, unknown

_LINKS = (
    *("cni", "flannel", "cali", "vxlan.calico", "cilium", "kube-ipvs0", "kube-bridge"),
    *("kube-dummy-if", "nodelocaldns", "weave"),
)
"""How the names of links begin that network plugins and kube-proxy make."""


def other_cluster(look: Look) -> Iterator[Found]:
    """The host is no member of another cluster, which would break."""
    member = look.probed.member
    if member is not None and not look.probed.is_ours:
        what = "a member of another cluster that kubexm has made"
        yield Found(what, f"`{member}`" if member else "")


def leftovers(look: Look) -> Iterator[Found]:
    """Nothing of another cluster is there."""
    probed = look.probed
    links = [link for link in probed.links if link.startswith(_LINKS) and HARMLESS not in link]
    units = [unit for unit in probed.units if unit in CLUSTER_UNITS]
    virtual = [f"{probed.virtual_servers}"] if probed.virtual_servers else []
    yield from _some("files of another cluster", probed.files)
    yield from _some("units of another cluster that run", units)
    yield from _some("links of another cluster", links)
    yield from _some("mounts of pods", probed.mounts)
    yield from _some("packet filters of another cluster", probed.rules)
    yield from _some("virtual servers of IPVS", virtual)


def _some(what: str, found: Sequence[str]) -> Iterator[Found]:
    if found:
        yield Found(what, few(found))


def ports_free(look: Look) -> Iterator[Found]:
    """Nobody listens where a part of the cluster will."""
    if (taken := look.facts.get("ports")) is None:
        yield unknown("the host does not tell who listens")
        return
    for port, what in look.wanted.ports.items():
        if port in taken:
            who = f"`{taken[port]}` has it" if taken[port] else "somebody has it"
            yield Found(f"{port} is for {what}", who)


JUDGES: Mapping[str, Judge] = {
    "other-cluster": other_cluster,
    "leftovers": leftovers,
    "ports-free": ports_free,
}
