"""As much of JSON Schema as our own schema uses."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

TYPES: dict[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
}
IGNORED = {"title", "description", "default", "$defs", "$schema", "discriminator"}


def fits(value: Any, schema: Any, root: Any = None) -> bool:
    """Whether a value is what a schema says; an unknown keyword is an error."""
    root = schema if root is None else root
    if isinstance(schema, bool):
        return schema
    return all(
        KEYWORDS[keyword](value, argument, schema, root)
        for keyword, argument in schema.items()
        if keyword not in IGNORED
    )


def _ref(value: Any, argument: str, _schema: Any, root: Any) -> bool:
    here = root
    for part in argument.removeprefix("#/").split("/"):
        here = here[part]
    return fits(value, here, root)


def _type(value: Any, argument: str | list[str], _schema: Any, _root: Any) -> bool:
    names = [argument] if isinstance(argument, str) else argument
    return any(TYPES[name](value) for name in names)


def _properties(value: Any, argument: Any, _schema: Any, root: Any) -> bool:
    if not isinstance(value, dict):
        return True
    return all(fits(value[key], part, root) for key, part in argument.items() if key in value)


def _additional(value: Any, argument: Any, schema: Any, root: Any) -> bool:
    if not isinstance(value, dict):
        return True
    others = [part for key, part in value.items() if key not in schema.get("properties", {})]
    return all(fits(part, argument, root) for part in others)


def _number(test: Callable[[Any, Any], bool]) -> Callable[..., bool]:
    return lambda value, argument, _schema, _root: (
        not TYPES["number"](value) or test(value, argument)
    )


KEYWORDS: dict[str, Callable[..., bool]] = {
    "$ref": _ref,
    "type": _type,
    "properties": _properties,
    "additionalProperties": _additional,
    "required": lambda value, argument, _s, _r: (
        not isinstance(value, dict) or all(key in value for key in argument)
    ),
    "items": lambda value, argument, _s, root: (
        not isinstance(value, list) or all(fits(part, argument, root) for part in value)
    ),
    "anyOf": lambda value, argument, _s, root: any(fits(value, part, root) for part in argument),
    "oneOf": lambda value, argument, _s, root: (
        sum(fits(value, part, root) for part in argument) == 1
    ),
    "enum": lambda value, argument, _s, _r: value in argument,
    "const": lambda value, argument, _s, _r: value == argument,
    "pattern": lambda value, argument, _s, _r: (
        not isinstance(value, str) or re.search(argument, value) is not None
    ),
    "minItems": lambda value, argument, _s, _r: (
        not isinstance(value, list) or len(value) >= argument
    ),
    "minLength": lambda value, argument, _s, _r: (
        not isinstance(value, str) or len(value) >= argument
    ),
    "minimum": _number(lambda value, argument: value >= argument),
    "maximum": _number(lambda value, argument: value <= argument),
}
