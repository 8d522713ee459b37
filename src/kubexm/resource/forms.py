"""Whether what a file says has the form of a catalog, or of a part of one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from msgspec import inspect

from kubexm.common.nearest import did_you_mean, nearest
from kubexm.resource.entries import Entries
from kubexm.resource.reading import Data, KeyPath, Mistake, written

_ADD = "add it there, or in another catalog that is given"


def mistakes(data: Data, *, partial: bool) -> list[Mistake]:
    """Where the data is no catalog; something may be missing in a part of one."""
    return list(_of_struct(inspect.type_info(Entries), data, (), partial))


def _of(kind: inspect.Type, value: Any, path: KeyPath, partial: bool) -> Iterator[Mistake]:
    if isinstance(kind, inspect.Metadata):
        yield from _of_text(kind, value, path)
    elif isinstance(kind, inspect.StructType):
        yield from _of_struct(kind, value, path, partial)
    elif isinstance(kind, inspect.DictType):
        yield from _of_table(kind, value, path, partial)
    elif isinstance(kind, inspect.VarTupleType):
        yield from _of_list(kind, value, path, partial)
    elif isinstance(kind, inspect.LiteralType):
        yield from _of_words(kind, value, path)
    else:
        yield from _of_text(kind, value, path)


def _of_struct(kind: Any, value: Any, path: KeyPath, partial: bool) -> Iterator[Mistake]:
    if not isinstance(value, dict):
        yield _no_table(value, path)
        return
    fields = {field.encode_name: field for field in kind.fields}
    for key, inner in value.items():
        if key in fields:
            yield from _of(fields[key].type, inner, (*path, key), partial)
        else:
            yield Mistake((*path, key), "unknown key", did_you_mean(key, fields))
    for key, field in fields.items():
        if field.required and key not in value and not partial:
            yield Mistake(path, f"`{key}` is missing", _ADD)


def _of_table(
    kind: inspect.DictType, value: Any, path: KeyPath, partial: bool
) -> Iterator[Mistake]:
    if not isinstance(value, dict):
        yield _no_table(value, path)
        return
    for key, inner in value.items():
        yield from _of(kind.key_type, key, (*path, key), partial)
        yield from _of(kind.value_type, inner, (*path, key), partial)


def _of_list(
    kind: inspect.VarTupleType, value: Any, path: KeyPath, partial: bool
) -> Iterator[Mistake]:
    if not isinstance(value, list):
        yield Mistake(path, f"found {_shown(value)}, want a list", "write it as `[…]`")
        return
    if len(value) < (kind.min_length or 0):
        yield Mistake(path, "found an empty list", "fill it or leave it out")
    for index, inner in enumerate(value):
        yield from _of(kind.item_type, inner, (*path, index), partial)


def _of_text(kind: inspect.Type, value: Any, path: KeyPath) -> Iterator[Mistake]:
    wanted, pattern = "text", ""
    if isinstance(kind, inspect.Metadata):
        wanted = str((kind.extra_json_schema or {}).get("description", wanted))
        kind = kind.type
    if isinstance(kind, inspect.StrType):
        pattern = kind.pattern or ""
    if not isinstance(value, str) or re.search(pattern, value) is None:
        yield Mistake(path, f"found {_shown(value)}, want {wanted}", f"write {wanted}")


def _of_words(kind: inspect.LiteralType, value: Any, path: KeyPath) -> Iterator[Mistake]:
    words = [str(word) for word in kind.values]
    if value not in words:
        wanted = " or ".join(f"`{word}`" for word in words)
        match = nearest(value, words) if isinstance(value, str) else None
        hint = f"did you mean `{match}`?" if match else f"write {wanted}"
        yield Mistake(path, f"found {_shown(value)}, want {wanted}", hint)


def _no_table(value: Any, path: KeyPath) -> Mistake:
    name = written(path)
    return Mistake(path, f"found {_shown(value)}, want a table", f"write `[{name}]` and keys below")


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, str):
        return f"`{value}`" if len(value) <= 80 else f"a text of {len(value)} characters"
    if isinstance(value, int | float):
        return f"the number {value}"
    if isinstance(value, list):
        return "a list"
    return "a table" if isinstance(value, dict) else "a date"
