"""One part of a fragment as several, by the hosts it runs on.

Whoever waits for a part on all hosts waits for every host of it, also where it only waits for what
stands on it. Hosts that are to go their own way therefore have nodes of their own.
"""

from __future__ import annotations

from collections.abc import Mapping

from kubexm.plan.fragment import ExecutionFragment, replace
from kubexm.plan.node import ExecutionNode, Join

Groups = Mapping[str, frozenset[str]]
"""Hosts by the name of their group; no host is in two of them."""


def split(fragment: ExecutionFragment, scope: str, groups: Groups) -> ExecutionFragment:
    """The same nodes, those of each group below a scope of its own; all edges are same-host.

    A node on one of several hosts stays in the group of the first of them.
    """
    parts = [_Part(fragment, scope, name, hosts) for name, hosts in groups.items()]
    return ExecutionFragment(
        tuple(node for part in parts for node in part.nodes()),
        tuple(join for part in parts for join in part.joins()),
        fragment.compensations,
    )


class _Part:
    """What of a fragment is for one group."""

    def __init__(
        self, fragment: ExecutionFragment, scope: str, name: str, hosts: frozenset[str]
    ) -> None:
        self._scope, self._name, self._hosts = scope, name, hosts
        self._nodes = {node.id: node for node in fragment.nodes}
        self._joins = {join.id: join for join in fragment.joins}

    def nodes(self) -> list[ExecutionNode]:
        return [
            replace(
                node,
                id=self._path(node.id),
                hosts=self._own(node),
                after=self._paths(node.after),
                after_same_host=self._paths(node.after_same_host),
            )
            for node in self._nodes.values()
            if self._own(node)
        ]

    def joins(self) -> list[Join]:
        return [
            Join(self._path(join.id), self._paths(join.after), self._paths(join.after_same_host))
            for join in self._joins.values()
        ]

    def _own(self, node: ExecutionNode) -> tuple[str, ...]:
        if node.one_of:
            return node.hosts if node.hosts[0] in self._hosts else ()
        return tuple(host for host in node.hosts if host in self._hosts)

    def _paths(self, ids: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(path for id in ids for path in self._beyond(id)))

    def _beyond(self, id: str) -> tuple[str, ...]:
        """A dependency in this group; where it has no host here, what it depends on itself."""
        node = self._nodes.get(id)
        if node is None or self._own(node):
            return (self._path(id),)
        return self._paths((*node.after, *node.after_same_host))

    def _path(self, id: str) -> str:
        return f"{self._scope}/{self._name}/{id.removeprefix(f'{self._scope}/')}"
