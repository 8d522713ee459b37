"""The pipeline file as JSON Schema, for editors that complete and check while one types."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import inspect as types

from kubexm.sim.settings import WorldSettings
from kubexm.spec import conditions, shapes
from kubexm.spec.docstrings import class_text
from kubexm.spec.files import SOURCE, TARGETS
from kubexm.spec.model import DIRECT_KEY, PipelineSpec
from kubexm.spec.parameters import parameters_of
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
_SHORT_FORMS: dict[str, Schema] = {
    "PoolSpec": {"type": "integer", "minimum": 1},
    "AfterSpec": {"type": "string"},
    "JumpSpec": {"anyOf": [{"type": "string"}, {"const": False}]},
}


def json_schema() -> Schema:
    """The schema of a whole pipeline file."""
    schema = PipelineSpec.model_json_schema(by_alias=True)
    (world,), parts = msgspec.json.schema_components([WorldSettings], ref_template="#/$defs/{name}")
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["$defs"] |= parts
    schema["$defs"]["PipelineBody"]["properties"]["simulate"] = world
    for name in ("StepSpec", "HookSpec"):
        _with_kinds(schema["$defs"][name])
    del schema["$defs"]["JumpSpec"]["properties"][DIRECT_KEY]
    for name, short in _SHORT_FORMS.items():
        schema["$defs"][name] = {"anyOf": [short, schema["$defs"][name]]}
    return schema


def _with_kinds(step: Schema) -> None:
    """Exactly one of the kinds in place of what the model keeps them as."""
    properties: Schema = step["properties"]
    for name in [name for name in properties if "\0" in name]:
        del properties[name]
    step["required"] = [name for name in step["required"] if "\0" not in name]
    properties |= {kind: _parameters(kind) for kind in registry.kinds()}
    step["oneOf"] = [{"required": [kind]} for kind in registry.kinds()]


def _parameters(kind: str) -> Schema:
    known = parameters_of(kind)
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
