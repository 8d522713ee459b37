"""A graph as one self-contained SVG picture, without any program to draw it."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Literal
from xml.sax.saxutils import escape

from kubexm.plan.graph import ExecutionGraph
from kubexm.plan.layout import LINE_GAP, LONGEST_ROW, Box, Flow, Line, Point, arrange
from kubexm.plan.node import ExecutionNode
from kubexm.plan.outline import (
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
)

MOST_BOXES = 120
"""With more to show, tasks are folded into one box each, then modules."""
NARROWEST, WIDEST = 96.0, 236.0
MARGIN, LEGEND_HEIGHT = 16.0, 34.0

Style = Literal["scope", "node", "hook", "folded"]
COLOURS: Mapping[Style, tuple[str, str]] = {
    "scope": ("#f6f8fa", "#d0d7de"),
    "node": ("#ffffff", "#8c959f"),
    "hook": ("#fff8c5", "#d4a72c"),
    "folded": ("#ddf4ff", "#54aeff"),
}


@dataclass(frozen=True)
class Face:
    """What is written in a box."""

    style: Style
    title: str
    lines: tuple[str, ...] = ()
    tooltip: str = ""


def as_svg(graph: ExecutionGraph, describe: Describe = kind_and_params) -> str:
    """The picture: scopes as boxes, what waits below what it waits for."""
    root, faces = picture(graph, describe)
    arrange(root)
    return _document(graph.name, root, faces)


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
        self._depth = _depth(graph.nodes)
        self._box_of: dict[str, Box] = {}
        self._parent: dict[Box, Box] = {}
        all_edges = edges(graph.nodes, graph.joins)
        self._rank = {id: number for number, id in enumerate(all_edges)}
        root = tree(graph.nodes)
        single = root.items[0] if len(root.items) == 1 else None
        root.name = graph.name
        self.root = self._scope_box(single if isinstance(single, Scope) else root)
        self._connect(sources(all_edges, graph.joins))
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
        whole = Box(math.ceil(text_width(scope.name, 12)) + 32.0, rank=rank, items=items)
        self.faces[whole] = Face("scope", scope.name, tooltip=scope.path)
        self._parent |= dict.fromkeys(items, whole)
        return whole

    def _scope_or_folded_box(self, scope: Scope) -> Box:
        if scope.path.count("/") + 1 < self._depth:
            return self._scope_box(scope)
        nodes = list(scope.nodes())
        units = sum(1 if node.one_of else len(node.hosts) for node in nodes)
        text = f"{_number(len(nodes), 'step')}, {_number(units, 'unit')}"
        inside = ", ".join(node.id.removeprefix(f"{scope.path}/") for node in nodes)
        face = Face("folded", scope.name, (text,), f"{scope.path}: {one_line(inside, 400)}")
        return self._leaf_box(face, [node.id for node in nodes])

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
            if not item.items:
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


def _document(name: str, root: Box, faces: Mapping[Box, Face]) -> str:
    width = max(root.width, 420.0) + 2 * MARGIN
    height = root.height + LEGEND_HEIGHT + 2 * MARGIN
    boxes = list(root.everything())
    size = f'width="{_n(width)}" height="{_n(height)}" viewBox="0 0 {_n(width)} {_n(height)}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">',
        f"<title>{_text(name)}</title>",
        f"<style>{_CSS}</style>",
        f"<defs>{_ARROW_HEAD}</defs>",
        '<rect class="page" width="100%" height="100%"/>',
        f'<g transform="translate({_n(MARGIN)} {_n(MARGIN)})">',
        *(line for box in boxes if box.items for line in _drawn_box(box, faces[box])),
        *_arrows(root),
        *(line for box in boxes if not box.items for line in _drawn_box(box, faces[box])),
        "</g>",
        *_legend(height - MARGIN),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


_CSS = """
text { font-family: system-ui, "Segoe UI", "DejaVu Sans", "Noto Sans CJK SC", sans-serif; }
.page { fill: #ffffff; }
.title { font-size: 12px; font-weight: 600; fill: #1f2328; }
.scope { font-size: 12px; font-weight: 600; fill: #57606a; }
.line { font-size: 10px; fill: #57606a; }
.hosts { font-size: 10px; fill: #0969da; }
.arrow { fill: none; stroke: #57606a; stroke-width: 1.3; stroke-linejoin: round; }
.lane { stroke-dasharray: 4 3; }
"""
_ARROW_HEAD = (
    '<marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
    'orient="auto"><path d="M0 0.5 L8 4 L0 7.5 z" fill="#57606a"/></marker>'
)


def _drawn_box(box: Box, face: Face) -> Iterator[str]:
    fill, stroke = COLOURS[face.style]
    yield f"<g><title>{_text(face.tooltip)}</title>"
    yield (
        f'<rect x="{_n(box.x)}" y="{_n(box.y)}" width="{_n(box.width)}" height="{_n(box.height)}" '
        f'rx="6" fill="{fill}" stroke="{stroke}"/>'
    )
    kind = "scope" if face.style == "scope" else "title"
    yield _written(box.x + 10, box.y + 18, kind, face.title, 12.5, box.width - 20)
    for number, line in enumerate(face.lines):
        last = number == len(face.lines) - 1
        y = box.y + 33 + 15 * number
        kind = "hosts" if last and face.style != "folded" else "line"
        yield _written(box.x + 10, y, kind, line, 10.5, box.width - 20)
    yield "</g>"


def _written(x: float, y: float, kind: str, text: str, size: float, room: float) -> str:
    shown = _text(_fitted(one_line(text), size, room))
    return f'<text class="{kind}" x="{_n(x)}" y="{_n(y)}">{shown}</text>'


def _arrows(root: Box) -> Iterator[str]:
    for around in root.everything():
        for flow in around.flows.values():
            lane = "" if flow.barrier else " lane"
            path = _path(flow, around.vertical)
            yield f'<path class="arrow{lane}" d="{path}" marker-end="url(#head)"/>'


def _path(flow: Flow, vertical: bool) -> str:
    """A curve from box to box; around the end of a line and back to the start of the next."""
    stops = [flow.before, *flow.bends, flow.after]
    drawn = ""
    for first, second in pairwise(stops):
        start = _leaving(_end(flow) if first is flow.before else first, vertical)
        end = _entering(_start(flow) if second is flow.after else second, vertical)
        drawn = drawn or f"M{_at(start)}"
        if first.line is second.line or first.line is None or second.line is None:
            drawn += _curve(start, end, vertical)
        else:
            drawn += _detour(first.line, second.line, start, end, vertical)
    return drawn


def _end(flow: Flow) -> Box:
    """Where an arrow begins: at a scope if all that ends it is meant, else at the one node."""
    ends = _leaves(flow.before) - _inner(flow.before, "sources")
    return flow.before if flow.sources >= ends else _single(flow.sources, flow.before)


def _start(flow: Flow) -> Box:
    starts = _leaves(flow.after) - _inner(flow.after, "targets")
    return flow.after if flow.targets >= starts else _single(flow.targets, flow.after)


def _single(boxes: set[Box], otherwise: Box) -> Box:
    return next(iter(boxes)) if len(boxes) == 1 else otherwise


def _leaves(box: Box) -> set[Box]:
    return {inner for inner in box.everything() if not inner.items}


def _inner(box: Box, side: Literal["sources", "targets"]) -> set[Box]:
    flows = (flow for inner in box.everything() for flow in inner.flows.values())
    return {end for flow in flows for end in getattr(flow, side)}


def _leaving(box: Box, vertical: bool) -> Point:
    if vertical:
        return box.x + box.width / 2, box.y + box.height
    return box.x + box.width, box.y + box.height / 2


def _entering(box: Box, vertical: bool) -> Point:
    if vertical:
        return box.x + box.width / 2, box.y
    return box.x, box.y + box.height / 2


def _curve(start: Point, end: Point, vertical: bool) -> str:
    along = 1 if vertical else 0
    middle = (start[along] + end[along]) / 2
    first = (start[0], middle) if vertical else (middle, start[1])
    second = (end[0], middle) if vertical else (middle, end[1])
    return f" C{_at(first)} {_at(second)} {_at(end)}"


def _detour(first: Line, second: Line, start: Point, end: Point, vertical: bool) -> str:
    between = second.low - LINE_GAP / 2
    down, up = first.end + 10, second.start - 10
    if vertical:
        corners: Sequence[Point] = [(start[0], down), (between, down), (between, up), (end[0], up)]
    else:
        corners = [(down, start[1]), (down, between), (up, between), (up, end[1])]
    return "".join(f" L{_at(corner)}" for corner in (*corners, end))


def _legend(y: float) -> Iterator[str]:
    for x, lane, text in (
        (MARGIN, "", "after it on all hosts"),
        (MARGIN + 190, " lane", "after it on the same host"),
    ):
        yield (
            f'<path class="arrow{lane}" d="M{_at((x, y - 4))} L{_at((x + 34, y - 4))}" '
            'marker-end="url(#head)"/>'
        )
        yield f'<text class="line" x="{_n(x + 42)}" y="{_n(y)}">{text}</text>'


def _at(point: Point) -> str:
    return f"{_n(point[0])} {_n(point[1])}"


def _n(value: float) -> str:
    """A number as short as it can be, the same on every machine."""
    return f"{value:.1f}".removesuffix(".0")


_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def _text(text: str) -> str:
    return escape(_NOT_XML.sub("·", text))


def text_width(text: str, size: float) -> float:
    """About how wide a text is; there is no font to ask."""
    return sum(map(_letter, text)) * size / 100


def _letter(letter: str) -> int:
    """In hundredths of the size: whole numbers add up to the same on every Python."""
    if unicodedata.east_asian_width(letter) in "WF":
        return 100
    return 32 if letter in "iljtf.,:;|!'()[]/ " else 58


def _fitted(text: str, size: float, room: float) -> str:
    if text_width(text, size) <= room:
        return text
    shown = len(text)
    while shown and text_width(text[:shown], size) + 0.6 * size > room:
        shown -= 1
    return f"{text[:shown]}…"
