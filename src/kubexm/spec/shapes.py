"""Plain data against a type: every mismatch with its path, not the first one alone."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import inspect as types

from kubexm.common.nearest import did_you_mean, nearest
from kubexm.document.findings import Finding, plain_number, shown
from kubexm.document.source import DataPath
from kubexm.spec import references

_Lists = types.ListType | types.VarTupleType | types.SetType | types.FrozenSetType | types.TupleType
_Records = types.StructType | types.DataclassType
_LEAVES: dict[type[types.Type], tuple[Callable[[Any], bool], str]] = {
    types.StrType: (lambda value: isinstance(value, str), "text"),
    types.LiteralType: (lambda value: isinstance(value, str), "a word"),
    types.BoolType: (lambda value: isinstance(value, bool), "`true` or `false`"),
    types.IntType: (lambda value: type(value) is int, "a whole number"),
    types.FloatType: (lambda value: type(value) in (int, float), "a number"),
    types.NoneType: (lambda value: value is None, "nothing"),
}

OPEN = object()
"""Stands for a value that is not known yet and may be of any shape."""
_REMEDIES = (
    (types.StrType, "put it in quotes"),
    (types.BoolType, "write `true` or `false`, without quotes"),
    (types.IntType, "write a number, without quotes"),
    (types.FloatType, "write a number, without quotes"),
    (types.LiteralType, "write one of these words"),
    (_Lists, "write `[a, b]`, or one `- entry` per line"),
)


@functools.lru_cache(maxsize=1024)
def shape(wanted: Any) -> types.Type:
    """What the data of a type looks like."""
    return types.type_info(wanted)


def alternatives(kind: types.Type) -> tuple[types.Type, ...]:
    """The shapes that a value may have."""
    return kind.types if isinstance(kind, types.UnionType) else (kind,)


def mismatches(value: Any, kind: types.Type, path: DataPath = ()) -> Iterator[Finding]:
    """Everything in the value that is not of this shape."""
    if value is OPEN:
        return
    fitting = [choice for choice in alternatives(kind) if _may_be(value, choice)]
    if not fitting:
        yield _unlike(value, kind, path)
        return
    found = [list(_inside(value, choice, path)) for choice in fitting]
    yield from min(found, key=len)


def as_text(written: Any, value: Any, kind: types.Type) -> Any:
    """The value, with the numbers that references came to as text where only text is taken."""
    if isinstance(written, str):
        return references.written(value) if _is_missing_text(value, kind) else value
    inner = _parts(kind)
    if isinstance(written, Mapping) and isinstance(value, Mapping):
        return {key: as_text(written[key], part, inner(key)) for key, part in value.items()}
    if isinstance(written, list | tuple) and isinstance(value, list | tuple):
        pairs = enumerate(zip(written, value, strict=True))
        return [as_text(old, new, inner(number)) for number, (old, new) in pairs]
    return value


def _is_missing_text(value: Any, kind: types.Type) -> bool:
    if not isinstance(value, bool | int | float):
        return False
    is_text = any(isinstance(choice, types.StrType) for choice in alternatives(kind))
    return is_text and any(mismatches(value, kind))


def _parts(kind: types.Type) -> Callable[[str | int], types.Type]:
    """The shape of what lies under a key or number of a value of this shape."""
    for choice in alternatives(kind):
        if isinstance(choice, types.DictType):
            return lambda key: choice.value_type
        if isinstance(choice, types.ListType | types.VarTupleType):
            return lambda number: choice.item_type
    return lambda key: types.AnyType()


def _may_be(value: Any, kind: types.Type) -> bool:
    """Whether a value is of this shape at first sight."""
    if leaf := _LEAVES.get(type(kind)):
        return leaf[0](value)
    if isinstance(kind, _Lists):
        return isinstance(value, list)
    if isinstance(kind, _Records | types.DictType):
        return isinstance(value, Mapping) and _has_tag(value, kind)
    return True


def _has_tag(value: Mapping[str, Any], kind: types.Type) -> bool:
    if not isinstance(kind, types.StructType) or kind.tag_field is None:
        return True
    return value.get(kind.tag_field) == kind.tag


def _inside(value: Any, kind: types.Type, path: DataPath) -> Iterator[Finding]:
    if isinstance(kind, types.LiteralType):
        if value not in kind.values:
            yield _no_such_word(value, [str(word) for word in kind.values], path)
    elif isinstance(kind, types.DictType):
        for key, part in value.items():
            yield from mismatches(part, kind.value_type, (*path, key))
    elif isinstance(kind, _Records):
        yield from _record(value, kind, path)
    elif isinstance(kind, types.IntType | types.FloatType):
        yield from _bounds(value, kind, path)
    elif isinstance(kind, _Lists):
        yield from _list(value, kind, path)


def _record(value: Mapping[str, Any], kind: _Records, path: DataPath) -> Iterator[Finding]:
    fields = {field.encode_name: field for field in kind.fields}
    tag = kind.tag_field if isinstance(kind, types.StructType) else None
    found: list[Finding] = []
    for key, part in value.items():
        if key in fields:
            found.extend(mismatches(part, fields[key].type, (*path, key)))
        elif key != tag:
            hint = did_you_mean(key, fields)
            found.append(Finding((*path, key), f"unknown key `{key}`", hint, at_key=True))
    found.extend(
        Finding(path, f"`{key}` is missing", f"add `{key}: …`")
        for key, field in fields.items()
        if field.required and key not in value
    )
    if not found and OPEN not in value.values():
        found.extend(_as_a_whole(value, kind.cls, path))
    yield from found


def _as_a_whole(value: Any, cls: type, path: DataPath) -> Iterator[Finding]:
    """What the type itself says of parts that fit one by one."""
    try:
        msgspec.convert(value, cls)
    except msgspec.ValidationError as error:
        yield Finding(path, str(error), "change these parts together, as the message says")


def _list(value: Sequence[Any], kind: _Lists, path: DataPath) -> Iterator[Finding]:
    if not isinstance(kind, types.TupleType):
        inners: Sequence[types.Type] = [kind.item_type] * len(value)
    elif len(value) != len(inners := kind.item_types):
        message = f"found {len(value)} entries, want {len(inners)}"
        yield Finding(path, message, f"write {len(inners)} entries")
    for number, (part, inner) in enumerate(zip(value, inners, strict=False)):
        yield from mismatches(part, inner, (*path, number))


def _bounds(
    value: float, kind: types.IntType | types.FloatType, path: DataPath
) -> Iterator[Finding]:
    found = f"found {shown(value)}, want"
    if kind.ge is not None and value < kind.ge:
        least = plain_number(kind.ge)
        yield Finding(path, f"{found} at least {least}", f"write {least} or more")
    if kind.le is not None and value > kind.le:
        most = plain_number(kind.le)
        yield Finding(path, f"{found} at most {most}", f"write {most} or less")


def _no_such_word(value: str, known: Sequence[str], path: DataPath) -> Finding:
    wanted = " or ".join(f"`{word}`" for word in known)
    match = nearest(value, known)
    hint = f"did you mean `{match}`?" if match else f"write {wanted}"
    return Finding(path, f"found {shown(value)}, want {wanted}", hint)


def _unlike(value: Any, kind: types.Type, path: DataPath) -> Finding:
    choices = alternatives(kind)
    tags = [choice for choice in choices if isinstance(choice, types.StructType) and choice.tag]
    if tags and isinstance(value, Mapping):
        return _no_such_tag(value, tags, path)
    hint = next(
        (hint for shape, hint in _REMEDIES for choice in choices if isinstance(choice, shape)),
        "write `key: value` pairs",
    )
    return Finding(path, f"found {shown(value)}, want {described(kind)}", hint)


def _no_such_tag(
    value: Mapping[str, Any], choices: Sequence[types.StructType], path: DataPath
) -> Finding:
    field = str(choices[0].tag_field)
    known = [str(choice.tag) for choice in choices]
    if field not in value:
        return Finding(path, f"`{field}` is missing", did_you_mean("", known))
    return _no_such_word(str(value[field]), known, (*path, field))


def described(kind: types.Type) -> str:
    """A shape in words: `text`, `a list of text`, `a mapping`."""
    words = [
        _word(choice) for choice in alternatives(kind) if not isinstance(choice, types.NoneType)
    ]
    return " or ".join(dict.fromkeys(words)) or "nothing"


def _word(kind: types.Type) -> str:
    if leaf := _LEAVES.get(type(kind)):
        if isinstance(kind, types.LiteralType):
            return " or ".join(f"`{word}`" for word in kind.values)
        return leaf[1]
    if isinstance(kind, _Lists):
        return f"a list{_of(' of ', getattr(kind, 'item_type', None))}"
    if isinstance(kind, types.DictType):
        return f"a mapping{_of(' to ', kind.value_type)}"
    return "a mapping" if isinstance(kind, _Records) else "any value"


def _of(word: str, inner: types.Type | None) -> str:
    if inner is None or isinstance(inner, types.AnyType):
        return ""
    return f"{word}{described(inner)}"
