"""The pipeline file as JSON Schema, for editors that complete and check while one types."""

from __future__ import annotations

from collections.abc import Iterator
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec
from msgspec import inspect as types

from kubexm.sim.settings import WorldSettings
from kubexm.spec import conditions, shapes
from kubexm.spec.docstrings import class_text
from kubexm.spec.fields import InSchema
from kubexm.spec.files import TARGETS
from kubexm.spec.forms import Filled, Form, Range
from kubexm.spec.local import SOURCE
from kubexm.spec.model import PipelineSpec
from kubexm.spec.parameters import written_parameters
from kubexm.step import registry

Schema = dict[str, Any]

_REFERENCE: Schema = {"type": "string", "pattern": r"^\$\{[^{}]*\}$"}
_LEAVES: dict[type[types.Type], Schema] = {
    types.StrType: {"type": "string"},
    types.BoolType: {"type": "boolean"},
    types.IntType: {"type": "integer"},
    types.FloatType: {"type": "number"},
    types.NoneType: {"type": "null"},
}
_PLAIN: dict[Any, Schema] = {
    Any: {},
    NoneType: {"type": "null"},
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
}
_SHORT_FORMS: dict[str, Schema] = {
    "PoolSpec": {"type": "integer", "minimum": 1},
    "AfterSpec": {"type": "string"},
    "JumpSpec": {"anyOf": [{"type": "string"}, {"const": False}]},
}


def json_schema() -> Schema:
    """The schema of a whole pipeline file."""
    schema = _form(PipelineSpec)
    schema["$defs"] = {form.__name__: _form(form) for form in _within(PipelineSpec)}
    (world,), parts = msgspec.json.schema_components([WorldSettings], ref_template="#/$defs/{name}")
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["$defs"] |= parts
    schema["$defs"]["PipelineBody"]["properties"]["simulate"] = world
    for name in ("StepSpec", "HookSpec"):
        _with_kinds(schema["$defs"][name])
    for name, short in _SHORT_FORMS.items():
        schema["$defs"][name] = {"anyOf": [short, schema["$defs"][name]]}
    return schema


def _within(form: type[Form]) -> list[type[Form]]:
    """Every form that is a part of this one, however deep."""
    found: dict[type[Form], None] = {form: None}
    waiting = [form]
    for each in waiting:
        parts = [part for field in each.fields().values() for part in _forms(field.annotation)]
        waiting.extend(part for part in dict.fromkeys(parts) if part not in found)
        found |= dict.fromkeys(parts)
    return [*found][1:]


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
        "properties": {field.alias: _annotated(field.annotation) for field in fields},
        "required": [field.alias for field in fields if field.required],
        "additionalProperties": False,
    }


def _annotated(annotation: Any) -> Schema:
    """What may be written where a form has this annotation."""
    if isinstance(annotation, type) and issubclass(annotation, Form):
        return {"$ref": f"#/$defs/{annotation.__name__}"}
    if annotation in _PLAIN:
        return dict(_PLAIN[annotation])
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _with_bounds(_annotated(arguments[0]), arguments[1:])
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin in (Union, UnionType):
        return {"anyOf": [_annotated(argument) for argument in arguments]}
    return _holder(origin, arguments)


def _holder(origin: Any, arguments: tuple[Any, ...]) -> Schema:
    if origin is dict:
        return {"type": "object", "additionalProperties": _annotated(arguments[1])}
    return {"type": "array", "items": _annotated(arguments[0])}


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


def _with_kinds(step: Schema) -> None:
    """Exactly one of the kinds in place of what the form keeps them as."""
    properties: Schema = step["properties"]
    properties |= {kind: _parameters(kind) for kind in registry.kinds()}
    step["oneOf"] = [{"required": [kind]} for kind in registry.kinds()]


def _parameters(kind: str) -> Schema:
    known = written_parameters(kind)
    properties = {name: _open(parameter.described) for name, parameter in known.items()}
    if kind in TARGETS:
        properties[SOURCE] = {"type": "string"}
    if kind == conditions.KIND:
        properties[conditions.THAT] = {"type": ["boolean", "string"]}
    required = [name for name, parameter in known.items() if parameter.required]
    return {
        "type": "object" if required else ["object", "null"],
        "description": class_text(registry.find(kind)),
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def _open(kind: types.Type) -> Schema:
    """A shape, or a reference that has it when it is resolved."""
    choices = [_shape(choice) for choice in shapes.alternatives(kind)]
    if any(choice.get("type") == "string" and len(choice) == 1 for choice in choices):
        return choices[0] if len(choices) == 1 else {"anyOf": choices}
    return {"anyOf": [*choices, _REFERENCE]} if {} not in choices else {}


def _shape(kind: types.Type) -> Schema:
    if leaf := _LEAVES.get(type(kind)):
        return dict(leaf)
    if isinstance(kind, types.LiteralType):
        return {"enum": list(kind.values)}
    if isinstance(kind, types.DictType):
        return {"type": "object", "additionalProperties": _open(kind.value_type)}
    if isinstance(kind, types.VarTupleType | types.ListType):
        return {"type": "array", "items": _open(kind.item_type)}
    return {}
