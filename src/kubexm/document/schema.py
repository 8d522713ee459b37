"""Forms as JSON Schema, for editors that complete and check while one types."""

from __future__ import annotations

from collections.abc import Iterator
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec

from kubexm.document.docstrings import class_text
from kubexm.document.fields import InSchema
from kubexm.document.forms import Filled, Form, Range

Schema = dict[str, Any]

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_PLAIN: dict[Any, Schema] = {
    Any: {},
    NoneType: {"type": "null"},
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
}


def json_schema(form: type[Form]) -> Schema:
    """The schema of a whole file; its parts are under `$defs`, by the names of their forms."""
    parts = {part.__name__: _form(part) for part in within(form)}
    return {**_form(form), "$schema": _DIALECT, "$defs": parts}


def within(form: type[Form]) -> list[type[Form]]:
    """Every form that is a part of this one, however deep."""
    found: dict[type[Form], None] = {form: None}
    waiting = [form]
    for each in waiting:
        parts = [part for field in each.fields().values() for part in _forms(field.annotation)]
        waiting.extend(part for part in dict.fromkeys(parts) if part not in found)
        found |= dict.fromkeys(parts)
    return [*found][1:]


def value_schema(annotation: Any) -> Schema:
    """What may be written where a form has this annotation."""
    if isinstance(annotation, type) and issubclass(annotation, Form):
        return {"$ref": f"#/$defs/{annotation.__name__}"}
    if annotation in _PLAIN:
        return dict(_PLAIN[annotation])
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _with_bounds(value_schema(arguments[0]), arguments[1:])
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin in (Union, UnionType):
        return {"anyOf": [value_schema(argument) for argument in arguments]}
    return _holder(origin, arguments)


def _forms(annotation: Any) -> Iterator[type[Form]]:
    if isinstance(annotation, type) and issubclass(annotation, Form):
        yield annotation
    for argument in get_args(annotation):
        yield from _forms(argument)


def _form(form: type[Form]) -> Schema:
    fields = [field for field in form.fields().values() if "\0" not in field.alias]
    return {
        "type": "object",
        "description": class_text(form),
        "properties": {field.alias: value_schema(field.annotation) for field in fields},
        "required": [field.alias for field in fields if field.required],
        "additionalProperties": False,
    }


def _holder(origin: Any, arguments: tuple[Any, ...]) -> Schema:
    if origin is dict:
        return {"type": "object", "additionalProperties": value_schema(arguments[1])}
    return {"type": "array", "items": value_schema(arguments[0])}


def _with_bounds(schema: Schema, extras: tuple[Any, ...]) -> Schema:
    for extra in extras:
        if isinstance(extra, InSchema):
            schema = msgspec.json.decode(extra.schema)
        elif isinstance(extra, Range):
            bounds = {"minimum": extra.least, "maximum": extra.most}
            schema |= {name: bound for name, bound in bounds.items() if bound is not None}
        elif isinstance(extra, Filled):
            schema["minItems" if schema.get("type") == "array" else "minLength"] = 1
    return schema
