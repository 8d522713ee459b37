"""Whether the hosts of a finished cluster are content, and know the way to each other."""

from __future__ import annotations

from collections.abc import Sequence

from tests import virtual

from kubexm.connector.base import Command
from kubexm.plan.graph import ExecutionGraph
from kubexm.runner import kubectl, workloads
from kubexm.sim.world import World

_SAID = Command(("journalctl", "--unit", "kubelet", "--no-pager"), changes=False)
_PODS = Command((*kubectl.as_administrator("get", "pods", "-A", "-o", "json"),), changes=False)
_LAID = Command(("ip", "-4", "route", "show", "proto", "186"), changes=False)
"""The routes that kubexm has laid, by the number that it lays them under."""


def strangers(world: World, names: Sequence[str]) -> str:
    """A host that does not know another by name, on a site where nobody tells them."""
    for host in names:
        known = world.host(host).shell().around
        if unknown := [name for name in names if not known.resolved(name)]:
            return f"{host} knows no {' '.join(unknown)}"
    return ""


def routed(graph: ExecutionGraph) -> tuple[str, ...]:
    """The hosts that need a way to the pods of all others; none if the network sees to that."""
    found = graph.nodes.get("create-cluster/network/routes/cni")
    return found.hosts if found is not None else ()


def cut_off(world: World, nodes: Sequence[str]) -> str:
    """A host whose pods have no way to those of another."""
    for host in nodes:
        routes = virtual.run(world.connector(host).exec(_LAID)).text.splitlines()
        if len(routes) < len(nodes) - 1:
            return f"{host} has {len(routes)} routes to the pods of {len(nodes) - 1} others"
    return ""


def complaint(world: World, nodes: Sequence[str]) -> str:
    """What the kubelet of a host of a finished cluster is not content with."""
    for host in nodes:
        said = virtual.run(world.connector(host).exec(_SAID)).text
        if wrong := [line for line in said.splitlines() if line.startswith("E")]:
            return f"{host}: {wrong[0]}"
    return ""


def idle(world: World, plane: str) -> str:
    """A pod of a finished cluster that does not run."""
    listed = kubectl.objects_of(virtual.run(world.connector(plane).exec(_PODS)))
    return next((why for pod in listed for why in workloads.troubles(pod)), "")
