"""A graph as one self-contained SVG picture, without any program to draw it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Literal
from xml.sax.saxutils import escape

from kubexm.plan.graph import ExecutionGraph
from kubexm.plan.layout import LINE_GAP, Box, Flow, Line, Point, arrange
from kubexm.plan.outline import UNDO_NOTE, Describe, kind_and_params, one_line
from kubexm.plan.picture import Face, Style, picture, text_width

MARGIN, LEGEND_HEIGHT = 16.0, 34.0
COLOURS: Mapping[Style, tuple[str, str]] = {
    "scope": ("#f6f8fa", "#d0d7de"),
    "node": ("#ffffff", "#8c959f"),
    "hook": ("#fff8c5", "#d4a72c"),
    "folded": ("#ddf4ff", "#54aeff"),
}


def as_svg(graph: ExecutionGraph, describe: Describe = kind_and_params) -> str:
    """The picture: scopes as boxes, what waits below what it waits for."""
    root, faces = picture(graph, describe)
    arrange(root)
    return _document(graph.name, root, faces)


def _document(name: str, root: Box, faces: Mapping[Box, Face]) -> str:
    boxes = list(root.everything())
    width = max(root.width, 620.0 if any(box.aside for box in boxes) else 420.0) + 2 * MARGIN
    height = root.height + LEGEND_HEIGHT + 2 * MARGIN
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
        *_legend(height - MARGIN, undo=any(box.aside for box in boxes)),
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
.undo { fill: #ffffff; stroke: #cf222e; stroke-dasharray: 6 4; }
"""
_ARROW_HEAD = (
    '<marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
    'orient="auto"><path d="M0 0.5 L8 4 L0 7.5 z" fill="#57606a"/></marker>'
)


def _drawn_box(box: Box, face: Face) -> Iterator[str]:
    yield f"<g><title>{_text(face.tooltip)}</title>"
    yield (
        f'<rect x="{_n(box.x)}" y="{_n(box.y)}" width="{_n(box.width)}" height="{_n(box.height)}" '
        f'rx="6" {_paint(face.style)}/>'
    )
    kind = "scope" if box.items else "title"
    yield _written(box.x + 10, box.y + 18, kind, face.title, 12.5, box.width - 20)
    for number, line in enumerate(face.lines):
        last = number == len(face.lines) - 1
        y = box.y + 33 + 15 * number
        kind = "hosts" if last and face.style in ("node", "hook") else "line"
        yield _written(box.x + 10, y, kind, line, 10.5, box.width - 20)
    yield "</g>"


def _paint(style: Style) -> str:
    if style == "undo":
        return 'class="undo"'
    fill, stroke = COLOURS[style]
    return f'fill="{fill}" stroke="{stroke}"'


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
    """The nodes in a box that something may wait for."""
    inside = (item for item in box.items if not item.aside)
    return {leaf for item in inside for leaf in _leaves(item)} if box.items else {box}


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


def _legend(y: float, *, undo: bool) -> Iterator[str]:
    for x, lane, text in (
        (MARGIN, "", "after it on all hosts"),
        (MARGIN + 190, " lane", "after it on the same host"),
    ):
        yield (
            f'<path class="arrow{lane}" d="M{_at((x, y - 4))} L{_at((x + 34, y - 4))}" '
            'marker-end="url(#head)"/>'
        )
        yield _explained(x, y, text)
    if undo:
        x = MARGIN + 400
        corner = f'x="{_n(x)}" y="{_n(y - 11)}" width="34" height="14" rx="4"'
        yield f'<rect class="undo" {corner}/>'
        yield _explained(x, y, UNDO_NOTE)


def _explained(x: float, y: float, text: str) -> str:
    return f'<text class="line" x="{_n(x + 42)}" y="{_n(y)}">{text}</text>'


def _at(point: Point) -> str:
    return f"{_n(point[0])} {_n(point[1])}"


def _n(value: float) -> str:
    """A number as short as it can be, the same on every machine."""
    return f"{value:.1f}".removesuffix(".0")


_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def _text(text: str) -> str:
    return escape(_NOT_XML.sub("·", text))


def _fitted(text: str, size: float, room: float) -> str:
    if text_width(text, size) <= room:
        return text
    shown = len(text)
    while shown and text_width(text[:shown], size) + 0.6 * size > room:
        shown -= 1
    return f"{text[:shown]}…"
