"""Simulated etcd: members find each other, decide by majority, and answer those whom they trust."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from urllib.parse import urlsplit

import msgspec

from kubexm.sim import etcdmembers, kubecerts
from kubexm.sim.daemons import Daemon, Ended, Start
from kubexm.sim.etcdmembers import Data, Member, Settings, Unanswered, members, running
from kubexm.sim.kubestore import Cluster
from kubexm.sim.shell import Shell
from kubexm.sim.state import Socket

_CLIENT_PORT = 2379
_FILES = ("trusted-ca-file", "cert-file", "key-file")


def quorum_obstacle(shell: Shell, settings: Settings) -> str:
    """Why the cluster of a member can't decide anything; nothing if it can."""
    cluster = etcdmembers.cluster_of(shell, settings)
    listed = [member for member in members(cluster) if not member.learner]
    authority = _authority(shell, settings)
    lost = [one.name for one in listed if not _lives(shell, one, cluster, authority)]
    if len(listed) - len(lost) > len(listed) // 2:
        return ""
    return f"no leader: {len(lost)} of {len(listed)} members do not answer: {', '.join(lost)}"


def asked(shell: Shell, url: str, ca: str, cert: str, key: str) -> Cluster:
    """What the etcd stores that answers a client at a URL; `Unanswered` if it tells nothing."""
    _require_own_files(shell, ca, cert, key)
    where, port = _place(url)
    if not shell.around.reached(where, port) and shell.around.listens(where, port):
        # It is none of the hosts, so nothing is known of it but who its clients take it for.
        return etcdmembers.stored(shell, f"site-{shell.files.digest(ca)[:16]}")
    there, settings = connected(shell, url, ca, cert, key)
    if why := quorum_obstacle(there, settings):
        raise Unanswered(why)
    return etcdmembers.cluster_of(there, settings)


def connected(shell: Shell, url: str, ca: str, cert: str, key: str) -> tuple[Shell, Settings]:
    """The member that answers a client at a URL, and its host; `Unanswered` if none does."""
    _require_own_files(shell, ca, cert, key)
    where, port = _place(url)
    if not shell.around.resolved(where):
        raise Unanswered(f"dial tcp: lookup {where}: no such host")
    for host in shell.around.reached(where, port):
        there = shell.around.shell_of(host)
        settings = running(there) if there is not None else None
        if there is not None and settings is not None:
            _require_trust(shell, (ca, cert), there, settings, where)
            return there, settings
    raise Unanswered(f"dial tcp {where}:{port}: connect: connection refused")


def _place(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    return parts.hostname or "", parts.port or _CLIENT_PORT


def _require_own_files(shell: Shell, *paths: str) -> None:
    for path in paths:
        if not etcdmembers.exists(shell, path):
            raise Unanswered(f"open {path or '(nothing)'}: no such file or directory")


def begin(shell: Shell, settings: Settings) -> None:
    """Have a member start: it finds its data, its cluster, or the others; else `Ended`."""
    _require_files(shell, settings)
    data = etcdmembers.data_of(shell, settings)
    if data is None:
        data = Data(_joined(shell, settings), settings.name)
        etcdmembers.write(shell, settings, data)
    if data.name != settings.name:
        raise Ended(f"{settings.data} holds the data of member {data.name}, not {settings.name}")
    cluster = etcdmembers.stored(shell, data.cluster)
    known = next((one for one in members(cluster) if one.name == settings.name), None)
    if known is None:
        raise Ended("the member has been permanently removed from the cluster")
    etcdmembers.set_member(cluster, msgspec.structs.replace(known, host=shell.around.name))
    cluster.set_holder(shell.around.name, etcdmembers.data_file(settings))


def _joined(shell: Shell, settings: Settings) -> str:
    """The cluster that a member without data comes to belong to."""
    initial = settings.initial
    if initial.get(settings.name) != settings.peer:
        raise Ended(
            f"couldn't find local name {settings.name!r} with {settings.peer!r}"
            f" in the initial cluster configuration {settings.values.get('initial-cluster')!r}"
        )
    if settings.values.get("initial-cluster-state", "new") == "existing":
        return _existing(shell, settings)
    token = settings.values.get("initial-cluster-token", "etcd-cluster")
    listed = ",".join(f"{name}={url}" for name, url in sorted(initial.items()))
    cluster = etcdmembers.stored(shell, sha256(f"{token} {listed}".encode()).hexdigest()[:16])
    if not any(etcdmembers.is_held(shell, host, path) for host, path in cluster.holders().items()):
        cluster.wipe()
        for name, url in initial.items():
            etcdmembers.set_member(cluster, Member(name, url))
    _require_new(cluster, settings)
    return cluster.id


def _existing(shell: Shell, settings: Settings) -> str:
    for url in settings.initial.values():
        for host in shell.around.reached(urlsplit(url).hostname or "", urlsplit(url).port or 2380):
            there = shell.around.shell_of(host)
            other = running(there) if there is not None and host != shell.around.name else None
            if there is None or other is None:
                continue
            cluster = etcdmembers.cluster_of(there, other)
            if settings.initial != {one.name: one.peer for one in members(cluster)}:
                raise Ended("error validating peerURLs: member count is unequal")
            _require_new(cluster, settings)
            return cluster.id
    raise Ended("could not retrieve cluster information from the given URLs")


def _require_new(cluster: Cluster, settings: Settings) -> None:
    for one in members(cluster):
        if one.name == settings.name and one.host:
            raise Ended(f"member {one.id} has already been bootstrapped")


def _require_files(shell: Shell, settings: Settings) -> None:
    for flag in (*_FILES, *(f"peer-{flag}" for flag in _FILES)):
        path = settings.file(flag)
        if not path or not etcdmembers.exists(shell, path):
            raise Ended(f"--{flag}: open {path or '(nothing)'}: no such file or directory")
    for flag in ("", "peer-"):
        authority = kubecerts.read(shell.files.read(settings.file(f"{flag}trusted-ca-file")))
        own = kubecerts.read(shell.files.read(settings.file(f"{flag}cert-file")))
        if not own.is_by(authority):
            raise Ended(f"--{flag}cert-file: certificate signed by unknown authority")
    found = shell.files.lookup(settings.data) if settings.data else None
    if found is None or found.kind != "directory":
        raise Ended(f"cannot access data directory {settings.data or '(nothing)'}")
    if found.mode != etcdmembers.PRIVATE:
        raise Ended(f"data directory {settings.data} has mode {found.mode:04o}, want 0700")


def _require_trust(
    shell: Shell, given: tuple[str, str], there: Shell, settings: Settings, where: str
) -> None:
    ca, cert = (shell.files.read(path) for path in given)
    authority = there.files.read(settings.file("trusted-ca-file"))
    server = kubecerts.read(there.files.read(settings.file("cert-file")))
    if ca != authority:
        raise Unanswered("tls: failed to verify certificate: signed by unknown authority")
    if not kubecerts.read(cert).is_by(kubecerts.read(authority)):
        raise Unanswered("remote error: tls: bad certificate")
    if not server.is_for(where):
        raise Unanswered(f"tls: failed to verify certificate: it is not valid for {where}")


def _lives(shell: Shell, member: Member, cluster: Cluster, authority: str) -> bool:
    there = shell.around.shell_of(member.host) if member.host else None
    found = running(there) if there is not None else None
    if there is None or found is None or _authority(there, found) != authority:
        return False
    return etcdmembers.data_of(there, found) == Data(cluster.id, member.name)


def _authority(shell: Shell, settings: Settings) -> str:
    path = settings.file("peer-trusted-ca-file")
    return shell.state.follows(f"etcd:{path}", lambda: shell.files.digest(path))


class Etcd(Daemon):
    """The program behind etcd.service."""

    def starts(self, start: Start) -> Sequence[Socket]:
        settings = Settings(_values(start.environment, start.args), start.unit)
        sockets = tuple(settings.sockets())
        if not sockets:
            raise Ended("--listen-client-urls is not set")
        begin(start.shell, settings)
        etcdmembers.remember(start.shell, settings)
        return sockets

    def stops(self, shell: Shell, unit: str) -> None:
        etcdmembers.remember(shell, None)


def _values(environment: Mapping[str, str], args: Sequence[str]) -> dict[str, str]:
    """Flags by name: variables of the environment say the same, and flags win."""
    said = {
        name.removeprefix("ETCD_").lower().replace("_", "-"): value
        for name, value in environment.items()
        if name.startswith("ETCD_")
    }
    flags = (word.removeprefix("--").partition("=") for word in args if word.startswith("--"))
    return said | {name: value for name, _, value in flags}


DAEMON = Etcd()
