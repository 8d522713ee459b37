"""The execution graph: one step on a set of hosts per node, as plain data.

An `ExecutionGraph` that exists is valid: it is checked when it is made, loaded or merged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

import msgspec

from kubexm.errors import InvalidGraph
from kubexm.plan import validation
from kubexm.plan.fragment import ExecutionFragment
from kubexm.plan.node import Compensation, ExecutionNode, Join
from kubexm.plan.policy import HostGroup, OnFailure, Pool


class ExecutionGraph(msgspec.Struct, frozen=True):
    """A named set of nodes that can be run."""

    name: str
    nodes: dict[str, ExecutionNode]
    joins: dict[str, Join] = {}
    hosts: tuple[str, ...] = ()
    groups: tuple[HostGroup, ...] = ()
    pools: dict[str, Pool] = {}
    on_failure: OnFailure = "isolate"
    digests: dict[str, str] = {}
    compensations: tuple[Compensation, ...] = ()

    def __post_init__(self) -> None:
        self.validate()

    def validate(self, kinds: Iterable[str] | None = None) -> None:
        """Raise `InvalidGraph` with every problem; with `kinds`, unknown step kinds too."""
        problems = validation.problems(self, None if kinds is None else frozenset(kinds))
        if problems:
            raise InvalidGraph(f"graph `{self.name}` is not valid", problems=problems)

    def add_node(self, node: ExecutionNode) -> ExecutionGraph:
        """This graph and one more node; its id must be new."""
        return self.merge([node])

    def merge(
        self,
        nodes: Iterable[ExecutionNode],
        joins: Iterable[Join] = (),
        compensations: Iterable[Compensation] = (),
    ) -> ExecutionGraph:
        """This graph with more in it; no id may be there already."""
        return msgspec.structs.replace(
            self,
            nodes=_united(self.nodes, nodes),
            joins=_united(self.joins, joins),
            compensations=(*self.compensations, *compensations),
        )

    def __iter__(self) -> Iterator[ExecutionNode]:
        return iter(self.nodes.values())

    def __len__(self) -> int:
        return len(self.nodes)

    @property
    def unit_count(self) -> int:
        """How many units the graph has before any expansion."""
        return sum(1 if node.one_of else len(node.hosts) for node in self.nodes.values())

    def dependencies(self, id: str) -> tuple[str, ...]:
        """What a node or join waits for, both kinds of edge."""
        vertex = self.nodes.get(id) or self.joins[id]
        return vertex.after + vertex.after_same_host


V = TypeVar("V", ExecutionNode, Join)


def build(name: str, nodes: Iterable[ExecutionNode], **rest: Any) -> ExecutionGraph:
    """A graph of these nodes; a duplicate id is refused."""
    joins: Iterable[Join] = rest.pop("joins", ())
    return ExecutionGraph(name=name, nodes=_united({}, nodes), joins=_united({}, joins), **rest)


def as_graph(name: str, fragment: ExecutionFragment | None, **rest: Any) -> ExecutionGraph:
    """The graph of a whole pipeline; where nothing of it is required it has no node."""
    whole = fragment or ExecutionFragment()
    parts = {"joins": whole.joins, "compensations": whole.compensations}
    return build(name, whole.nodes, **parts, **rest)


def _united(known: Mapping[str, V], more: Iterable[V]) -> dict[str, V]:
    united = dict(known)
    for vertex in more:
        if vertex.id in united:
            raise InvalidGraph(
                f"two nodes have the id `{vertex.id}`", hint="give one of them another name"
            )
        united[vertex.id] = vertex
    return united
