"""The pipeline file as JSON Schema, for editors that complete and check while one types."""

from __future__ import annotations

import msgspec
from msgspec import inspect as types

from kubexm.document.docstrings import class_text
from kubexm.document.schema import Schema
from kubexm.document.schema import json_schema as json_schema_of
from kubexm.sim.settings import WorldSettings
from kubexm.spec import conditions, shapes
from kubexm.spec.files import TARGETS
from kubexm.spec.local import SOURCE
from kubexm.spec.model import PipelineSpec
from kubexm.spec.parameters import written_parameters
from kubexm.step import registry

_REFERENCE: Schema = {"type": "string", "pattern": r"^\$\{[^{}]*\}$"}
_LEAVES: dict[type[types.Type], Schema] = {
    types.StrType: {"type": "string"},
    types.BoolType: {"type": "boolean"},
    types.IntType: {"type": "integer"},
    types.FloatType: {"type": "number"},
    types.NoneType: {"type": "null"},
}
_SHORT_FORMS: dict[str, Schema] = {
    "PoolSpec": {"type": "integer", "minimum": 1},
    "AfterSpec": {"type": "string"},
    "JumpSpec": {"anyOf": [{"type": "string"}, {"const": False}]},
}


def json_schema() -> Schema:
    """The schema of a whole pipeline file."""
    schema = json_schema_of(PipelineSpec)
    (world,), parts = msgspec.json.schema_components([WorldSettings], ref_template="#/$defs/{name}")
    schema["$defs"] |= parts
    schema["$defs"]["PipelineBody"]["properties"]["simulate"] = world
    for name in ("StepSpec", "HookSpec"):
        _with_kinds(schema["$defs"][name])
    for name, short in _SHORT_FORMS.items():
        schema["$defs"][name] = {"anyOf": [short, schema["$defs"][name]]}
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
