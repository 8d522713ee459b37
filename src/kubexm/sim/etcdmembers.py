"""Members of a simulated etcd: how each was told to run, where its data lie, who belongs together.

Who belongs to a cluster, and all that is stored there, lies in a journal of the world; a member's
data directory says which. What happens to a cluster whose last data directory is gone, happens to
a real one too.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from urllib.parse import urlsplit

import msgspec

from kubexm.sim import kubepods
from kubexm.sim.daemons import Ended
from kubexm.sim.kubestore import Cluster
from kubexm.sim.shell import Shell
from kubexm.sim.state import Socket

_CELL = "etcd:started"
_MEMBERS = "members"
PRIVATE = 0o700


class Unanswered(Exception):
    """Nobody answers there, or not to this caller; the message says why."""


class Settings(msgspec.Struct, frozen=True):
    """How a member was told to run."""

    values: dict[str, str]
    """By flag, such as `data-dir`."""
    unit: str = ""
    """The unit that runs it; none for a static pod."""

    @property
    def name(self) -> str:
        """What it is called among the members."""
        return self.values.get("name", "default")

    @property
    def data(self) -> str:
        """Where its data lie."""
        return self.values.get("data-dir", "")

    @property
    def peer(self) -> str:
        """Where other members find it."""
        return self.values.get("initial-advertise-peer-urls", "")

    @property
    def initial(self) -> dict[str, str]:
        """The members that it expects: where each is found, by name."""
        listed = self.values.get("initial-cluster", "").split(",")
        return dict(entry.strip().partition("=")[::2] for entry in listed)

    def file(self, flag: str) -> str:
        """The file that a flag names; nothing if none."""
        return self.values.get(flag, "")

    def sockets(self) -> Iterator[Socket]:
        """Where it listens."""
        for flag in ("listen-client-urls", "listen-peer-urls", "listen-metrics-urls"):
            for url in filter(None, self.values.get(flag, "").split(",")):
                parts = urlsplit(url)
                if parts.port is None:
                    raise Ended(f"invalid value {url!r} for --{flag}: missing port")
                yield Socket(parts.port, parts.hostname or "")


class Member(msgspec.Struct, frozen=True, omit_defaults=True):
    """A member as the cluster knows it."""

    name: str
    peer: str
    host: str = ""
    """Where it runs; nothing as long as it never did."""
    learner: bool = False

    @property
    def id(self) -> str:
        """What members call it."""
        return sha256(f"{self.name} {self.peer}".encode()).hexdigest()[:16]


class Data(msgspec.Struct, frozen=True):
    """What a data directory says."""

    cluster: str
    name: str


def running(shell: Shell) -> Settings | None:
    """The member that runs on a host."""
    if (own := shell.state.follows(_CELL, lambda: _of_unit(shell))) is not None:
        return own
    pod = kubepods.find(shell, "etcd")
    if pod is None or kubepods.obstacle(shell, pod):
        return None
    settings = shell.state.follows("etcd:pod", lambda: of_pod(pod))
    return settings if data_of(shell, settings) is not None else None


def _of_unit(shell: Shell) -> Settings | None:
    found = shell.state.get(_CELL)
    if not isinstance(found, str):
        return None
    settings = msgspec.json.decode(found, type=Settings)
    service = shell.service(settings.unit)
    return settings if service is not None and service.active else None


def of_pod(pod: kubepods.StaticPod) -> Settings:
    """How the program of a static pod was told to run, by the paths of the host."""
    flags = (word.removeprefix("--").partition("=") for word in pod.command[1:])
    return Settings({name: pod.place(value) or value for name, _, value in flags})


def cluster_of(shell: Shell, settings: Settings) -> Cluster:
    """What the member of a host stores."""
    if (data := data_of(shell, settings)) is None:
        raise Unanswered(f"there is no data of etcd in {settings.data}")
    return stored(shell, data.cluster)


def members(cluster: Cluster) -> list[Member]:
    """All that belong to a cluster."""
    found = cluster.note(_MEMBERS)
    return msgspec.json.decode(found, type=list[Member]) if found else []


def set_member(cluster: Cluster, member: Member) -> None:
    """Add a member to a cluster, or change what the cluster knows of it."""
    known = {one.name: one for one in members(cluster)}
    _keep(cluster, [*{**known, member.name: member}.values()])


def _keep(cluster: Cluster, listed: list[Member]) -> None:
    cluster.set_note(_MEMBERS, msgspec.json.encode(listed).decode() if listed else "")


def remove_member(cluster: Cluster, member: Member) -> None:
    """Take a member out of a cluster; with the last one all is gone."""
    _keep(cluster, [one for one in members(cluster) if one.name != member.name])
    cluster.set_holder(member.host, "")
    if not members(cluster):
        cluster.wipe()


def remember(shell: Shell, settings: Settings | None) -> None:
    """Keep how the member of a unit was told to run; None when it is stopped."""
    text = None if settings is None else msgspec.json.encode(settings).decode()
    if shell.state.get(_CELL) != text:
        shell.state.set(_CELL, text)


def stored(shell: Shell, id: str) -> Cluster:
    """What lies in the etcd that is called so."""
    return Cluster(shell.around.shared(f"@cluster-{id}"))


def data_file(settings: Settings) -> str:
    """Where a member keeps whom it belongs to."""
    return f"{settings.data}/member/wal"


def data_of(shell: Shell, settings: Settings) -> Data | None:
    """What the data directory of a member says; None if it is empty."""
    path = data_file(settings)
    if not exists(shell, path):
        return None
    return msgspec.json.decode(shell.files.read(path), type=Data)


def write(shell: Shell, settings: Settings, data: Data) -> None:
    """Begin the data directory of a member."""
    if shell.files.children(settings.data):
        raise Ended(f"{settings.data} holds something that is no data of etcd")
    shell.files.make_directory(f"{settings.data}/member", PRIVATE)
    shell.files.write(data_file(settings), msgspec.json.encode(data), mode=0o600)


def is_held(shell: Shell, host: str, path: str) -> bool:
    """Whether data are where they were."""
    there = shell.around.shell_of(host)
    # A host that is down has its data still.
    return there is None or exists(there, path)


def exists(shell: Shell, path: str) -> bool:
    """Whether something is at a path of a host."""
    return bool(path) and shell.files.lookup(shell.files.resolve(path)) is not None
