"""Frozen data out of the plain values of a file, with all that is wrong with them at once.

A form is a class whose annotations say what may be written. They are read when the first value is
held against them: a form that a file does not use takes no time, and every run begins with this.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Self, Union, get_args, get_origin
from typing import get_type_hints as annotations_of

import msgspec

from kubexm.document.source import DataPath

Kind = Literal[
    "text", "whole number", "number", "flag", "mapping", "list", "word", "least", "most",
    "empty list", "empty text", "missing", "unknown key", "said",
]  # fmt: skip


class Mistake(msgspec.Struct, frozen=True):
    """A value that does not fit, and what it does not fit to."""

    kind: Kind
    path: DataPath
    value: Any
    wanted: Any = None
    """The words or the bound; of what is `said`, the `BadValue`."""
    at_key: bool = False


class BadValue(Exception):
    """Says in its own words what is wrong with a value."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


Mistakes = list[Mistake]
Check = Callable[[Any, DataPath, Mistakes], Any]
"""Takes a value, its place and where mistakes are noted; the answer is data, or `FAULT`."""
FAULT: Any = object()


class Before(msgspec.Struct, frozen=True):
    """Changes what is written before it is held against the annotation."""

    change: Callable[[Any], Any]

    def around(self, check: Check) -> Check:
        def checked(value: Any, path: DataPath, mistakes: Mistakes) -> Any:
            changed = _said(self.change, value, path, mistakes)
            return FAULT if changed is FAULT else check(changed, path, mistakes)

        return checked


class After(msgspec.Struct, frozen=True):
    """Judges a value that fits the annotation."""

    judge: Callable[[Any], Any]

    def around(self, check: Check) -> Check:
        def checked(value: Any, path: DataPath, mistakes: Mistakes) -> Any:
            found = check(value, path, mistakes)
            return FAULT if found is FAULT else _said(self.judge, found, path, mistakes)

        return checked


class Said(msgspec.Struct, frozen=True):
    """How a file says a value best that is kept otherwise, such as a duration in seconds."""

    text: Callable[[Any], str]


class Range(msgspec.Struct, frozen=True):
    """Bounds of a number, both included."""

    least: float | None = None
    most: float | None = None

    def around(self, check: Check) -> Check:
        def checked(value: Any, path: DataPath, mistakes: Mistakes) -> Any:
            found = check(value, path, mistakes)
            if found is FAULT:
                return FAULT
            if self.least is not None and not found >= self.least:
                return _fault("least", value, path, mistakes, self.least)
            if self.most is not None and not found <= self.most:
                return _fault("most", value, path, mistakes, self.most)
            return found

        return checked


class Filled(msgspec.Struct, frozen=True):
    """No empty list and no empty text."""

    def around(self, check: Check) -> Check:
        def checked(value: Any, path: DataPath, mistakes: Mistakes) -> Any:
            found = check(value, path, mistakes)
            if found is FAULT or found:
                return found
            kind: Kind = "empty text" if found == "" else "empty list"
            return _fault(kind, value, path, mistakes)

        return checked


class Field(msgspec.Struct, frozen=True):
    """A key of a mapping."""

    alias: str
    """What it is called in files."""
    annotation: Any
    default: Any
    """What it is if it is not written, or what makes that; `FAULT` if it has to be written."""
    check: Check

    @property
    def required(self) -> bool:
        return self.default is FAULT

    @property
    def usual(self) -> Any:
        """What it is if it is not written."""
        return self.default() if callable(self.default) else self.default

    def said(self, value: Any) -> Any:
        """A value of this field as a file says it."""
        said = _said_of(self.annotation)
        return value if said is None or value is None else said.text(value)


class _Default(msgspec.Struct, frozen=True):
    alias: str | None = None
    value: Any = FAULT
    make: Callable[[], Any] | None = None


def empty(make: Callable[[], Any]) -> Any:
    """The default of a field that each has for itself."""
    return _Default(make=make)


def called(alias: str, default: Any = FAULT) -> Any:
    """A field that has another name in files than its own in camelCase."""
    return _Default(alias, default)


class Form:
    """Frozen; unknown keys are refused; keys are written in camelCase."""

    __slots__ = ("__dict__", "given")
    given: frozenset[str]
    """The fields that were written."""

    def __init__(self) -> None:
        self._fill({})

    def _fill(self, written: Mapping[str, Any]) -> None:
        for name, field in self.fields().items():
            self.__dict__[name] = written.get(name, field.usual)
        object.__setattr__(self, "given", frozenset(written))

    @classmethod
    @functools.cache
    def fields(cls) -> Mapping[str, Field]:
        """The fields by name, those of the classes that it derives from first."""
        hints = annotations_of(cls, include_extras=True)
        return {name: cls._field(name, hint) for name, hint in hints.items() if name != "given"}

    @classmethod
    @functools.cache
    def aliases(cls) -> frozenset[str]:
        """What the fields are called in files."""
        return frozenset(field.alias for field in cls.fields().values())

    @classmethod
    def _field(cls, name: str, annotation: Any) -> Field:
        default = getattr(cls, name, FAULT)
        alias = None
        if isinstance(default, _Default):
            alias, default = default.alias, default.make or default.value
        return Field(alias or cls.written(name), annotation, default, _check(annotation))

    @staticmethod
    def written(name: str) -> str:
        """The key in files of a field with this name."""
        return camel(name)

    @classmethod
    def read(cls, data: Any) -> tuple[Self | None, Mistakes]:
        """What is written in this data; None, and all that is wrong with it, if it does not fit."""
        mistakes: Mistakes = []
        found = cls.taken(data, (), mistakes)
        return (None if found is FAULT else found), mistakes

    @classmethod
    def taken(cls, value: Any, path: DataPath, mistakes: Mistakes) -> Any:
        """The same as a part of something larger."""
        value = cls.short(value)
        if not isinstance(value, Mapping):
            return _fault("mapping", value, path, mistakes)
        before = len(mistakes)
        written = {
            name: field.check(value[field.alias], (*path, field.alias), mistakes)
            for name, field in cls._there(value, path, mistakes)
        }
        if len(mistakes) > before:
            return FAULT
        made = cls.__new__(cls)
        made._fill(written)
        return _said(cls.judged, made, path, mistakes)

    @classmethod
    def _there(
        cls, value: Mapping[str, Any], path: DataPath, mistakes: Mistakes
    ) -> Iterator[tuple[str, Field]]:
        for name, field in cls.fields().items():
            if field.alias in value:
                yield name, field
            elif field.required:
                mistakes.append(Mistake("missing", (*path, field.alias), value))
        for key in value:
            if key not in cls.aliases():
                mistakes.append(Mistake("unknown key", (*path, key), value[key]))

    @classmethod
    def short(cls, data: Any) -> Any:
        """What is written, without abbreviations."""
        return data

    def judged(self) -> Self:
        """The same, or `BadValue` if its fields don't go together."""
        return self

    def as_written(self) -> Any:
        """What a file would say, without what is the default."""
        return {
            field.alias: _plain(value)
            for name, field in self.fields().items()
            if (value := getattr(self, name)) != field.usual
        }

    def says(self, name: str) -> bool:
        """Whether a field was written, and is not what it would be without."""
        return name in self.given and getattr(self, name) != self.fields()[name].usual

    def in_full(self) -> Any:
        """What a file would say that says everything, also what is the default."""
        return {
            field.alias: _full(field.said(getattr(self, name)))
            for name, field in self.fields().items()
            if "\0" not in field.alias
        }

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"`{name}` of a {type(self).__name__} can't be changed")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash(type(self))  # what it holds may be a mapping

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.as_written()})"


def camel(name: str) -> str:
    """A name in camelCase, as files write it."""
    first, *rest = name.split("_")
    return first[:1].lower() + first[1:] + "".join(part[:1].upper() + part[1:] for part in rest)


def _plain(value: Any) -> Any:
    if isinstance(value, Form):
        return value.as_written()
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    return value


def _full(value: Any) -> Any:
    if isinstance(value, Form):
        return value.in_full()
    if isinstance(value, tuple):
        return [_full(part) for part in value]
    if isinstance(value, dict):
        return {key: _full(part) for key, part in value.items()}
    return value


def _fault(kind: Kind, value: Any, path: DataPath, mistakes: Mistakes, wanted: Any = None) -> Any:
    mistakes.append(Mistake(kind, path, value, wanted))
    return FAULT


def _said(judge: Callable[[Any], Any], value: Any, path: DataPath, mistakes: Mistakes) -> Any:
    try:
        return judge(value)
    except BadValue as error:
        return _fault("said", value, path, mistakes, error)


@functools.cache
def _said_of(annotation: Any) -> Said | None:
    """How a value of an annotation is said; None if as it is kept."""
    if get_origin(annotation) in (Annotated, Union, UnionType):
        found = (part if isinstance(part, Said) else _said_of(part) for part in _parts(annotation))
        return next((said for said in found if said is not None), None)
    return None


def _parts(annotation: Any) -> tuple[Any, ...]:
    """What an annotation is made of, and what it says beside that."""
    return (*get_args(annotation)[:1], *getattr(annotation, "__metadata__", get_args(annotation)))


@functools.cache
def _check(annotation: Any) -> Check:
    """What holds a value against an annotation."""
    if annotation in _PLAIN:
        return _PLAIN[annotation]
    if isinstance(annotation, type) and issubclass(annotation, Form):
        return annotation.taken
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        check = _check(arguments[0])
        for part in arguments[1:]:
            check = part.around(check) if hasattr(part, "around") else check
        return check
    if origin is Literal:
        return functools.partial(_word, arguments)
    if origin in (Union, UnionType):
        return functools.partial(_either, tuple(map(_check, arguments)), NoneType in arguments)
    return functools.partial(_HOLDERS[origin], *map(_check, arguments[-2:]))


def _anything(value: Any, _path: DataPath, _mistakes: Mistakes) -> Any:
    return value


def _text(value: Any, path: DataPath, mistakes: Mistakes) -> Any:
    return value if isinstance(value, str) else _fault("text", value, path, mistakes)


def _flag(value: Any, path: DataPath, mistakes: Mistakes) -> Any:
    return value if isinstance(value, bool) else _fault("flag", value, path, mistakes)


def _whole_number(value: Any, path: DataPath, mistakes: Mistakes) -> Any:
    is_one = isinstance(value, int) and not isinstance(value, bool)
    return value if is_one else _fault("whole number", value, path, mistakes)


def _number(value: Any, path: DataPath, mistakes: Mistakes) -> Any:
    is_one = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_one else _fault("number", value, path, mistakes)


def _nothing(value: Any, _path: DataPath, _mistakes: Mistakes) -> Any:
    return FAULT if value is not None else None


def _word(words: Sequence[Any], value: Any, path: DataPath, mistakes: Mistakes) -> Any:
    if any(value == word and type(value) is type(word) for word in words):
        return value
    return _fault("word", value, path, mistakes, words)


def _either(
    checks: Sequence[Check], optional: bool, value: Any, path: DataPath, mistakes: Mistakes
) -> Any:
    if optional and value is None:
        return None
    found = [(check(value, path, own), own) for check in checks for own in [Mistakes()]]
    for answer, own in found:
        if not own and answer is not FAULT:
            return answer
    mistakes.extend(found[0][1])
    return FAULT


def _entries(check: Check, _more: Check, value: Any, path: DataPath, mistakes: Mistakes) -> Any:
    if not isinstance(value, list | tuple):
        return _fault("list", value, path, mistakes)
    return tuple(check(part, (*path, at), mistakes) for at, part in enumerate(value))


def _list(_part: Check, value: Any, path: DataPath, mistakes: Mistakes) -> Any:
    return value if isinstance(value, list) else _fault("list", value, path, mistakes)


def _mapping(key: Check, held: Check, value: Any, path: DataPath, mistakes: Mistakes) -> Any:
    if not isinstance(value, Mapping):
        return _fault("mapping", value, path, mistakes)
    of_keys: Mistakes = []
    found = {
        key(name, (*path, name), of_keys): held(part, (*path, name), mistakes)
        for name, part in value.items()
    }
    mistakes.extend(msgspec.structs.replace(mistake, at_key=True) for mistake in of_keys)
    return found


_PLAIN: Mapping[Any, Check] = {
    Any: _anything,
    ...: _anything,
    NoneType: _nothing,
    str: _text,
    bool: _flag,
    int: _whole_number,
    float: _number,
}
_HOLDERS: Mapping[Any, Callable[..., Any]] = {tuple: _entries, list: _list, dict: _mapping}
