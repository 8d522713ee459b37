"""What is drawn of a graph: boxes in boxes, what is written in them, and what flows between."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Mapping
from itertools import accumulate
from typing import Literal

import msgspec

from kubexm.plan.graph import ExecutionGraph
from kubexm.plan.layout import LONGEST_ROW, Box, Flow
from kubexm.plan.node import ExecutionNode
from kubexm.plan.outline import (
    UNDO,
    Describe,
    Edge,
    Scope,
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

MOST_BOXES = 120
"""With more to show, tasks are folded into one box each, then modules."""
NARROWEST, WIDEST = 96.0, 236.0

Style = Literal["scope", "node", "hook", "undo", "folded"]


class Face(msgspec.Struct, frozen=True):
    """What is written in a box."""

    style: Style
    title: str
    lines: tuple[str, ...] = ()
    tooltip: str = ""


def picture(
    graph: ExecutionGraph, describe: Describe = kind_and_params
) -> tuple[Box, Mapping[Box, Face]]:
    """The outermost box, with all the others in it, and what is written in each."""
    drawn = _Picture(graph, describe)
    return drawn.root, drawn.faces


class _Picture:
    """The boxes of a graph, and the flows between them."""

    def __init__(self, graph: ExecutionGraph, describe: Describe) -> None:
        self.faces: dict[Box, Face] = {}
        self._describe = describe
        nodes, joins = whole(graph)
        self._undoing = nodes.keys() - graph.nodes.keys()
        self._depth = _depth(nodes)
        self._box_of: dict[str, Box] = {}
        self._parent: dict[Box, Box] = {}
        all_edges = edges(nodes, joins)
        # What undoes waits for nothing, but the scope around it does not come first for that.
        order = sorted(all_edges, key=self._undoing.__contains__)
        self._rank = {id: number for number, id in enumerate(order)}
        root = tree(nodes)
        single = root.items[0] if len(root.items) == 1 else None
        root.name = graph.name
        self.root = self._scope_box(single if isinstance(single, Scope) else root)
        self._connect(sources(all_edges, joins))
        for box in list(self.root.everything()):
            self._bundle(box)

    def _scope_box(self, scope: Scope) -> Box:
        items = [
            self._node_box(item)
            if isinstance(item, ExecutionNode)
            else self._scope_or_folded_box(item)
            for item in scope.items
        ]
        widest = max((box.width for box in items if not box.items), default=0.0)
        for box in items:
            if not box.items:
                box.width = widest
        rank = min((box.rank for box in items), default=0)
        undo = scope.name == UNDO
        width = math.ceil(text_width(scope.name, 12)) + 32.0
        box = Box(width, rank=rank, aside=undo, items=items)
        self.faces[box] = Face("undo" if undo else "scope", scope.name, tooltip=scope.path)
        self._parent |= dict.fromkeys(items, box)
        return box

    def _scope_or_folded_box(self, scope: Scope) -> Box:
        if scope.path.count("/") + 1 < self._depth:
            return self._scope_box(scope)
        nodes = list(scope.nodes())
        forward = [node for node in nodes if node.id not in self._undoing] or nodes
        units = sum(1 if node.one_of else len(node.hosts) for node in forward)
        text = f"{_number(len(forward), 'step')}, {_number(units, 'unit')}"
        inside = ", ".join(node.id.removeprefix(f"{scope.path}/") for node in nodes)
        style: Style = "undo" if scope.name == UNDO else "folded"
        face = Face(style, scope.name, (text,), f"{scope.path}: {one_line(inside, 400)}")
        box = self._leaf_box(face, [node.id for node in nodes])
        box.aside = scope.name == UNDO
        return box

    def _node_box(self, node: ExecutionNode) -> Box:
        style: Style = "node" if node.hook is None else "hook"
        text = summary(node, self._describe)
        lines = (*filter(None, [text]), hosts(node))
        tooltip = f"{node.id}: {text} [{' '.join(node.hosts[:50])}]"
        return self._leaf_box(Face(style, title(node), lines, tooltip), [node.id])

    def _leaf_box(self, face: Face, nodes: list[str]) -> Box:
        wanted = max(text_width(face.title, 12.5), *(text_width(line, 10.5) for line in face.lines))
        width = min(max(math.ceil(wanted) + 20.0, NARROWEST), WIDEST)
        height = 26.0 + 15.0 * len(face.lines)
        box = Box(width, height, min(map(self._rank.__getitem__, nodes)))
        self.faces[box] = face
        self._box_of |= dict.fromkeys(nodes, box)
        return box

    def _connect(self, waits: Mapping[str, frozenset[Edge]]) -> None:
        seen: set[tuple[int, Box]] = set()
        for node, some in waits.items():
            after = self._box_of[node]
            # Nodes that wait for the same join share one set; folded together they share a box.
            if (id(some), after) in seen:
                continue
            seen.add((id(some), after))
            for edge in sorted(some):
                self._flow(self._box_of[edge.before], after, edge.barrier)

    def _flow(self, source: Box, target: Box, barrier: bool) -> None:
        if source is target:
            return
        before, after, around = self._siblings(source, target)
        flow = around.flows.setdefault((before, after), Flow(before, after))
        flow.barrier |= barrier
        flow.sources.add(source)
        flow.targets.add(target)

    def _bundle(self, box: Box) -> None:
        """Many nodes with the same neighbours become one box, with one arrow for all of them."""
        alike: dict[tuple[frozenset[tuple[Box, bool]], ...], list[Box]] = {}
        before: dict[Box, set[tuple[Box, bool]]] = {}
        after: dict[Box, set[tuple[Box, bool]]] = {}
        for flow in box.flows.values():
            before.setdefault(flow.after, set()).add((flow.before, flow.barrier))
            after.setdefault(flow.before, set()).add((flow.after, flow.barrier))
        for item in box.items:
            if not item.items and not item.aside:
                neighbours = (before.get(item, ()), after.get(item, ()))
                alike.setdefault(tuple(map(frozenset, neighbours)), []).append(item)
        for items in alike.values():
            if LONGEST_ROW < len(items) < len(box.items):
                self._replace(box, items)

    def _replace(self, box: Box, items: list[Box]) -> None:
        whole = Box(rank=min(item.rank for item in items), items=items)
        self.faces[whole] = Face("scope", f"{len(items)} side by side")
        inside = set(items)
        box.items = [whole, *(item for item in box.items if item not in inside)]
        flows, box.flows = box.flows, {}
        for flow in flows.values():
            first = whole if flow.before in inside else flow.before
            second = whole if flow.after in inside else flow.after
            merged = box.flows.setdefault((first, second), Flow(first, second))
            merged.barrier |= flow.barrier
            merged.sources |= flow.sources
            merged.targets |= flow.targets

    def _siblings(self, source: Box, target: Box) -> tuple[Box, Box, Box]:
        """The boxes around both that lie beside each other, and the one around these."""
        left, right = self._lineage(source), self._lineage(target)
        depth = 0
        while left[depth] is right[depth]:
            depth += 1
        return left[depth], right[depth], left[depth - 1]

    def _lineage(self, box: Box) -> list[Box]:
        line = [box]
        while (parent := self._parent.get(line[-1])) is not None:
            line.append(parent)
        return line[::-1]


def _depth(nodes: Iterable[str]) -> int:
    """How many segments of a path are shown: as many as give boxes that can still be read."""
    paths = [node.split("/") for node in nodes]
    deepest = max(map(len, paths), default=1)
    for depth in range(deepest, 2, -1):
        shown = {path for segments in paths for path in accumulate(segments[:depth], _joined)}
        if len(shown) <= MOST_BOXES:
            return depth
    return 2


def _joined(first: str, second: str) -> str:
    return f"{first}/{second}"


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def text_width(text: str, size: float) -> float:
    """About how wide a text is; there is no font to ask."""
    return sum(map(_letter, text)) * size / 100


def _letter(letter: str) -> int:
    """In hundredths of the size: whole numbers add up to the same on every Python."""
    if unicodedata.east_asian_width(letter) in "WF":
        return 100
    return 32 if letter in "iljtf.,:;|!'()[]/ " else 58
