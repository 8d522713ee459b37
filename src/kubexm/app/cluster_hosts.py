"""The hosts of a cluster file as a run knows them."""

from __future__ import annotations

from collections.abc import Mapping

from kubexm.common.roles import CONTROL_NODE
from kubexm.config.cluster import Cluster
from kubexm.config.connection import SshSettings
from kubexm.config.members import Member
from kubexm.config.model.hosts import Arch
from kubexm.config.ways import ways
from kubexm.spec.inventory import InventoryHost

MACHINES: Mapping[Arch, str] = {"amd64": "x86_64", "arm64": "aarch64"}
"""What `uname -m` says on each architecture."""


def inventory(cluster: Cluster) -> tuple[InventoryHost, ...]:
    """All hosts, the control node first."""
    declared = cluster.declared
    settled, _ = ways(declared.spec, declared.members, cluster.document.directory)
    control_node = InventoryHost(CONTROL_NODE, "localhost", "local", (CONTROL_NODE,))
    return (
        control_node,
        *(named_host(member, settled[member.name]) for member in declared.members),
    )


def named_host(member: Member, ssh: SshSettings | None = None) -> InventoryHost:
    """A host of the file; without the way to it for who only plans."""
    return InventoryHost(
        member.name,
        member.address,
        "local" if member.is_local else "ssh",
        member.roles,
        dict(member.labels),
        sudo=member.sudo,
        facts={} if member.arch is None else {"arch": MACHINES[member.arch]},
        ssh=ssh,
    )
