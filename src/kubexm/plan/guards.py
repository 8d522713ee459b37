"""What stays around a part of a graph: the hooks of each scope of which something is left.

A part is guarded as the whole is: what locks, drains and reports is left out only with the scope
that it stands around, never because a narrower path or another host was asked for.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from kubexm.common.roles import CONTROL_NODE
from kubexm.plan.graph import ExecutionGraph
from kubexm.plan.node import ExecutionNode
from kubexm.plan.validation import scopes_around

Kept = Mapping[str, tuple[str, ...]]
"""The ids of the nodes that stay, each with the hosts it keeps."""


class Guards:
    """The hooks of a graph by scope, without those that are to be skipped."""

    def __init__(
        self, graph: ExecutionGraph, skip: Collection[str], hosts: Collection[str]
    ) -> None:
        self._graph = graph
        self._selected = hosts
        self._hooks: dict[str, list[ExecutionNode]] = {}
        for node in graph:
            if node.hook is not None and node.id not in skip:
                self._hooks.setdefault(node.hook.scope, []).append(node)
        self._whole = scope_hosts(graph, whole(graph), self._hooks)

    def around(self, kept: Kept) -> dict[str, tuple[str, ...]]:
        """These nodes, and the hooks of all scopes that any of them lies in."""
        more = dict(kept)
        for scope, left in scope_hosts(self._graph, kept, self._hooks).items():
            for node in self._hooks[scope]:
                some = {*self._hosts(node, self._whole[scope] - left, left), *kept.get(node.id, ())}
                if some:
                    more[node.id] = tuple(host for host in node.hosts if host in some)
        return more

    def lost(self, kept: Kept) -> dict[str, list[ExecutionNode]]:
        """By scope the hooks that guard all of it, and that stay on none of their hosts."""
        found: dict[str, list[ExecutionNode]] = {}
        for scope in scope_hosts(self._graph, kept, self._hooks):
            once = [node for node in self._hooks[scope] if _is_once(node)]
            # What only follows a scope, such as a report, is missed by nothing that is left.
            if any(node.hook is not None and node.hook.moment == "pre" for node in once):
                found[scope] = [node for node in once if node.id not in kept]
        return {scope: nodes for scope, nodes in found.items() if nodes}

    def _hosts(
        self, node: ExecutionNode, gone: Collection[str], left: Collection[str]
    ) -> Iterable[str]:
        """Where a hook stays, if its scope is left on some hosts and gone from others."""
        if not _is_once(node):
            return (host for host in node.hosts if host in left)
        # On none of the hosts that are left, it stands for the scope as a whole, like a lock.
        here = elsewhere(node.hosts, gone)
        return here or [host for host in node.hosts if host in self._selected]


def elsewhere(hosts: Iterable[str], gone: Collection[str]) -> list[str]:
    """These hosts without those that a scope is gone from.

    Whoever names hosts means those that are changed: what is done here for them still is.
    """
    return [host for host in hosts if host not in gone or host == CONTROL_NODE]


def whole(graph: ExecutionGraph) -> dict[str, tuple[str, ...]]:
    """All nodes, each with all its hosts."""
    return {node.id: node.hosts for node in graph}


def scope_hosts(
    graph: ExecutionGraph, kept: Kept, scopes: Collection[str]
) -> dict[str, frozenset[str]]:
    """Of these scopes those that something is left of but hooks, and on which hosts."""
    found: dict[str, set[str]] = {}
    for id, hosts in kept.items():
        if graph.nodes[id].hook is None:
            for scope in scopes_around(id):
                if scope in scopes:
                    found.setdefault(scope, set()).update(hosts)
    return {scope: frozenset(hosts) for scope, hosts in found.items()}


def _is_once(node: ExecutionNode) -> bool:
    """Whether a hook is there for all hosts of its scope, not for each by itself."""
    return node.one_of or (node.hook is not None and node.hook.barrier)
