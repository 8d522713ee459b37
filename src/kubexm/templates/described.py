"""What a template may use, in words: the fields of its context, and of what these hold."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import inspect

from kubexm.document.docstrings import field_texts

_WORDS: dict[type, str] = {
    inspect.StrType: "text",
    inspect.IntType: "whole number",
    inspect.FloatType: "number",
    inspect.BoolType: "true or false",
    inspect.StructType: "mapping",
}


class Field(msgspec.Struct, frozen=True):
    """A name that a template may use."""

    name: str
    """With dots, and `[]` for each of a list or mapping."""
    value: str
    """What it holds."""
    about: str
    """What it is."""


def fields(struct: type[msgspec.Struct], outer: str = "") -> Iterator[Field]:
    """The fields of a context in their order, each followed by those that it holds."""
    texts = field_texts(struct)
    info = inspect.type_info(struct)
    assert isinstance(info, inspect.StructType)
    for field in info.fields:
        name = f"{outer}{field.name}"
        yield Field(name, _words(field.type), texts.get(field.name, ""))
        inner, many = _held(field.type)
        if inner is not None:
            yield from fields(inner, f"{name}{'[]' * many}.")


def _words(kind: Any) -> str:
    match kind:
        case inspect.VarTupleType() | inspect.ListType():
            return f"list of {_words(kind.item_type)}"
        case inspect.DictType():
            return f"mapping of names to {_words(kind.value_type)}"
        case inspect.LiteralType():
            return " or ".join(map(str, kind.values))
        case inspect.UnionType():
            return " or ".join(_words(one) for one in _said(kind))
    return _WORDS.get(type(kind), "any value")


def _held(kind: Any) -> tuple[type[msgspec.Struct] | None, int]:
    """The struct that a value holds, and in how many lists or mappings."""
    match kind:
        case inspect.StructType():
            return kind.cls, 0
        case inspect.VarTupleType() | inspect.ListType():
            inner, many = _held(kind.item_type)
            return inner, many + 1
        case inspect.DictType():
            inner, many = _held(kind.value_type)
            return inner, many + 1
        case inspect.UnionType():
            found = [_held(one) for one in _said(kind)]
            return next((one for one in found if one[0] is not None), (None, 0))
    return None, 0


def _said(kind: inspect.UnionType) -> list[Any]:
    return [one for one in kind.types if not isinstance(one, inspect.NoneType)]
