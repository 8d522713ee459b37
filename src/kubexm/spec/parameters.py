"""The parameters of a step in a file against the fields of its class.

In files they are written in camelCase. A parameter that is one whole reference has no type before
it is resolved; every other one is checked here, by the same rules that load it later.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Iterator, Mapping
from typing import Any, get_type_hints

from msgspec import inspect as types
from pydantic.alias_generators import to_camel

from kubexm.common.nearest import did_you_mean
from kubexm.errors import KubexmError
from kubexm.spec import references, shapes
from kubexm.spec.fields import Finding
from kubexm.spec.files import SOURCE, TARGETS, ExternalFiles
from kubexm.step import registry
from kubexm.step.contract import Step


@dataclasses.dataclass(frozen=True, slots=True)
class Parameter:
    """A field of a step class as a file knows it."""

    field: str
    shape: types.Type
    default: Any
    required: bool


_WANT = re.compile(r", want (.+)$")
_NEEDS = re.compile(r"`(\w+)` needs (?:an? )?`([^`]+)`")
_SUBJECT = re.compile(r"`(\w+)[^`]*` ")
_SOURCE = Parameter(SOURCE, shapes.shape(str), None, required=False)


@functools.lru_cache(maxsize=256)
def parameters_of(kind: str) -> Mapping[str, Parameter]:
    """The parameters of a kind of step by the name they have in files."""
    cls: Any = registry.find(kind)
    hints = get_type_hints(cls)
    return {
        to_camel(item.name): Parameter(
            item.name, shapes.shape(hints[item.name]), _default(item), _is_required(item)
        )
        for item in dataclasses.fields(cls)
        if item.init
    }


def _is_required(item: dataclasses.Field[Any]) -> bool:
    return item.default is dataclasses.MISSING and item.default_factory is dataclasses.MISSING


def _default(item: dataclasses.Field[Any]) -> Any:
    if item.default_factory is not dataclasses.MISSING:
        return item.default_factory()
    return None if item.default is dataclasses.MISSING else item.default


def as_fields(kind: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters of a file under the names that the class has for them."""
    known = parameters_of(kind)
    return {known[name].field: value for name, value in params.items()}


def as_taken(kind: str, written: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    """Fields whose references were resolved, with a number as text where text is taken."""
    shaped = _shapes(kind)
    return {
        name: shapes.as_text(written[name], value, shaped[name]) if name in shaped else value
        for name, value in fields.items()
    }


@functools.lru_cache(maxsize=256)
def _shapes(kind: str) -> Mapping[str, types.Type]:
    """The shapes of parameters by the names that files and classes have for them."""
    known = parameters_of(kind)
    written = {name: parameter.shape for name, parameter in known.items()}
    return written | {parameter.field: parameter.shape for parameter in known.values()}


def sketch(cls: type[Step], fields: Mapping[str, Any]) -> Step:
    """A step that was never checked: enough to ask what it is about, needs and provides."""
    sketched = object.__new__(cls)
    for parameter in parameters_of(cls.kind).values():
        value = fields.get(parameter.field, parameter.default)
        object.__setattr__(sketched, parameter.field, value)
    return sketched


def findings(kind: str, params: Any) -> list[Finding]:
    """All that is wrong with the parameters of a step of a known kind."""
    if not isinstance(params, Mapping):
        return []  # the model says so
    known = parameters_of(kind)
    if kind in TARGETS:
        known = {**known, SOURCE: _SOURCE}
    found = [*_unknown(params, known), *_missing(params, known), *_bad_references(params)]
    for name in params.keys() & known.keys():
        found.extend(shapes.mismatches(_opened(params[name]), known[name].shape, (name,)))
    if kind in TARGETS:
        found.extend(_doubled(kind, params))
    if found or references.holds_references(params):
        return found
    return list(refusals(kind, as_fields(kind, ExternalFiles.placeholder(kind, params))))


def refusals(kind: str, fields: Mapping[str, Any]) -> Iterator[Finding]:
    """What the step class itself says against these fields, all of them resolved."""
    known = parameters_of(kind)
    found = [
        finding
        for name, parameter in known.items()
        if parameter.field in fields
        for finding in shapes.mismatches(fields[parameter.field], parameter.shape, (name,))
    ]
    yield from found
    if found:
        return
    try:
        registry.load(kind, fields)
    except KubexmError as error:
        # The cause is what the class said; around it is what kind of step it was.
        message = as_written(kind, str(error.__cause__ or error.message))
        hint = as_written(kind, error.hint) or _remedy(message)
        yield Finding(_about(message, known), message, hint)


def _remedy(message: str) -> str:
    """What to do about a message of a class that does not say it by itself."""
    if wanted := _WANT.search(message):
        return f"make it {wanted[1]}"
    if needs := _NEEDS.match(message):
        return f"add `{needs[2]}`, or leave `{needs[1]}` out"
    return "change it, or leave it out"


def _about(message: str, known: Mapping[str, Parameter]) -> tuple[str, ...]:
    """The parameter that a message begins with, if it does."""
    found = _SUBJECT.match(message)
    return (found[1],) if found and found[1] in known else ()


def as_written(kind: str, message: str) -> str:
    """A message of a class with the names that files have for its fields."""
    for name, parameter in parameters_of(kind).items():
        message = message.replace(f"`{parameter.field}", f"`{name}")
    return message


def _doubled(kind: str, params: Mapping[str, Any]) -> Iterator[Finding]:
    target = TARGETS[kind]
    for name in (target.text, target.binary):
        if SOURCE in params and name in params:
            message = f"both `{SOURCE}` and `{name}`"
            yield Finding((SOURCE,), message, "keep one of them", at_key=True)


def _unknown(params: Mapping[str, Any], known: Mapping[str, Parameter]) -> Iterator[Finding]:
    for name in params:
        if name not in known:
            hint = did_you_mean(to_camel(name), known)
            yield Finding((name,), f"unknown parameter `{name}`", hint, at_key=True)


def _missing(params: Mapping[str, Any], known: Mapping[str, Parameter]) -> Iterator[Finding]:
    for name, parameter in known.items():
        if parameter.required and name not in params:
            yield Finding((), f"`{name}` is missing", f"add `{name}: …`")


def _bad_references(params: Mapping[str, Any]) -> Iterator[Finding]:
    for path, reference in references.scan(params):
        if isinstance(reference, references.BadReference):
            yield Finding(path, str(reference), reference.hint, reference.at_key, reference.excerpt)


def _opened(value: Any) -> Any:
    """The value with every whole reference in it left open: its type shows only later."""
    if isinstance(value, str):
        return shapes.OPEN if references.is_whole(value) else value
    if isinstance(value, Mapping):
        return {key: _opened(part) for key, part in value.items()}
    return [_opened(part) for part in value] if isinstance(value, list) else value
