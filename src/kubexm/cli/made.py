"""The cluster that a run has made, as it is told at the end: nodes, the way in, what to type."""

from __future__ import annotations

import shlex
from collections.abc import Collection
from pathlib import Path
from typing import Any

import msgspec

from kubexm.app import known, places
from kubexm.app.known import KnownCluster
from kubexm.app.runs import RunOutcome
from kubexm.cli import clusters
from kubexm.cli.output import table
from kubexm.common.paths import Home
from kubexm.common.roles import CONTROL_PLANE, WORKER
from kubexm.spec.inventory import InventoryHost

_COLUMNS = ("NODE", "ADDRESS", "ROLES", "VERSION")


class Made(msgspec.Struct, frozen=True):
    """A cluster as a run has left it; nobody is asked for it."""

    cluster: KnownCluster
    without: Collection[str]
    """The hosts that were left out."""
    next: dict[str, str]
    """Commands that work on it, and what each is for."""

    def text(self) -> str:
        """For people."""
        cluster = self.cluster
        facts = {"kubernetes": cluster.about.version, **clusters.access(cluster)}
        width = max(map(len, self.next))
        return "\n".join(
            (
                f"cluster `{cluster.name}` is there{self._but()}",
                *clusters.lines(facts),
                "",
                table(_COLUMNS, [self._row(host) for host in cluster.hosts]),
                "",
                "next:",
                *(f"  {command.ljust(width)}  {what}" for command, what in self.next.items()),
            )
        )

    def data(self) -> dict[str, Any]:
        """For programs: as `kubexm get cluster` has it, with what each node runs."""
        nodes = [self._node(host) for host in self.cluster.hosts]
        return {**clusters.data(self.cluster), "hosts": nodes, "next": list(self.next)}

    def _but(self) -> str:
        """What must not be overlooked."""
        left = [host.name for host in self.cluster.hosts if host.name in self.without]
        lacks = f", without {', '.join(left)}" if left else ""
        return f", simulated{lacks}" if self.cluster.world is not None else lacks

    def _row(self, host: InventoryHost) -> tuple[str, ...]:
        runs = "left out" if host.name in self.without else self._version(host) or "-"
        return (host.name, host.address, ", ".join(host.roles), runs)

    def _node(self, host: InventoryHost) -> dict[str, Any]:
        left_out = host.name in self.without
        version = None if left_out else self._version(host)
        return {**clusters.host_data(host), "version": version, "leftOut": left_out}

    def _version(self, host: InventoryHost) -> str | None:
        """Of Kubernetes, if the host runs any."""
        is_kube_node = not {CONTROL_PLANE, WORKER}.isdisjoint(host.roles)
        return self.cluster.about.version if is_kube_node else None


def made(outcome: RunOutcome, home: Home) -> Made | None:
    """What a run has made; None unless it is a cluster."""
    if outcome.run is None or not outcome.made_a_cluster:
        return None
    cluster = known.made(home, outcome.run)
    return Made(cluster, outcome.result.quarantined, _next(cluster, home))


def _next(cluster: KnownCluster, home: Home) -> dict[str, str]:
    name = cluster.name
    look = {f"kubexm get cluster {name}": "look at it again"}
    if cluster.world is not None:
        return {**look, _end(name, Path(cluster.world), home): "take the cluster away"}
    return {
        f"kubexm kubeconfig {name} --merge": "let kubectl in",
        f"kubexm health {name}": "ask it how it is",
        **look,
        f"kubexm delete cluster {name}": "take it away",
    }


def _end(name: str, world: Path, home: Home) -> str:
    is_usual = world == places.world_path(home, name, None)
    where = () if is_usual else ("--world", str(world))
    return shlex.join(("kubexm", "delete", "cluster", name, "--simulate", *where))
