"""The parameters of a step in a file against the fields of its class.

In files they are written in camelCase. A parameter that is one whole reference has no type before
it is resolved; every other one is checked here, by the same rules that load it later.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, get_type_hints

import msgspec
from msgspec import inspect as types

from kubexm.common.nearest import did_you_mean
from kubexm.document.findings import Finding
from kubexm.document.forms import camel
from kubexm.errors import KubexmError
from kubexm.spec import references, shapes
from kubexm.spec.files import TARGETS, ExternalFiles
from kubexm.spec.local import SOURCE
from kubexm.spec.references import BadReference
from kubexm.step import registry
from kubexm.step.contract import Step
from kubexm.step.parameters import PLANNED, Mode


class Parameter(msgspec.Struct, frozen=True):
    """A field of a step class as a file knows it."""

    field: str
    shape: types.Type
    default: Any
    required: bool
    is_mode: bool = False
    is_planned: bool = False
    """Whether planning fills it in, and no file has it."""

    @property
    def described(self) -> types.Type:
        """The shape to write: numbers are taken for modes only to say what to write instead."""
        return shapes.shape(str | None) if self.is_mode else self.shape


_WANT = r", want (.+)$"
_NEEDS = r"`(\w+)` needs (?:an? )?`([^`]+)`"
_SUBJECT = r"`(\w+)(?:\.([^`]+))?[^`]*` "
_HARMLESS: tuple[tuple[type[types.Type], Any], ...] = (
    (types.StrType, "/x"),
    (types.VarTupleType, ["x"]),
    (types.DictType, {}),
    (types.BoolType, True),
    (types.IntType, 1),
    (types.FloatType, 1.0),
)
"""What most steps take for a parameter of a shape, to hear what they say of the others."""
_SOURCE = Parameter(SOURCE, shapes.shape(str), None, required=False)


@functools.lru_cache(maxsize=256)
def parameters_of(kind: str) -> Mapping[str, Parameter]:
    """The parameters of a kind of step by the name they have in files."""
    cls: Any = registry.find(kind)
    hints = get_type_hints(cls)
    return {
        camel(item.name): Parameter(
            item.name,
            shapes.shape(hints[item.name]),
            _default(item),
            _is_required(item),
            hints[item.name] == Mode,
            is_planned=item.metadata == PLANNED,
        )
        for item in dataclasses.fields(cls)
        if item.init
    }


def written_parameters(kind: str) -> Mapping[str, Parameter]:
    """Those of them that a file may have."""
    known = parameters_of(kind)
    return {name: parameter for name, parameter in known.items() if not parameter.is_planned}


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
    known = written_parameters(kind)
    if kind in TARGETS:
        known = {**known, SOURCE: _SOURCE}
    found = [*_unknown(params, known), *_missing(params, known), *_bad_references(params)]
    for name in params.keys() & known.keys():
        found.extend(shapes.mismatches(_opened(params[name]), known[name].shape, (name,)))
    if kind in TARGETS:
        found.extend(_doubled(kind, params))
    given = ExternalFiles.placeholder(kind, params)
    usable = {
        name: value
        for name, value in given.items()
        if name in parameters_of(kind) and not references.holds_references(value)
    }
    return [*found, *_objections(kind, given, _without(usable, found))]


def refusals(kind: str, fields: Mapping[str, Any]) -> Iterator[Finding]:
    """What is wrong with these fields, all of them resolved."""
    names = {parameter.field: name for name, parameter in parameters_of(kind).items()}
    params = {names[field]: value for field, value in fields.items()}
    found = [
        finding
        for name, value in params.items()
        for finding in shapes.mismatches(value, parameters_of(kind)[name].shape, (name,))
    ]
    yield from found
    yield from _objections(kind, params, _without(params, found))


def _without(params: Mapping[str, Any], found: Iterable[Finding]) -> dict[str, Any]:
    wrong = {finding.path[0] for finding in found if finding.path}
    return {name: value for name, value in params.items() if name not in wrong}


def _objections(kind: str, given: Mapping[str, Any], usable: dict[str, Any]) -> Iterator[Finding]:
    """What the step class says against the usable ones of the parameters that are given.

    It says one thing at a time: what that is about is set aside, to hear the next. What it says
    of all together counts only while nothing is set aside; what it says of one, only if it does
    not speak of another that is.
    """
    required = (name for name, item in parameters_of(kind).items() if item.required)
    aside = {*given, *required} - usable.keys()
    while (objection := _objection(kind, usable)) is not None:
        name = str(objection.path[0]) if objection.path else ""
        if not aside or (name in usable and not _speaks_of(aside, objection)):
            yield objection
        if name not in usable:
            return
        aside.add(name)
        del usable[name]


def _speaks_of(names: Iterable[str], objection: Finding) -> bool:
    return any(f"`{name}" in objection.message for name in names)


def _objection(kind: str, params: Mapping[str, Any]) -> Finding | None:
    known = parameters_of(kind)
    fields = {known[name].field: value for name, value in params.items()}
    for parameter in known.values():
        if parameter.required and parameter.field not in fields:
            fields[parameter.field] = _harmless(parameter.shape)
    try:
        registry.load(kind, fields)
    except KubexmError as error:
        # The cause is what the class said; around it is what kind of step it was.
        message = as_written(kind, str(error.__cause__ or error.message))
        hint = as_written(kind, error.hint) or _remedy(message)
        return Finding(_about(message, known), message, hint)
    return None


def _harmless(kind: types.Type) -> Any:
    choices = shapes.alternatives(kind)
    return next(
        (value for shape, value in _HARMLESS for choice in choices if isinstance(choice, shape)),
        None,
    )


def _remedy(message: str) -> str:
    """What to do about a message of a class that does not say it by itself."""
    if wanted := re.search(_WANT, message):
        return f"make it {wanted[1]}"
    if needs := re.match(_NEEDS, message):
        return f"add `{needs[2]}`, or leave `{needs[1]}` out"
    return "change it, or leave it out"


def _about(message: str, known: Mapping[str, Parameter]) -> tuple[str, ...]:
    """The parameter, or the part of one, that a message begins with, if it does."""
    found = re.match(_SUBJECT, message)
    if found is None or found[1] not in known:
        return ()
    return (found[1], found[2]) if found[2] else (found[1],)


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
            hint = did_you_mean(camel(name), known)
            yield Finding((name,), f"unknown parameter `{name}`", hint, at_key=True)


def _missing(params: Mapping[str, Any], known: Mapping[str, Parameter]) -> Iterator[Finding]:
    for name, parameter in known.items():
        if parameter.required and name not in params:
            yield Finding((), f"`{name}` is missing", f"add `{name}: …`")


def _bad_references(params: Mapping[str, Any]) -> Iterator[Finding]:
    for path, reference in references.scan(params):
        bad: BadReference | None
        if isinstance(reference, BadReference):
            bad = reference
        else:
            bad = references.unknown_fact(reference)
        if bad is not None:
            yield Finding(path, str(bad), bad.hint, bad.at_key, bad.excerpt)


def _opened(value: Any) -> Any:
    """The value with every whole reference in it left open: its type shows only later."""
    if isinstance(value, str):
        return shapes.OPEN if references.is_whole(value) else value
    if isinstance(value, Mapping):
        return {key: _opened(part) for key, part in value.items()}
    return [_opened(part) for part in value] if isinstance(value, list) else value
