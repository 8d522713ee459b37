"""Variables from the command line: `--set app.port=8080` wins over what the file says."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from kubexm.document import scalars, source
from kubexm.errors import InvalidFile, InvalidInput

_PATH = r"[A-Za-z_][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*"


class Override(msgspec.Struct, frozen=True):
    """A variable, or a part of one, and the value it shall have."""

    path: tuple[str, ...]
    value: Any

    def __str__(self) -> str:
        return f"--set {'.'.join(self.path)}"


def parse_overrides(texts: Iterable[str]) -> tuple[Override, ...]:
    """What `--set` was given; a value is read as in a file, and text needs no quotes."""
    return tuple(_override(text) for text in texts)


def _override(text: str) -> Override:
    name, separator, value = text.partition("=")
    if not separator or not re.fullmatch(_PATH, name):
        raise InvalidInput(
            f"`--set {text}` sets nothing",
            hint="write `--set NAME=VALUE`, or `--set NAME.PART=VALUE` for a part of a variable",
        )
    return Override(tuple(name.split(".")), _value(value, name))


def _value(text: str, name: str) -> Any:
    if text[:1] in tuple("[{\"'"):
        try:
            document = source.parse(text, f"--set {name}")
        except InvalidFile as error:
            reason = error.problems[0].message if error.problems else error.message
            raise InvalidInput(f"`--set {name}`: {reason}", hint="check the brackets") from error
        for note in document.notes:
            raise InvalidInput(f"`--set {name}`: {note.message}", hint=note.hint)
        return document.data
    try:
        return scalars.resolve(text) if text else ""
    except scalars.Ambiguous:
        return text


def applied(variables: Mapping[str, Any], overrides: Iterable[Override]) -> dict[str, Any]:
    """The variables with these parts replaced."""
    changed = dict(variables)
    for override in overrides:
        _set(changed, override)
    return changed


def _set(variables: dict[str, Any], override: Override) -> None:
    here = variables
    for depth, name in enumerate(override.path[:-1], 1):
        inner = here.get(name, {})
        if not isinstance(inner, Mapping):
            message = f"`{override}`: `{name}` is no mapping, so it has no parts"
            whole = ".".join(override.path[:depth])
            raise InvalidInput(message, hint=f"set the whole of it: `--set {whole}=…`")
        here[name] = dict(inner)
        here = here[name]
    here[override.path[-1]] = override.value
