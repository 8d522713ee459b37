"""Simulated etcdctl and etcdutl: what members of etcd tell a client, and copies of their data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256

import msgspec

from kubexm.connector.base import Completed
from kubexm.sim import etcd, etcdmembers, standins
from kubexm.sim.etcdmembers import Member, Settings, Unanswered
from kubexm.sim.kubedocs import Object
from kubexm.sim.shell import Program, Shell, failed, said

_VALUED = frozenset(
    ("--endpoints", "--cacert", "--cert", "--key", "--command-timeout", "--peer-urls", "-w")
)
_FLAGS = frozenset(("--cluster", "--learner"))
_COPY = b"kubexm simulated snapshot "


class Words(msgspec.Struct, frozen=True):
    """What a command says."""

    shell: Shell
    operands: tuple[str, ...]
    options: Mapping[str, str]

    @property
    def endpoints(self) -> list[str]:
        """Where members are asked."""
        return self.options.get("--endpoints", "http://127.0.0.1:2379").split(",")

    @property
    def as_json(self) -> bool:
        """Whether a program reads the answer."""
        return self.options.get("-w") == "json"

    def connected(self, url: str) -> tuple[Shell, Settings]:
        """The member that answers at an endpoint, and its host."""
        files = (self.options.get(name, "") for name in ("--cacert", "--cert", "--key"))
        return etcd.connected(self.shell, url, *files)

    def deciding(self) -> tuple[Shell, Settings]:
        """The first member that answers, if its cluster can decide."""
        reasons = []
        for url in self.endpoints:
            try:
                there, settings = self.connected(url)
                if not (why := etcd.quorum_obstacle(there, settings)):
                    return there, settings
                reasons.append(f"{url}: {why}")
            except Unanswered as error:
                reasons.append(f"{url}: {error}")
        raise Unanswered("; ".join(reasons))


def etcdctl(shell: Shell, args: Sequence[str]) -> Completed:
    words = _parsed(shell, args)
    verb = " ".join(words.operands[:2])
    if verb not in _VERBS:
        raise shell.unexpected()
    rest = Words(shell, words.operands[2:], words.options)
    try:
        return _VERBS[verb](rest)
    except Unanswered as error:
        return failed(f"Error: context deadline exceeded: {error}")


def etcdutl(shell: Shell, args: Sequence[str]) -> Completed:
    """Only what tells of a copy."""
    match list(args):
        case ["snapshot", "status", path, "-w", "json"]:
            data = shell.files.read(path)
            if not data.startswith(_COPY):
                return failed("Error: snapshot file integrity check failed")
            digest = int(sha256(data).hexdigest()[:8], 16)
            told = {"hash": digest, "revision": 1, "totalKey": 1, "totalSize": len(data)}
            return _json(told)
    raise shell.unexpected()


def health(words: Words) -> Completed:
    """Whether the member at each endpoint answers, and its cluster can decide."""
    found = [(url, _why_unhealthy(words, url)) for url in _endpoints(words)]
    code = int(any(why for _, why in found))
    if words.as_json:
        told = [
            {"endpoint": url, "health": not why, "took": "1ms", **({"error": why} if why else {})}
            for url, why in found
        ]
        return Completed(code, msgspec.json.encode(told) + b"\n")
    lines = (f"{url} is {f'unhealthy: {why}' if why else 'healthy'}\n" for url, why in found)
    return Completed(code, "".join(lines).encode(), b"Error: unhealthy cluster\n" if code else b"")


def status(words: Words) -> Completed:
    """What the member at each endpoint says of itself."""
    told = []
    for url in _endpoints(words):
        there, settings = words.connected(url)
        cluster = etcdmembers.cluster_of(there, settings)
        every = etcdmembers.members(cluster)
        leader = next((one.id for one in every if one.host), "")
        own = next(one for one in every if one.name == settings.name)
        found = standins.found(there, "etcd")
        header = {"cluster_id": int(cluster.id, 16), "member_id": int(own.id, 16)}
        version = found.version.removeprefix("v") if found else ""
        told.append(
            {
                "Endpoint": url,
                "Status": {"header": header, "version": version, "leader": int(leader, 16)},
            }
        )
    return _json(told)


def member_list(words: Words) -> Completed:
    """All members of a cluster."""
    there, settings = words.deciding()
    every = etcdmembers.members(etcdmembers.cluster_of(there, settings))
    if words.as_json:
        return _json({"members": [_described(one) for one in every]})
    lines = (f"{one.id}, {'started' if one.host else 'unstarted'}, {one.name}\n" for one in every)
    return said("".join(lines))


def member_add(words: Words) -> Completed:
    """Have a cluster expect one more member."""
    there, settings = words.deciding()
    cluster = etcdmembers.cluster_of(there, settings)
    learner = "--learner" in words.options
    if any(one.learner for one in etcdmembers.members(cluster)):
        return failed("Error: etcdserver: too many learner members in cluster")
    made = Member(words.operands[0], words.options.get("--peer-urls", ""), learner=learner)
    etcdmembers.set_member(cluster, made)
    return said(f"Member {made.id} added\n")


def member_remove(words: Words) -> Completed:
    """Have a cluster forget a member."""
    there, settings = words.deciding()
    cluster = etcdmembers.cluster_of(there, settings)
    for one in etcdmembers.members(cluster):
        if one.id == words.operands[0]:
            etcdmembers.remove_member(cluster, one)
            return said(f"Member {one.id} removed\n")
    return failed("Error: etcdserver: member not found")


def snapshot_save(words: Words) -> Completed:
    """Copy what a member stores to a file."""
    there, settings = words.connected(words.endpoints[0])
    cluster = etcdmembers.cluster_of(there, settings)
    path = words.operands[0]
    words.shell.files.write(path, _COPY + cluster.id.encode(), mode=0o600)
    return said(f"Snapshot saved at {path}\n")


def _endpoints(words: Words) -> list[str]:
    if "--cluster" not in words.options:
        return words.endpoints
    there, settings = words.deciding()
    every = etcdmembers.members(etcdmembers.cluster_of(there, settings))
    return [url for one in every for url in _client_urls(words.shell, one)]


def _client_urls(shell: Shell, member: Member) -> Iterator[str]:
    there = shell.around.shell_of(member.host) if member.host else None
    settings = etcdmembers.running(there) if there is not None else None
    yield from settings.file("advertise-client-urls").split(",") if settings else [member.peer]


def _why_unhealthy(words: Words, url: str) -> str:
    try:
        return etcd.quorum_obstacle(*words.connected(url))
    except Unanswered as error:
        return str(error)


def _described(member: Member) -> Object:
    return {
        "ID": int(member.id, 16),
        "name": member.name if member.host else "",
        "peerURLs": [member.peer],
        "isLearner": member.learner,
    }


def _json(value: object) -> Completed:
    return Completed(0, msgspec.json.encode(value) + b"\n")


def _parsed(shell: Shell, args: Sequence[str]) -> Words:
    operands: list[str] = []
    options: dict[str, str] = {}
    rest = list(args)
    while rest:
        word = rest.pop(0)
        name, sign, value = word.partition("=")
        if name in _VALUED and (sign or rest):
            options[name] = value if sign else rest.pop(0)
        elif word in _FLAGS:
            options[word] = ""
        elif word.startswith("-"):
            raise shell.unexpected()
        else:
            operands.append(word)
    return Words(shell, tuple(operands), options)


_VERBS: Mapping[str, Callable[[Words], Completed]] = {
    "endpoint health": health,
    "endpoint status": status,
    "member add": member_add,
    "member list": member_list,
    "member remove": member_remove,
    "snapshot save": snapshot_save,
}
PROGRAMS: Mapping[str, Program] = {"etcdctl": etcdctl, "etcdutl": etcdutl}
