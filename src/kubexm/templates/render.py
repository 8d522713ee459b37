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
from kubexm.templates.context import Format
from kubexm.templates.filters import FILTERS
from kubexm.templates.syntax import Fault, fault_of, first_lines

if TYPE_CHECKING:
    from jinja2 import Template
    from jinja2.sandbox import ImmutableSandboxedEnvironment

_ROOT = Path(__file__).parent
SUFFIX = ".j2"
_TEXT = "template text"


def names() -> tuple[str, ...]:
    """Every template that comes with the program, such as `systemd/service`."""
    found = (path.relative_to(_ROOT).with_suffix("") for path in _ROOT.rglob(f"*{SUFFIX}"))
    return tuple(sorted(map(str, found)))


def render(name: str, data: Mapping[str, Any]) -> str:
    """A template of the program, filled in."""
    return _filled(source(name), data, f"template `{name}`")


def render_text(text: str, data: Mapping[str, Any]) -> str:
    """A template given as text, filled in."""
    return _filled(text, data, _TEXT)


def merged(
    text: str,
    data: Mapping[str, Any],
    overrides: Mapping[str, Any],
    form: Format,
    *,
    what: str = _TEXT,
) -> str:
    """A template given as text, filled in, and then single values of the outcome changed; without
    such values the outcome stays as it is, comments and all. Errors call the template `what`."""
    filled = _filled(text, data, what)
    if not overrides:
        return filled
    from kubexm.templates import merging  # noqa: PLC0415 few files are changed

    try:
        return merging.changed(filled, overrides, form)
    except InvalidInput as error:
        where = f"{what}, {error.where}" if error.where else what
        raise InvalidInput(
            error.message, problems=error.problems, where=where, hint=error.hint
        ) from error


def used(text: str) -> dict[str, int]:
    """The names that a template needs from its data, each with the line where it is first used."""
    from jinja2 import meta  # noqa: PLC0415

    tree = _environment().parse(text)
    return first_lines(tree, meta.find_undeclared_variables(tree))


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
    return sha256(source(name).encode()).hexdigest()


@cache
def source(name: str) -> str:
    """The text of a template of the program."""
    if name not in names():
        raise InvalidInput(f"unknown template `{name}`", hint=did_you_mean(name, names()))
    return (_ROOT / f"{name}{SUFFIX}").read_text(encoding="utf-8")


def _filled(text: str, data: Mapping[str, Any], what: str) -> str:
    from jinja2 import TemplateError  # noqa: PLC0415

    try:
        return _compiled(text).render(data)
    except (TemplateError, TypeError, ValueError, ArithmeticError, LookupError) as error:
        line = getattr(error, "lineno", None) or _line_of(error)
        where = f"{what}, line {line}" if line else what
        raise InvalidInput(str(error), where=where) from error


@lru_cache(maxsize=256)
def _compiled(text: str) -> Template:
    # A step is filled in for each of its hosts; compiling takes far longer than that.
    return _environment().from_string(text)


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
    environment.filters.update(FILTERS)
    return environment
