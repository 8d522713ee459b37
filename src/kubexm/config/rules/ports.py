"""The rule of ports: nobody listens where another one does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from kubexm.common.counting import few
from kubexm.config.members import Member
from kubexm.config.rules.listeners import ENDPOINT, REGISTRY_PORT, Listener, Listeners
from kubexm.config.rules.rule import Declared, rule
from kubexm.document.findings import Finding
from kubexm.document.source import DataPath

_READS = ("endpoint", "registry", "roleGroups", "hosts", "ssh", "dns", "etcd", "network")
_USUAL: Mapping[DataPath, Sequence[int]] = {
    ENDPOINT: (6443, 8443, 9443, 7443, 16443),
    REGISTRY_PORT: (5000, 5001, 5443, 8443, 9443),
}
"""What people take, in the order in which it is proposed."""
_Clash = tuple[DataPath, int, str]


@rule("ports-apart", *_READS, "kubernetes.kubeProxy", "kubernetes.kubelet")
def apart(cluster: Declared) -> Iterator[Finding]:
    """No two listen at one port of a host."""
    found: dict[_Clash, list[str]] = {}
    taken: set[int] = set()
    known = Listeners(cluster)
    for alike in _alike(cluster):
        those = [*known.of(alike[0])]
        taken |= {one.port for one in those}
        for clash in _clashes(cluster, those):
            found.setdefault(clash, []).extend(member.name for member in alike)
    for (place, port, who), hosts in found.items():
        message = f"{who} of {few(hosts)} listens at {port} as well"
        yield Finding(place, message, _hint(place, taken))


def _alike(cluster: Declared) -> Iterable[list[Member]]:
    """Hosts with the same part in the cluster, and the same way to them."""
    found: dict[tuple[object, ...], list[Member]] = {}
    for member in cluster.members:
        ssh = cluster.spec.hosts[member.number].ssh
        own = member.number if ssh is not None and ssh.port is not None else None
        found.setdefault((member.roles, member.is_local, own), []).append(member)
    return found.values()


def _clashes(cluster: Declared, those: Sequence[Listener]) -> Iterator[_Clash]:
    """Where the file says a port that another has, and who that is."""
    by_port: dict[tuple[str, int], list[Listener]] = {}
    for one in those:
        by_port.setdefault((one.protocol, one.port), []).append(one)
    for (_, port), same in by_port.items():
        movable = [one for one in same if one.place]
        if len(same) > 1 and movable:
            # Whoever was given a port is the one to be moved.
            moved = max(movable, key=lambda one: _is_written(cluster, one.place))
            yield from ((moved.place, port, one.who) for one in same if one is not moved)


def _is_written(cluster: Declared, place: DataPath) -> bool:
    if place == ENDPOINT:
        return cluster.spec.endpoint.says("port")
    return place != REGISTRY_PORT or cluster.spec.registry.says("port")


def _hint(place: DataPath, taken: set[int]) -> str:
    if "config" in place:
        return "write another port, or leave it out"
    free = [port for port in _USUAL.get(place, ()) if port not in taken]
    if not free:
        return "have sshd listen elsewhere, or leave that part to another host"
    role = "loadbalancer" if place == ENDPOINT else "registry"
    return f"write another port, such as {free[0]}, or name another host for `{role}`"


RULES = (apart,)
