"""What a check of a host goes by, and what it says."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from kubexm.runner.probed import Probed


class Peer(msgspec.Struct, frozen=True, omit_defaults=True):
    """Another host, of the cluster or of the site, and the ports of it that a host will need."""

    host: str
    address: str
    ports: tuple[int, ...]
    needed: bool = True
    """Whether nothing goes without it; of a mere neighbour one is only told."""


class Place(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is wanted of one host alone."""

    arch: str = ""
    addresses: tuple[str, ...] = ()
    peers: tuple[Peer, ...] = ()


@dataclass(frozen=True)
class Wanted:
    """What hosts with the same part in a cluster have to be like."""

    checks: tuple[str, ...]
    """The checks to make, by name."""
    cluster: str = ""
    """The name of the cluster: a host that was worked on for it before is no stranger."""
    hosts: dict[str, Place] = field(default_factory=dict)
    """What is wanted of one host alone, by its name: `arch`, `addresses` that others know it by,
    and `peers`, which are others with the `ports` it needs there."""
    cpus: int = 0
    """The least number of processors."""
    memory_mib: int = 0
    """The least memory, in MiB."""
    kernel: dict[str, str] = field(default_factory=dict)
    """Versions of the kernel that something needs at least, and what needs it."""
    cgroup: int = 1
    """The least version of control groups."""
    disk: dict[str, int] = field(default_factory=dict)
    """What has to be free, in MiB, by the path where data will lie."""
    etcd: str = ""
    """Where etcd will keep its data, if it will be there."""
    etcd_fsync: float = 0.01
    """How long a write there may take, 99 times of 100, in seconds."""
    ports: dict[str, str] = field(default_factory=dict)
    """Ports that have to be free, such as `tcp/10250`, and who will listen there."""
    networks: dict[str, str] = field(default_factory=dict)
    """Networks that the cluster takes, and what for."""
    site: tuple[Peer, ...] = ()
    """What the site has and the cluster needs, as a `host` that names it, with its `ports`."""
    endpoint: str = ""
    """An address that one of the hosts will get, and nobody has yet."""
    endpoint_port: int = 6443
    """The port at which it will be reached."""
    haproxy: bool = False
    """Whether haproxy will run there as a service of the system, which SELinux confines."""


class Found(msgspec.Struct, frozen=True):
    """Something that is not as it should be."""

    what: str
    """The same on all hosts that have it."""
    figure: str = ""
    """What differs from host to host."""
    remedy: str = ""
    """What to do, if that of the check does not say enough."""
    kind: Literal["refusal", "warning", "unknown"] | None = None
    """What comes of it, if not what the check says."""


class Look(msgspec.Struct, frozen=True):
    """A host that is looked at, and what it should be like."""

    host: str
    wanted: Wanted
    facts: Mapping[str, Any]
    probed: Probed
    out_of_reach: tuple[str, ...] = ()
    """Packages of tools that are missing, and that nobody could install."""

    @property
    def place(self) -> Place:
        return self.wanted.hosts.get(self.host, Place())


Judge = Callable[[Look], Iterator[Found]]


def unknown(why: str) -> Found:
    """The host does not tell what a check goes by."""
    return Found(why, kind="unknown")
