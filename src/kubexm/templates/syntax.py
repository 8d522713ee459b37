"""A template that can't be read: in which line, and what to close."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from jinja2 import TemplateSyntaxError

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
