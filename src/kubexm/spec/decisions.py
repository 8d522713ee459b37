"""What conditions decide before any host is asked, by what is known of it then."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

from kubexm.plan import ExecutionGraph, ExecutionNode
from kubexm.plan.outline import whole
from kubexm.spec import conditions, references
from kubexm.spec.expressions import compile_expression
from kubexm.spec.inventory import InventoryHost
from kubexm.spec.references import Reference

Decision = Literal["yes", "no", "unknown"]
Decisions = Mapping[str, Mapping[str, Decision]]
"""Whether a node runs on a host, by node and host; only nodes that have a condition."""
Facts = Mapping[str, Mapping[str, Any]]
"""What is known of hosts, by host; there may be more that is not."""
Hosts = frozenset[str]

_WORDS: Mapping[bool | None, Decision] = {True: "yes", False: "no", None: "unknown"}


def decisions(graph: ExecutionGraph, hosts: Iterable[InventoryHost], facts: Facts) -> Decisions:
    """What is decided by variables, by the hosts as they are declared, and by these facts.

    Of an assertion it is the `when` that is written beside it: what it asserts is no choice.
    """
    judge = _Judge(hosts, facts)
    nodes, _ = whole(graph)
    found = ((node, _condition(node)) for node in nodes.values())
    return {node.id: judge.decide(node, when) for node, when in found if when is not None}


def facts_in_conditions(graph: ExecutionGraph) -> Hosts:
    """The hosts on which a condition names a fact."""
    return _hosts(graph, _in_condition)


def facts_in_parameters(graph: ExecutionGraph) -> Hosts:
    """The hosts on which a parameter names a fact."""
    return _hosts(graph, _in_parameters)


def facts_needed(graph: ExecutionGraph) -> Hosts:
    """The hosts on which anything names a fact: a condition, an assertion or a parameter."""
    return _hosts(graph, lambda node: (*_references(node.when), *_in_parameters(node)))


def decided_against(graph: ExecutionGraph, hosts: Iterable[InventoryHost]) -> Hosts:
    """The hosts on which every node has a condition, and none of them can hold."""
    nodes = [*whole(graph)[0].values()]
    without = {host for node in nodes if node.when is None for host in node.hosts}
    judge = _Judge((host for host in hosts if host.name not in without), {})
    busy = (
        host
        for node in nodes
        if node.when is not None
        for host in node.hosts
        if host not in without and judge.decided(node.when, host) != "no"
    )
    return frozenset(host for node in nodes for host in node.hosts) - without.union(busy)


def _hosts(graph: ExecutionGraph, named: Callable[[ExecutionNode], Iterable[object]]) -> Hosts:
    nodes, _ = whole(graph)
    return frozenset(
        host for node in nodes.values() if any(map(_is_fact, named(node))) for host in node.hosts
    )


def _in_condition(node: ExecutionNode) -> Iterable[object]:
    return _references(_condition(node))


def _references(condition: str | None) -> Iterable[object]:
    return () if condition is None else compile_expression(condition).references


def _in_parameters(node: ExecutionNode) -> Iterable[object]:
    if not node.step.references:
        return ()
    return (found for _, found in references.scan(node.step.params))


def _is_fact(found: object) -> bool:
    return isinstance(found, Reference) and found.root == "facts"


def _condition(node: ExecutionNode) -> str | None:
    return conditions.told(node.step.kind, node.step.params, node.when)[1]


class _Judge:
    """Decides conditions, each once for a host: many steps have the same."""

    def __init__(self, hosts: Iterable[InventoryHost], facts: Facts) -> None:
        self._scopes = {
            host.name: {
                "vars": host.vars,
                "host": host.described(),
                "facts": facts.get(host.name, {}),
            }
            for host in hosts
        }
        self._known: dict[tuple[str, str], Decision] = {}

    def decide(self, node: ExecutionNode, when: str) -> dict[str, Decision]:
        return {host: self.decided(when, host) for host in node.hosts}

    def decided(self, when: str, host: str) -> Decision:
        if (known := self._known.get((when, host))) is None:
            condition = compile_expression(when)
            known = _WORDS[condition.decided(self._scopes[host], partial=("facts",))]
            self._known[when, host] = known
        return known
