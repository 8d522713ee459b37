"""A file that would have another cluster deleted than the one that is known by its name."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

from kubexm.app import known
from kubexm.app.known import KnownCluster
from kubexm.common.counting import few
from kubexm.common.paths import Home
from kubexm.config.cluster import Cluster
from kubexm.config.members import Member
from kubexm.document import problems
from kubexm.document.findings import Finding
from kubexm.errors import InvalidCluster

_BY_NAME = (
    "give the file of that cluster, or delete it by its name: kubexm delete cluster {}; another"
    " cluster is deleted with the KUBEXM_HOME that it was made with"
)


def refuse(cluster: Cluster, world: Path | None, without: Collection[str]) -> None:
    """Raise `InvalidCluster` if the hosts of a file are not those of the cluster of its name.

    Hosts may have come or gone since; those `without` which it is deleted may be others by now.
    """
    name = cluster.declared.name
    before = known.there(Home.from_environment(), name, world)
    if before is None or not before.about.addresses:
        return
    members = [one for one in cluster.declared.members if one.name not in without]
    findings = [*_elsewhere(members, before)] or [*_all_others(members, before)]
    if findings:
        said = f"is of another cluster than the `{name}` that is known"
        found = problems.placed(findings, cluster.document, _BY_NAME.format(name))
        raise problems.refusal(InvalidCluster, cluster.document, said, found, is_all=True)


def _elsewhere(members: Collection[Member], before: KnownCluster) -> Iterator[Finding]:
    for member in members:
        addresses = before.about.addresses.get(member.name, member.internal)
        if {*addresses} != {*member.internal}:
            has, knows = few(member.internal), few(addresses)
            message = f"`{member.name}` has {has}, but the cluster knows it by {knows}"
            yield Finding(member.place, message)


def _all_others(members: Collection[Member], before: KnownCluster) -> Iterator[Finding]:
    if members and before.about.addresses.keys().isdisjoint(one.name for one in members):
        theirs = few([*before.about.addresses])
        message = f"none of these hosts is one of the cluster, which has {theirs}"
        yield Finding(("spec", "hosts"), message)
