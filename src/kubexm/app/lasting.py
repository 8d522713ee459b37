"""What a cluster stands on, and can't be changed while it lives."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from kubexm.app import clusters
from kubexm.app.known import KnownCluster
from kubexm.common.covering import covers
from kubexm.common.roles import CONTROL_PLANE, ETCD, WORKER
from kubexm.config.cluster import Cluster
from kubexm.document import problems
from kubexm.document.findings import Finding
from kubexm.document.source import DataPath
from kubexm.errors import InvalidCluster

_LASTING: tuple[DataPath, ...] = (
    ("kubernetes", "version"),
    ("kubernetes", "clusterName"),
    ("kubernetes", "kubeProxy", "mode"),
    ("kubernetes", "apiServer", "encryption", "enabled"),
    ("kubernetes", "apiServer", "encryption", "provider"),
    ("kubernetes", "apiServer", "encryption", "resources"),
    ("network", "plugin"),
    ("network", "podCIDR"),
    ("network", "serviceCIDR"),
    ("network", "nodeMask"),
    ("network", "nodeMaskIpv6"),
    ("network", "calico", "encapsulation"),
    ("network", "calico", "blockSize"),
    ("dns", "domain"),
    ("endpoint", "kind"),
    ("endpoint", "domain"),
    ("endpoint", "address"),
    ("endpoint", "port"),
    ("etcd", "kind"),
    ("etcd", "dataDir"),
    ("containerRuntime", "root"),
    ("containerRuntime", "systemdCgroup"),
)
_VERSION = "kubernetes.version"
_PROXY = "kubernetes.kubeProxy.mode"
_UPGRADE = "another version wants an upgrade, which kubexm can't do yet"
_ETCD = "etcd.kind"
_ETCD_RUNS = (
    "leave it as it was, since such an etcd was begun; or take that away first:"
    " kubexm delete cluster {}"
)
_PROXY_STAYS = (
    "leave it as it was: kubexm can neither take kube-proxy away nor bring it later; other modes"
    " may follow each other"
)
_ENCRYPTED = "kubernetes.apiServer.encryption.enabled"
_CGROUPS = "containerRuntime.systemdCgroup"
_CGROUPS_STAY = (
    "leave it as it was: pods that run keep their control groups, and kubelet and containerd could"
    " not go on with them"
)
_PROVIDER = "kubernetes.apiServer.encryption.provider"
_RESOURCES = "kubernetes.apiServer.encryption.resources"
_ENCRYPTION_STAYS = (
    "leave it as it was: what lies encrypted in etcd could not be read any more; resources that"
    " are encrypted may be others"
)
_READ_BY_ALL = (
    "leave it as it was: control planes take it one after the other, and those that come later"
    " can't read what the first one writes"
)
_STAYS = "leave it as it was; who wants another makes another cluster, and moves there"
_HINTS = {
    _VERSION: _UPGRADE,
    _PROXY: _PROXY_STAYS,
    _ENCRYPTED: _ENCRYPTION_STAYS,
    _PROVIDER: _READ_BY_ALL,
    _RESOURCES: _READ_BY_ALL,
    _CGROUPS: _CGROUPS_STAY,
}
_NO_WAY_OUT = "leave it in the file: kubexm can't take a host out of a cluster yet"
_STAYS_IN_ROLE = (
    "leave its role as it was: kubexm can't turn one into the other yet; a host that is new to the"
    " cluster may become either"
)
_STAYS_FIRST = "write its entry behind that of `{}` in `spec.hosts`"
_FINISH = (
    "delete the rest of it first: kubexm delete cluster {}; if the host was made anew since then,"
    " add `--without {}`"
)
_A_PART = {CONTROL_PLANE: "a control plane", WORKER: "a worker", "": "no kube node"}
_HOSTS: DataPath = ("spec", "hosts")
_GROUPS: DataPath = ("spec", "roleGroups")


def of(cluster: Cluster) -> dict[str, Any]:
    """What a file says of all that lasts, also where it says nothing, by path."""
    spec = msgspec.to_builtins(clusters.in_full(cluster)["spec"])
    return {".".join(map(str, path)): _at(spec, path) for path in _LASTING}


def refuse(cluster: Cluster, before: KnownCluster) -> None:
    """Raise `InvalidCluster` with all that a file says otherwise than the cluster that there is."""
    findings = [*_strays(cluster, before)]
    if before.is_begun:
        findings += [*_settings(of(cluster), before), *_hosts(cluster, before)]
        findings += [*_roles(cluster, before), *_first(cluster, before)]
    elif before.has_etcd:
        findings += _etcd(of(cluster), before)
    if findings:
        document = cluster.document
        said = f"can't be what the cluster `{before.name}` becomes"
        found = problems.placed(findings, document, _STAYS)
        raise problems.refusal(InvalidCluster, document, said, found, is_all=True)


def _settings(now: Mapping[str, Any], before: KnownCluster) -> Iterator[Finding]:
    for name, was in before.about.lasting.items():
        if name in now and now[name] != was and _is_settled(name, now, before):
            message = f"found {_told(now[name])}, but the cluster has {_told(was)}"
            yield Finding(("spec", *name.split(".")), message, _HINTS.get(name, ""))


def _is_settled(name: str, now: Mapping[str, Any], before: KnownCluster) -> bool:
    """Whether what a file says otherwise of a setting is one of the changes that can't be made."""
    was, new = before.about.lasting[name], now[name]
    if name == _PROXY:
        return "none" in (was, new)
    if name == _ENCRYPTED:
        return bool(was)
    if name in (_PROVIDER, _RESOURCES):
        is_more = name == _PROVIDER or not _covered(new, was)
        return is_more and _is_encrypted_by_several(now, before)
    return True


def _covered(new: Sequence[str], was: Sequence[str]) -> bool:
    """Whether all was encrypted before: what is no longer asked for goes on to be read."""
    return all(any(covers(one, other) for one in was) for other in new)


def _is_encrypted_by_several(now: Mapping[str, Any], before: KnownCluster) -> bool:
    was = before.about.lasting[_ENCRYPTED]
    return was and now[_ENCRYPTED] and len(before.about.roles[CONTROL_PLANE]) > 1


def _etcd(now: Mapping[str, Any], before: KnownCluster) -> Iterator[Finding]:
    """An etcd that runs holds the ports of another kind, also while nothing uses it yet."""
    for finding in _settings({_ETCD: now[_ETCD]}, before):
        yield msgspec.structs.replace(finding, hint=_ETCD_RUNS.format(before.name))


def _hosts(cluster: Cluster, before: KnownCluster) -> Iterator[Finding]:
    now = {member.name: [*member.internal] for member in cluster.declared.members}
    for name, addresses in before.about.addresses.items():
        if name not in now:
            yield Finding(
                _HOSTS, f"`{name}` is missing, which is a host of the cluster", _NO_WAY_OUT
            )
        elif now[name] != [*addresses]:
            message = (
                f"`{name}` has {_told(now[name])}, but the cluster knows it by {_told(addresses)}"
            )
            yield Finding(_HOSTS, message)
    if before.about.etcd == "systemd":
        yield from _members(cluster, before)


def _roles(cluster: Cluster, before: KnownCluster) -> Iterator[Finding]:
    """Members stay what they have become: kubeadm makes neither kind out of the other."""
    declared = cluster.declared
    roles = {role: [one.name for one in declared.having(role)] for role in _A_PART}
    for member in declared.members:
        was, now = _part(member.name, before.about.roles), _part(member.name, roles)
        if was and was != now and member.name in before.members:
            message = f"`{member.name}` is to be {_A_PART[now]}, but is {_A_PART[was]} by now"
            yield Finding((*_GROUPS, *filter(None, (now,))), message, _STAYS_IN_ROLE)


def _first(cluster: Cluster, before: KnownCluster) -> Iterator[Finding]:
    """The first control plane is the one that a cluster begins with, and this one has begun."""
    first, was = cluster.declared.having(CONTROL_PLANE)[0], before.about.roles[CONTROL_PLANE][0]
    if was in before.members and first.name not in before.members:
        message = f"`{first.name}` comes before `{was}`, so another cluster would begin with it"
        yield Finding(_HOSTS, message, _STAYS_FIRST.format(was))


def _strays(cluster: Cluster, before: KnownCluster) -> Iterator[Finding]:
    """Hosts that a deletion has not come to, while there is no control plane any more."""
    for member in cluster.declared.members:
        if member.name in before.strays:
            message = f"`{member.name}` is still a member of the cluster that was half deleted"
            yield Finding(_HOSTS, message, _FINISH.format(before.name, member.name))


def _members(cluster: Cluster, before: KnownCluster) -> Iterator[Finding]:
    """Members of an etcd of its own begin together: none comes later, and none goes."""
    known = {*before.about.roles.get(ETCD, before.about.roles[CONTROL_PLANE])}
    now = {member.name for member in cluster.declared.etcd_members}
    for name in sorted(now - known):
        message = f"`{name}` is to be a new member of etcd, which kubexm can't add yet"
        yield Finding((*_GROUPS, ETCD), message)
    for name in sorted(known - now):
        message = f"`{name}` is a member of etcd, which kubexm can't take away yet"
        yield Finding((*_GROUPS, ETCD), message)


def _part(name: str, roles: Mapping[str, Container[str]]) -> str:
    """What a host is for Kubernetes: a control plane may be a worker as well."""
    return next((role for role in (CONTROL_PLANE, WORKER) if name in roles.get(role, ())), "")


def _at(data: Mapping[str, Any], path: DataPath) -> Any:
    here: Any = data
    for part in path:
        here = here.get(part) if isinstance(here, Mapping) else None
    return here


def _told(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(_told, value))
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return "nothing" if value is None else f"`{value}`"
