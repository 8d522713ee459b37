"""A template that can't be read: in which line, and what to close."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from jinja2 import TemplateSyntaxError, nodes

_CLOSERS = {"{{": "}}", "{%": "%}", "{#": "#}"}
_BRACES = r"\{\{|\{%|\{#|\}\}|%\}|#\}"
_BLOCK = r"needs to be closed is '(\w+)'|end of (raw) directive"
_LOOK = "correct this line; braces that are meant as text stand in `{% raw %}…{% endraw %}`"


class Fault(msgspec.Struct, frozen=True):
    """What is wrong with a template, whatever it is filled in with."""

    line: int
    message: str
    hint: str


def fault_of(source: str, error: TemplateSyntaxError) -> Fault:
    """What the parser found, and what to do about it."""
    said = (error.message or "unreadable").split(". ")[0].rstrip(".")
    message = said[:1].lower() + said[1:]
    if block := re.search(_BLOCK, error.message or ""):
        word = block[1] or block[2]
        return Fault(error.lineno, message, f"close `{word}` with `{{% end{word} %}}`")
    if (opened := _unclosed(source)) is not None:
        braces, line = opened
        return Fault(line, message, f"close `{braces}` with `{_CLOSERS[braces]}`")
    return Fault(error.lineno, message, _LOOK)


def first_lines(tree: nodes.Template, wanted: Iterable[str]) -> dict[str, int]:
    """The line where each of these names is first used, other than for what a loop sets."""
    from jinja2 import nodes  # noqa: PLC0415

    free = [(name.name, name.lineno) for name in _free(tree, frozenset())]
    anywhere = [(name.name, name.lineno) for name in tree.find_all(nodes.Name)]
    # A name that is set in one place and free in another is not told apart everywhere.
    lines = dict(sorted(anywhere, reverse=True)) | dict(sorted(free, reverse=True))
    return {name: lines[name] for name in sorted(wanted, key=lambda name: lines[name])}


def _free(node: nodes.Node, bound: frozenset[str]) -> Iterator[nodes.Name]:
    """The names in a part of a template that no loop around them sets."""
    from jinja2 import nodes  # noqa: PLC0415

    if isinstance(node, nodes.Name) and node.ctx == "load" and node.name not in bound:
        yield node
    inner = bound
    if isinstance(node, nodes.For):
        yield from _free(node.iter, bound)
        inner = bound | {name.name for name in node.find_all(nodes.Name) if name.ctx == "store"}
    for child in node.iter_child_nodes(exclude=("iter",)):
        yield from _free(child, inner)


def _unclosed(source: str) -> tuple[str, int] | None:
    """The first braces that open something and are not closed before the next ones open."""
    opened: re.Match[str] | None = None
    for found in re.finditer(_BRACES, source):
        if opened is None:
            opened = found if found[0] in _CLOSERS else None
        elif found[0] == _CLOSERS[opened[0]]:
            opened = None
        elif found[0] in _CLOSERS and opened[0] != "{#":
            break
    return None if opened is None else (opened[0], source.count("\n", 0, opened.start()) + 1)
