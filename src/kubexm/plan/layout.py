"""Where the boxes of a picture go: layers by dependency, inside scopes inside scopes.

Every scope is laid out by itself: what is in it stands in layers, each after all it waits for;
a layer is ordered so that lines cross little; a long sequence of layers is broken into lines,
like text. An arrow between two scopes is drawn once, between their boxes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise

import msgspec

LAYER_GAP, ITEM_GAP, LINE_GAP = 30.0, 16.0, 52.0
PADDING, HEADING = 14.0, 24.0
LONGEST_LINE = 1400.0
"""A sequence is broken into lines only if it is longer than this."""
LONGEST_ROW = 8
"""Of nodes side by side; more of them stand in rows if they are too wide for one."""
BEST_SHAPE = 1.6
"""Width by height of a picture that is easy to look at."""

Point = tuple[float, float]


class Flow(msgspec.Struct, eq=False):
    """All edges from one box to another beside it, drawn as one arrow."""

    before: Box
    after: Box
    barrier: bool = False
    sources: set[Box] = msgspec.field(default_factory=set)
    targets: set[Box] = msgspec.field(default_factory=set)
    bends: list[Box] = msgspec.field(default_factory=list)


class Box(msgspec.Struct, eq=False):
    """A rectangle; `x` and `y` of its upper left corner are those of the page in the end."""

    width: float = 0.0
    height: float = 0.0
    rank: int = 0
    """Where it stands in the order of the plan."""
    aside: bool = False
    """Whether it takes no part in the order of what stands around it: it is put at the end."""
    items: list[Box] = msgspec.field(default_factory=list)
    flows: dict[tuple[Box, Box], Flow] = msgspec.field(default_factory=dict)
    x: float = 0.0
    y: float = 0.0
    vertical: bool = True
    """Whether what is in it reads from top to bottom, or else from left to right."""
    bends: list[Box] = msgspec.field(default_factory=list)
    line: Line | None = None

    def everything(self) -> Iterator[Box]:
        """This box and all in it, at any depth, outer ones first."""
        yield self
        for item in self.items:
            yield from item.everything()


class Line(msgspec.Struct, eq=False):
    """Some layers in a row; `start` and `end` along them, `low` across, all on the page at last."""

    start: float
    end: float
    low: float
    layers: list[list[Box]]


def arrange(box: Box) -> None:
    """Give everything in a box its place on the page, and the box its size."""
    _arrange(box)
    _move(box, 0.0, 0.0)


def _arrange(box: Box) -> None:
    for item in box.items:
        if item.items:
            _arrange(item)
    if not box.items:
        return
    layers = _ordered(box, _layers(box))
    # Steps read from top to bottom; scopes may also stand from left to right.
    scopes = sum(bool(item.items) for item in box.items)
    ways = (True, False) if scopes > len(box.items) - scopes else (True,)
    best = min((_Plan.best(layers, way) for way in ways), key=lambda plan: plan.strain)
    box.vertical = best.vertical
    width, height = best.place()
    box.width = max(width + 2 * PADDING, box.width)
    box.height = height + 2 * PADDING + HEADING


def _move(box: Box, x: float, y: float) -> None:
    box.x, box.y = box.x + x, box.y + y
    inner_x, inner_y = box.x + PADDING, box.y + PADDING + HEADING
    lines = []
    for item in (*box.items, *box.bends):
        _move(item, inner_x, inner_y)
        if item.line is not None and item.line not in lines:
            lines.append(item.line)
    along, across = (inner_y, inner_x) if box.vertical else (inner_x, inner_y)
    for line in lines:
        line.start, line.end = line.start + along, line.end + along
        line.low += across


def _layers(box: Box) -> list[list[Box]]:
    """The items so that each stands after all it waits for, with a bend wherever a flow passes."""
    # Two scopes may wait for each other's nodes; the order of the plan decides which comes first.
    flows = [flow for flow in box.flows.values() if flow.before.rank < flow.after.rank]
    waits: dict[Box, list[Box]] = {item: [] for item in box.items}
    for flow in flows:
        waits[flow.after].append(flow.before)
    level: dict[Box, int] = {}
    for item in sorted(box.items, key=lambda item: item.rank):
        level[item] = max((level[before] + 1 for before in waits[item]), default=0)
    behind = 1 + max((level[item] for item in box.items if not item.aside), default=-1)
    level |= {item: behind for item in box.items if item.aside}
    layers: list[list[Box]] = [[] for _ in range(max(level.values()) + 1)]
    for item in box.items:
        layers[level[item]].append(item)
    for flow in flows:
        for number in range(level[flow.before] + 1, level[flow.after]):
            bend = Box(width=8.0, height=8.0)
            flow.bends.append(bend)
            box.bends.append(bend)
            layers[number].append(bend)
    return layers


def _ordered(box: Box, layers: list[list[Box]]) -> list[list[Box]]:
    """Each layer in the order of what it is linked with: few lines cross."""
    links: dict[Box, list[Box]] = {}
    for flow in box.flows.values():
        path = [flow.before, *flow.bends, flow.after]
        for first, second in pairwise(path):
            links.setdefault(first, []).append(second)
            links.setdefault(second, []).append(first)
    place: dict[Box, float] = {}
    for layer in layers:
        _number(layer, place)
    for sweep in range(4):
        for layer in layers if sweep % 2 == 0 else reversed(layers):
            inside = set(layer)
            layer.sort(key=lambda item: _middle(item, links, place, inside))
            _number(layer, place)
    return layers


def _number(layer: Sequence[Box], place: dict[Box, float]) -> None:
    for number, item in enumerate(layer):
        place[item] = (number + 0.5) / len(layer)


def _middle(
    item: Box, links: dict[Box, list[Box]], place: dict[Box, float], layer: set[Box]
) -> float:
    others = [place[other] for other in links.get(item, ()) if other not in layer]
    return sum(others) / len(others) if others else place[item]


class _Size(msgspec.Struct, frozen=True):
    along: float
    across: float


class _Plan:
    """One way to set layers: from top to bottom or from left to right, in so many lines."""

    def __init__(self, lines: list[list[list[Box]]], vertical: bool) -> None:
        self.vertical = vertical
        self._lines = lines
        sizes = [self._line_size(line) for line in lines]
        along = max(size.along for size in sizes)
        across = sum(size.across for size in sizes) + LINE_GAP * (len(lines) - 1)
        width, height = (across, along) if vertical else (along, across)
        shape = abs(math.log((width + 1) / (height + 1) / BEST_SHAPE))
        self.strain = shape + 0.2 * (len(lines) - 1)

    @classmethod
    def best(cls, layers: list[list[Box]], vertical: bool) -> _Plan:
        """The most pleasant of one to many lines."""
        single = cls([layers], vertical)
        length = single._line_size(layers).along
        if length <= LONGEST_LINE:
            return single
        most = min(len(layers), math.ceil(length / LONGEST_LINE) + 1, 24)
        counts = range(2, most + 1)
        broken = [cls(single._broken(layers, length / count), vertical) for count in counts]
        return min([single, *broken], key=lambda plan: plan.strain)

    def place(self) -> tuple[float, float]:
        """Set every item relative to the inside of the scope; the size that it takes."""
        low = longest = 0.0
        for layers in self._lines:
            size = self._line_size(layers)
            line = Line(0.0, size.along, low, layers)
            self._place_line(line, size)
            longest = max(longest, size.along)
            low += size.across + LINE_GAP
        across = low - LINE_GAP
        return (across, longest) if self.vertical else (longest, across)

    def _place_line(self, line: Line, size: _Size) -> None:
        along = 0.0
        for layer in line.layers:
            for row in self._rows(layer):
                taken = self._row_size(row)
                across = line.low + (size.across - taken.across) / 2
                for item in row:
                    mine = self._size(item)
                    middle = along + (taken.along - mine.along) / 2
                    item.x, item.y = (across, middle) if self.vertical else (middle, across)
                    item.line = line
                    across += mine.across + ITEM_GAP
                along += taken.along + ITEM_GAP
            along += LAYER_GAP - ITEM_GAP

    def _rows(self, layer: list[Box]) -> list[list[Box]]:
        """A layer in one row, or in several if it is many nodes and very wide."""
        sizes = [self._size(item) for item in layer]
        if len(layer) <= LONGEST_ROW or any(item.items for item in layer):
            return [layer]
        area = sum((size.along + ITEM_GAP) * (size.across + ITEM_GAP) for size in sizes)
        room = max(LONGEST_LINE, math.sqrt(area * BEST_SHAPE))
        rows: list[list[Box]] = [[]]
        across = 0.0
        for item, size in zip(layer, sizes, strict=True):
            if across + size.across > room:
                rows.append([])
                across = 0.0
            rows[-1].append(item)
            across += size.across + ITEM_GAP
        return rows

    def _broken(self, layers: list[list[Box]], wanted: float) -> list[list[list[Box]]]:
        lines: list[list[list[Box]]] = [[]]
        length = 0.0
        for layer in layers:
            step = self._layer_size(layer).along + LAYER_GAP
            if lines[-1] and length + step / 2 > wanted:
                lines.append([])
                length = 0.0
            lines[-1].append(layer)
            length += step
        return lines

    def _line_size(self, layers: list[list[Box]]) -> _Size:
        sizes = [self._layer_size(layer) for layer in layers]
        along = sum(size.along for size in sizes) + LAYER_GAP * (len(sizes) - 1)
        return _Size(along, max(size.across for size in sizes))

    def _layer_size(self, layer: list[Box]) -> _Size:
        rows = [self._row_size(row) for row in self._rows(layer)]
        along = sum(size.along for size in rows) + ITEM_GAP * (len(rows) - 1)
        return _Size(along, max(size.across for size in rows))

    def _row_size(self, row: list[Box]) -> _Size:
        sizes = [self._size(item) for item in row]
        across = sum(size.across for size in sizes) + ITEM_GAP * (len(sizes) - 1)
        return _Size(max(size.along for size in sizes), across)

    def _size(self, item: Box) -> _Size:
        if self.vertical:
            return _Size(item.height, item.width)
        return _Size(item.width, item.height)
