"""The way to each host of a cluster, and what is wrong with those that lead nowhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from kubexm.config import connection
from kubexm.config.connection import Connections, SshSettings
from kubexm.config.members import Member
from kubexm.config.model.cluster import ClusterSpec
from kubexm.document.findings import Finding
from kubexm.document.given import Givens

_SSH = ("spec", "ssh")


def ways(
    spec: ClusterSpec, members: Sequence[Member], directory: Path | None
) -> tuple[Mapping[str, SshSettings | None], list[Finding]]:
    """By host how it is reached, None for this machine; and what is wrong on the way."""
    around = connection.given(spec.ssh, _SSH)
    known = Connections(around, directory, is_partial=False)
    for member in members:
        known.add(member.name, member.address, _settings(member, spec, around))
    settled = {member.name: known.of(member.name) for member in members}
    return settled, [*known.findings(), *_bad_paths(spec, around, directory)]


def _settings(member: Member, spec: ClusterSpec, around: Givens) -> Givens | None:
    """The settings of a host win over those of all."""
    if member.is_local:
        return None
    own = spec.hosts[member.number].ssh
    return {**around, **connection.given(own, (*member.place, "ssh"))}


def _bad_paths(spec: ClusterSpec, around: Givens, directory: Path | None) -> Iterator[Finding]:
    yield from connection.bad_paths(around, directory)
    for number, host in enumerate(spec.hosts):
        own = connection.given(host.ssh, ("spec", "hosts", number, "ssh"))
        yield from connection.bad_paths(own, directory)
