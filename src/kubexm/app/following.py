"""What stands on something that a retry does anew, and so has to be looked at once more."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from kubexm.plan.graph import ExecutionGraph
from kubexm.plan.node import ANY_HOST, ExecutionNode
from kubexm.plan.records import Unit, UnitDone
from kubexm.plan.validation import scopes_around, topological_order

Hosts = dict[str, set[str]]
"""By node or join the hosts in question."""


class Begun(msgspec.Struct, frozen=True):
    """Where a retry begins to differ from what was done."""

    anew: Hosts = msgspec.field(default_factory=dict)
    """Does something else than before, or was not there: nobody has seen what it will do."""
    again: Hosts = msgspec.field(default_factory=dict)
    """Does what it was to do before, and did not."""


def followers(graph: ExecutionGraph, begun: Begun) -> Iterator[Unit]:
    """All that stands after something done anew; after something tried again, on its host only.

    Who passed a barrier without a host did not need it then, and does not need it now.
    """
    providers = _providers(graph)
    anew: Hosts = {}
    again: Hosts = {}
    for id in topological_order(graph.nodes, graph.joins)[0]:
        vertex = graph.nodes.get(id) or graph.joins[id]
        anew[id] = _on(anew, vertex.after_same_host)
        again[id] = _on(again, vertex.after_same_host)
        if any(anew[before] for before in vertex.after):
            anew[id] = set(graph.hosts)
        if isinstance(vertex, ExecutionNode):
            taken = [providers[key] for key in vertex.step.needs if key in providers]
            if any(anew[provider] or again[provider] for provider in taken):
                anew[id] = set(graph.hosts)
            yield from _units(vertex, anew[id] | again[id])
        anew[id] |= begun.anew.get(id, set())
        again[id] |= begun.again.get(id, set())


def hooks_around(
    graph: ExecutionGraph, begun: Begun, opened: Iterable[Unit], done: Mapping[Unit, UnitDone]
) -> Iterator[Unit]:
    """The hooks of all scopes in which there is work, on the hosts where that is.

    What was locked before the work and unlocked after it is so once more; where nothing was done
    after it, what was done before it still holds. What a hook stands before is none of its
    followers, and stays as it is.
    """
    work: Hosts = {}
    for hosts in (begun.anew, begun.again, _by_node(graph, opened)):
        for id, some in hosts.items():
            if id in graph.nodes and graph.nodes[id].hook is None:
                for scope in scopes_around(id):
                    work.setdefault(scope, set()).update(some)
    left = _left(graph, done)
    for node in graph:
        if node.hook is not None and (names := work.get(node.hook.scope)):
            if node.hook.moment == "pre":
                names = names & left.get(node.hook.scope, set())
            if names:
                yield from _units(node, set(node.hosts) if node.hook.barrier else names)


def _left(graph: ExecutionGraph, done: Mapping[Unit, UnitDone]) -> Hosts:
    """By scope the hosts for which hooks after it have run."""
    found: Hosts = {}
    for (id, _), end in done.items():
        hook = graph.nodes[id].hook if id in graph.nodes else None
        if hook is not None and hook.moment != "pre" and end.result.status == "Success":
            hosts = graph.hosts if hook.barrier else (end.result.host_name,)
            found.setdefault(hook.scope, set()).update(hosts)
    return found


def _by_node(graph: ExecutionGraph, units: Iterable[Unit]) -> Hosts:
    found: Hosts = {}
    for id, host in units:
        names = graph.nodes[id].hosts if host == ANY_HOST else (host,)
        found.setdefault(id, set()).update(names)
    return found


def _providers(graph: ExecutionGraph) -> dict[str, str]:
    """By key the node that leaves it for the whole run; others stay on their host."""
    return {
        key.name: id
        for id, node in graph.nodes.items()
        for key in node.step.provides
        if key.scope == "run"
    }


def _on(hosts: Hosts, ids: Iterable[str]) -> set[str]:
    found: set[str] = set()
    return found.union(*(hosts[id] for id in ids))


def _units(node: ExecutionNode, hosts: set[str]) -> Iterator[Unit]:
    found = [host for host in node.hosts if host in hosts]
    if node.one_of:
        found = [ANY_HOST] if found else []
    return ((node.id, host) for host in found)
