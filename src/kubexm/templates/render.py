"""Strict Jinja: an undefined variable is an error, and a template can only read its data.

Jinja takes a while to load, and many pipelines have no template: it is loaded for the first one.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, lru_cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kubexm.common.nearest import did_you_mean
from kubexm.errors import InvalidInput
from kubexm.templates.syntax import Fault, fault_of

if TYPE_CHECKING:
    from jinja2 import Template
    from jinja2.sandbox import ImmutableSandboxedEnvironment

_ROOT = Path(__file__).parent
_SUFFIX = ".j2"


def names() -> tuple[str, ...]:
    """Every template that comes with the program, such as `systemd/service`."""
    found = (path.relative_to(_ROOT).with_suffix("") for path in _ROOT.rglob(f"*{_SUFFIX}"))
    return tuple(sorted(map(str, found)))


def render(name: str, data: Mapping[str, Any]) -> str:
    """A template of the program, filled in."""
    return _filled(_source(name), data, f"template `{name}`")


def render_text(text: str, data: Mapping[str, Any]) -> str:
    """A template given as text, filled in."""
    return _filled(text, data, "template text")


def fault(text: str) -> Fault | None:
    """What keeps a template given as text from being read, whatever its data."""
    from jinja2 import TemplateSyntaxError  # noqa: PLC0415

    try:
        _compiled(text)
    except TemplateSyntaxError as error:
        return fault_of(text, error)
    return None


def digest(name: str) -> str:
    """Changes when the template does, so that a stored graph can tell."""
    return sha256(_source(name).encode()).hexdigest()


@cache
def _source(name: str) -> str:
    if name not in names():
        raise InvalidInput(f"unknown template `{name}`", hint=did_you_mean(name, names()))
    return (_ROOT / f"{name}{_SUFFIX}").read_text(encoding="utf-8")


def _filled(source: str, data: Mapping[str, Any], what: str) -> str:
    from jinja2 import TemplateError  # noqa: PLC0415

    try:
        return _compiled(source).render(data)
    except (TemplateError, TypeError, ValueError, ArithmeticError, LookupError) as error:
        line = getattr(error, "lineno", None) or _line_of(error)
        where = f"{what}, line {line}" if line else what
        raise InvalidInput(str(error), where=where) from error


@lru_cache(maxsize=256)
def _compiled(source: str) -> Template:
    # A step is filled in for each of its hosts; compiling takes far longer than that.
    return _environment().from_string(source)


def _line_of(error: BaseException) -> int | None:
    """The line of the template in which it failed: Jinja names its frames `<template>`."""
    line = None
    frame = error.__traceback__
    while frame is not None:
        if frame.tb_frame.f_code.co_filename == "<template>":
            line = frame.tb_lineno
        frame = frame.tb_next
    return line


@cache
def _environment() -> ImmutableSandboxedEnvironment:
    from jinja2 import StrictUndefined  # noqa: PLC0415
    from jinja2.sandbox import ImmutableSandboxedEnvironment  # noqa: PLC0415

    # Configuration files are no HTML: escaping would spoil them.
    environment = ImmutableSandboxedEnvironment(
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        autoescape=False,
    )
    environment.filters["unit_word"] = _unit_word
    return environment


def _unit_word(value: object) -> str:
    """One word of a systemd unit: quoted if it has to be, with its specifiers escaped."""
    text = str(value).replace("%", "%%")
    if text and not set(text) & set(" \t\n\"'\\"):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
