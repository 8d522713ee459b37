"""Forms in words, for reference pages and for whoever asks about a key."""

from __future__ import annotations

import ast
import inspect
import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, get_args

import msgspec

from kubexm.document.docstrings import class_text, field_texts
from kubexm.document.forms import Form

Row = tuple[str, str, str, str]
WORDS: Mapping[str, str] = {
    "Text": "text",
    "str": "text",
    "int": "whole number",
    "float": "number",
    "bool": "`true` or `false`",
    "Name": "name",
    "HostName": "name, or a [range](#ranges) of names",
    "Address": "text",
    "OneAddress": "text",
    "UserName": "text",
    "Port": "whole number from 1 to 65535",
    "FilePath": "path",
    "PathOrFalse": "path, or `false`",
    "SecretText": "[secret](#secrets), by reference",
    "Count": "whole number from 1",
    "Amount": "whole number",
    "Duration": "duration",
    "PositiveDuration": "duration",
    "Share": "number or percentage",
    "Any": "any value",
}
"""What the annotations of forms are called."""


def section(form: type[Form], words: Mapping[str, str], more: str = "") -> str:
    """The part of a page on one form; `more` follows what it says of itself."""
    lines = [f"## {form.__name__}", "", class_text(form) + more, ""]
    return "\n".join([*lines, *table(rows(form, words)), ""])


def rows(form: type[Form], words: Mapping[str, str]) -> Iterator[Row]:
    """The keys of a form: name, value, default, text."""
    texts = field_texts(form)
    for name, field in form.fields().items():
        if "\0" not in field.alias:
            default = "**required**" if field.required else default_text(field.said(field.usual))
            yield f"`{field.alias}`", value_text(form, name, words), default, texts.get(name, "")


def table(rows: Iterable[Row]) -> Iterator[str]:
    """Rows as the lines of a table."""
    yield "| key | value | default | |"
    yield "|---|---|---|---|"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def default_text(value: Any) -> str:
    """A default as a file would say it; nothing for what is nothing, or a form of its own."""
    if value in (None, "", (), {}) or isinstance(value, Form | msgspec.Struct):
        return ""
    if isinstance(value, float) and value.is_integer():
        return f"`{value:.0f}`"
    if not isinstance(value, str):
        value = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return f"`{value}`"


def value_text(form: type[Form], name: str, words: Mapping[str, str]) -> str:
    """What may be written for a field."""
    for base in form.__mro__:
        written = inspect.get_annotations(base).get(name)
        if written is not None:
            return _Words(base, words).of(ast.parse(written, mode="eval").body)
    raise KeyError(name)


class _Words:
    """Annotations of a class in words."""

    def __init__(self, owner: type, words: Mapping[str, str]) -> None:
        self._names = vars(sys.modules[owner.__module__])
        self._words = words

    def of(self, node: ast.expr) -> str:
        match node:
            case ast.Name(id=name):
                return self._words[name] if name in self._words else self._named(name)
            case ast.BinOp(left=left, right=ast.Constant(value=None)):
                return self.of(left)
            case ast.Subscript(value=ast.Name(id="Annotated"), slice=ast.Tuple(elts=[inner, *_])):
                return self.of(inner)
            case ast.Subscript(value=ast.Name(id="tuple"), slice=ast.Tuple(elts=[inner, _])):
                return f"list of {self.of(inner)}"
            case ast.Subscript(value=ast.Name(id="dict"), slice=ast.Tuple(elts=[_, inner])):
                return f"mapping of names to {self.of(inner)}"
            case ast.Subscript(value=ast.Name(id="Literal"), slice=inner):
                listed = inner.elts if isinstance(inner, ast.Tuple) else [inner]
                return " or ".join(f"`{ast.literal_eval(word)}`" for word in listed)
        raise TypeError(f"no words for {ast.unparse(node)}")

    def _named(self, name: str) -> str:
        found = self._names[name]
        if isinstance(found, type):
            return f"[{name}](#{name.lower()})"
        return " or ".join(f"`{word}`" for word in get_args(found))
