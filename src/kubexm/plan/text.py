"""A graph as an indented tree: what is done where, in the order of the plan.

Read from top to bottom: a step follows the one above it on each host, a scope follows the scope
above it as a whole. Only what is not so is marked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import accumulate

from kubexm.plan.graph import ExecutionGraph
from kubexm.plan.node import ExecutionNode
from kubexm.plan.outline import (
    UNDO,
    UNDO_NOTE,
    Describe,
    Edge,
    Scope,
    cells,
    edges,
    hosts,
    kind_and_params,
    one_line,
    sources,
    summary,
    title,
    tree,
    whole,
)
from kubexm.plan.validation import inside

SAME_HOST, BARRIER, BESIDE = "←", "⇐", "∥"
LEGEND = (
    f"{SAME_HOST} after it on the same host · {BARRIER} after it on all hosts · "
    f"{BESIDE} beside it; without a mark: after the line above"
)
WIDEST_NAME = 32
MOST_NAMES = 3

Item = Scope | ExecutionNode
Foresee = Callable[[ExecutionNode], str]
"""What is known ahead of the condition of a node, in a few words."""
Waits = frozenset[Edge]


def as_text(
    graph: ExecutionGraph, describe: Describe = kind_and_params, foresee: Foresee = lambda _: ""
) -> str:
    """The tree, and what its marks mean if it has any."""
    nodes, joins = whole(graph)
    root = tree(nodes)
    order = _Order(root, sources(edges(nodes, joins), joins))
    lines = list(_Tree(order, describe, foresee).lines(root, ""))
    marked = any(mark in line for line in lines for mark in (SAME_HOST, BARRIER, BESIDE))
    return "\n".join([*lines, *(["", LEGEND] if marked else [])]) + "\n"


class _Tree:
    """Writes the lines of scopes and nodes."""

    def __init__(self, order: _Order, describe: Describe, foresee: Foresee) -> None:
        self._order = order
        self._describe = describe
        self._foresee = foresee

    def lines(self, scope: Scope, indent: str) -> Iterator[str]:
        nodes = [item for item in scope.items if isinstance(item, ExecutionNode)]
        width = min(max((cells(_title(node)) for node in nodes), default=0), WIDEST_NAME)
        for item, mark in zip(scope.items, self._order.marks(scope), strict=True):
            yield f"{indent}{self._line(item, width)}{mark and f'  {mark}'}"
            if isinstance(item, Scope):
                yield from self.lines(item, f"{indent}  ")

    def _line(self, item: Item, width: int) -> str:
        if isinstance(item, Scope):
            return one_line(item.name)
        text = summary(item, self._describe)
        condition = f"  if {one_line(item.when)}{self._foreseen(item)}" if item.when else ""
        name = _title(item)
        return f"{name}{' ' * (width - cells(name))}  {text}  [{one_line(hosts(item))}]{condition}"

    def _foreseen(self, node: ExecutionNode) -> str:
        known = self._foresee(node)
        return known and f" ({known})"


class _Order:
    """What of the order has to be said, because it can't be seen."""

    def __init__(self, root: Scope, waits: Mapping[str, Waits]) -> None:
        self._scopes = {scope.path: scope for scope in root.scopes()}
        self._place = {node.id: number for number, node in enumerate(root.nodes())}
        self._waits = waits
        self._outward: dict[Item, Waits] = {}
        self._exits: dict[Item, frozenset[str]] = {}
        self._entries: dict[Scope, set[Waits]] = {}

    def marks(self, scope: Scope) -> list[str]:
        """For each item of a scope what it waits for, or nothing if that is obvious."""
        said = self._said(scope)
        return [self._mark(scope, said, number) for number in range(len(said))]

    def _mark(self, scope: Scope, said: list[Waits], number: int) -> str:
        item, waits = scope.items[number], said[number]
        if isinstance(item, Scope) and item.name == UNDO:
            return UNDO_NOTE
        if isinstance(item, Scope) and not self._together(item):
            return f"in part {self._named(waits, item)}"
        if number and waits == self._usual(scope.items[number - 1], item):
            return ""
        if number and waits == said[number - 1]:
            return BESIDE
        if number and not waits and waits in said[:number]:
            return f"{BESIDE} {_name(scope.items[said.index(waits)])}"
        return self._named(waits, item) or ("" if self._together(scope) else "at once")

    def _said(self, scope: Scope) -> list[Waits]:
        """What each item waits for; only inside the scope if the scope's own line says the rest."""
        rest = self._outward_of(scope) if self._together(scope) else frozenset()
        return [self._outward_of(item) - rest for item in scope.items]

    def _together(self, scope: Scope) -> bool:
        """Whether all of a scope waits for the same, so that it can be said of the scope."""
        outward = self._outward_of(scope)
        return all(waits == outward for waits in self._entries_of(scope))

    def _entries_of(self, scope: Scope) -> set[Waits]:
        """What the nodes wait for that wait for nothing inside."""
        if (found := self._entries.get(scope)) is None:
            outward = self._outward_of(scope)
            parts = [item for item in scope.items if _name(item) != UNDO]
            waits = {
                some
                for item in parts
                for some in (
                    self._entries_of(item) if isinstance(item, Scope) else {self._waits[item.id]}
                )
            }
            found = self._entries[scope] = {some for some in waits if some <= outward}
        return found

    def _outward_of(self, item: Item) -> Waits:
        """What is waited for outside of an item."""
        if isinstance(item, ExecutionNode):
            return self._waits[item.id]
        if (found := self._outward.get(item)) is None:
            parts = {self._outward_of(inner) for inner in item.items}
            united = frozenset[Edge]().union(*parts)
            prefix = f"{item.path}/" if item.path else ""
            found = frozenset(edge for edge in united if not edge.before.startswith(prefix))
            self._outward[item] = found
        return found

    def _exits_of(self, item: Item) -> frozenset[str]:
        """The nodes of an item that nothing else in it waits for."""
        if isinstance(item, ExecutionNode):
            return frozenset([item.id])
        if (found := self._exits.get(item)) is None:
            parts = [inner for inner in item.items if _name(inner) != UNDO]
            exits = frozenset[str]().union(*map(self._exits_of, parts))
            waited = {edge.before for inner in parts for edge in self._outward_of(inner)}
            found = self._exits[item] = exits - waited
        return found

    def _usual(self, previous: Item, item: Item) -> Waits:
        """What an item waits for unless something else is said."""
        lane = isinstance(previous, ExecutionNode) and isinstance(item, ExecutionNode)
        return frozenset(Edge(id, not lane) for id in self._exits_of(previous))

    def _named(self, waits: Waits, item: Item) -> str:
        parts = []
        for mark, barrier in ((SAME_HOST, False), (BARRIER, True)):
            ids = {edge.before for edge in waits if edge.barrier == barrier}
            if ids:
                parts.append(f"{mark} {_few(self._names(ids, _path(item)))}")
        return "  ".join(parts)

    def _names(self, ids: set[str], here: str) -> list[str]:
        """These nodes, or the scopes that end with them, as seen from a path."""
        names = []
        left = set(ids)
        for id in sorted(ids, key=self._place.__getitem__):
            if id in left:
                path, exits = self._largest(id, left, here)
                left -= exits
                names.append(_relative(path, here))
        return names

    def _largest(self, id: str, ids: set[str], here: str) -> tuple[str, frozenset[str]]:
        for path in accumulate(id.split("/")[:-1], "{}/{}".format):
            exits = self._exits_of(self._scopes[path])
            if not inside(here, path) and exits <= ids:
                return path, exits
        return id, frozenset([id])


def _title(node: ExecutionNode) -> str:
    return one_line(title(node))


def _name(item: Item) -> str:
    return item.name if isinstance(item, Scope) else title(item)


def _path(item: Item) -> str:
    return item.path if isinstance(item, Scope) else item.id


def _relative(path: str, here: str) -> str:
    """A path without the scopes that both share."""
    mine, other = here.split("/"), path.split("/")
    shared = 0
    while shared < min(len(mine), len(other)) - 1 and mine[shared] == other[shared]:
        shared += 1
    return "/".join(other[shared:])


def _few(names: list[str]) -> str:
    more = f", … ({len(names)})" if len(names) > MOST_NAMES else ""
    return one_line(", ".join(names[:MOST_NAMES])) + more
