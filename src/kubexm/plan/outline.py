"""What all pictures of a graph share: the tree of scopes, and edges without the implied ones."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import accumulate
from typing import NamedTuple

import msgspec

from kubexm.plan.graph import ExecutionGraph
from kubexm.plan.node import ExecutionNode, Join, StepSpec
from kubexm.plan.validation import topological_order

Describe = Callable[[StepSpec], str]
"""What a step is about, in one line."""

UNDO = "@compensate"
"""The scope of what undoes the one around it."""
UNDO_NOTE = "in place of the undo of each step"
REDUCIBLE = 5_000
"""Up to so many vertices implied edges are looked for; no picture of more can be read anyway."""


class Edge(NamedTuple):
    """To wait for another vertex: as a barrier on all hosts, or on the same host."""

    before: str
    barrier: bool


Edges = Mapping[str, tuple[Edge, ...]]


def edges(nodes: Mapping[str, ExecutionNode], joins: Mapping[str, Join]) -> Edges:
    """What each vertex waits for, without the edges that follow from others."""
    order, _ = topological_order(nodes, joins)
    plain = {id: _plain(nodes.get(id) or joins[id]) for id in order}
    return _reduced(order, plain) if len(order) <= REDUCIBLE else plain


def _plain(vertex: ExecutionNode | Join) -> tuple[Edge, ...]:
    barriers = dict.fromkeys(Edge(id, True) for id in vertex.after)
    lanes = dict.fromkeys(Edge(id, False) for id in vertex.after_same_host)
    return (*barriers, *lanes)


class _Before(msgspec.Struct, frozen=True):
    """Sets of vertices, a bit each: final on all hosts before this one, or on the same host."""

    everywhere: int = 0
    same_host: int = 0

    def and_(self, other: _Before) -> _Before:
        return _Before(self.everywhere | other.everywhere, self.same_host | other.same_host)


def _reduced(order: list[str], plain: Edges) -> Edges:
    bit = {id: 1 << number for number, id in enumerate(order)}
    known: dict[str, _Before] = {}
    kept: dict[str, tuple[Edge, ...]] = {}
    for id in order:
        implied = [_implied(edge, bit, known) for edge in plain[id]]
        up_to = list(accumulate(implied, _Before.and_, initial=_Before()))
        beyond = list(accumulate(reversed(implied), _Before.and_, initial=_Before()))
        known[id] = up_to[-1]
        kept[id] = tuple(
            edge
            for edge, before, after in zip(plain[id], up_to, beyond[-2::-1], strict=False)
            if not _follows(edge, bit[edge.before], before.and_(after))
        )
    return kept


def _implied(edge: Edge, bit: Mapping[str, int], known: Mapping[str, _Before]) -> _Before:
    """All that has to be final if this edge is kept."""
    before = known[edge.before]
    if edge.barrier:
        return _Before(bit[edge.before] | before.everywhere | before.same_host)
    return _Before(before.everywhere, bit[edge.before] | before.same_host)


def _follows(edge: Edge, bit: int, others: _Before) -> bool:
    return bool(bit & others.everywhere or (not edge.barrier and bit & others.same_host))


class Scope(msgspec.Struct, eq=False):
    """A part of the tree: its own name, and what is in it, in the order of the plan."""

    name: str
    path: str
    items: list[Scope | ExecutionNode] = msgspec.field(default_factory=list)

    def nodes(self) -> Iterator[ExecutionNode]:
        """Every node inside, at any depth."""
        for item in self.items:
            if isinstance(item, Scope):
                yield from item.nodes()
            else:
                yield item

    def scopes(self) -> Iterator[Scope]:
        """This scope and every one inside, at any depth."""
        yield self
        for item in self.items:
            if isinstance(item, Scope):
                yield from item.scopes()


def tree(nodes: Mapping[str, ExecutionNode]) -> Scope:
    """The scopes of these nodes; the root has no name."""
    scopes = {"": Scope("", "")}
    for id, node in nodes.items():
        _scope(id.rpartition("/")[0], scopes).items.append(node)
    return scopes[""]


def _scope(path: str, scopes: dict[str, Scope]) -> Scope:
    if (found := scopes.get(path)) is not None:
        return found
    parent, _, name = path.rpartition("/")
    scope = scopes[path] = Scope(name, path)
    _scope(parent, scopes).items.append(scope)
    return scope


def sources(all_edges: Edges, joins: Mapping[str, Join]) -> dict[str, frozenset[Edge]]:
    """The edges of each node straight to other nodes, with the joins in between taken out."""
    through: dict[Edge, frozenset[Edge]] = {}
    found: dict[str, frozenset[Edge]] = {}
    for id, some in all_edges.items():  # in topological order: what is before is known
        if id not in joins:
            found[id] = _straight(some, through)
            continue
        through[Edge(id, False)] = _straight(some, through)
        # A barrier on a join is one on all that it names.
        through[Edge(id, True)] = _straight([Edge(edge.before, True) for edge in some], through)
    return found


def _straight(some: Collection[Edge], through: Mapping[Edge, frozenset[Edge]]) -> frozenset[Edge]:
    parts = [through.get(edge, frozenset([edge])) for edge in some]
    return parts[0] if len(parts) == 1 else frozenset[Edge]().union(*parts)


def hosts(node: ExecutionNode) -> str:
    """The hosts of a node, few enough to read."""
    some = node.hosts
    text = " ".join(some) if len(some) <= 3 else f"{some[0]} … {some[-1]} ({len(some)})"
    return f"one of {text}" if node.one_of else text


def heading(scope: Scope) -> str:
    """The name of a scope, and what that means if it is no user's word."""
    return f"{scope.name}: {UNDO_NOTE}" if scope.name == UNDO else scope.name


def title(node: ExecutionNode) -> str:
    """The last segment of a path: what the scopes around it leave to say."""
    return node.id.rpartition("/")[2]


def summary(node: ExecutionNode, describe: Describe) -> str:
    """What a node does, in one printable line."""
    text = describe(node.step)
    own = node.name not in (node.id, title(node)) and node.name
    return one_line(f"{own}: {text}" if own and text else own or text)


def kind_and_params(step: StepSpec) -> str:
    """A step as it is stored, for want of a better description."""
    params = (f"{key}={msgspec.json.encode(value).decode()}" for key, value in step.params.items())
    return " ".join((step.kind, *params))


def one_line(text: str, limit: int = 100) -> str:
    """The text without line breaks and control characters, cut where it gets long."""
    words = " ".join(text[: 4 * limit].split())
    clean = "".join(letter if letter.isprintable() else "·" for letter in words)
    return clean if len(clean) <= limit else f"{clean[: limit - 1]}…"


def cells(text: str) -> int:
    """How many columns of a terminal a text takes; Chinese characters take two."""
    return len(text) + sum(unicodedata.east_asian_width(letter) in "WF" for letter in text)


def whole(graph: ExecutionGraph) -> tuple[dict[str, ExecutionNode], dict[str, Join]]:
    """Nodes and joins of a graph with those that would undo it."""
    nodes, joins = dict(graph.nodes), dict(graph.joins)
    for item in graph.compensations:
        nodes.update((node.id, node) for node in item.nodes)
        joins.update((join.id, join) for join in item.joins)
    return nodes, joins
