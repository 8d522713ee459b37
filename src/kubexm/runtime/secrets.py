"""Secret values: resolved from their references in memory, and hidden wherever text goes."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from kubexm.common.secrets import PROMPT, SCHEMES, SecretRef
from kubexm.errors import StepFailed

AskSecret = Callable[[str], str]
"""Asks a person for a secret, naming what it is; the answer is not shown."""
HIDDEN = "***"
SHORTEST = 4
"""A shorter secret would hide half of any text, and protects nothing."""
SHORTEST_NUMBER = 5
"""Numbers of four digits are ports, years and counts, and stand in any output; text seldom does."""


class SecretVault:
    """Resolves references and remembers every value it has seen, to redact it."""

    def __init__(self, ask: AskSecret | None = None) -> None:
        self._ask = ask
        self._values: dict[str, str] = {}
        self._hidden: list[str] = []

    def must_ask(self, reference: SecretRef) -> bool:
        """Whether a person has to be asked for a value, and is there."""
        is_open = reference.scheme == PROMPT and reference.uri not in self._values
        return is_open and self._ask is not None

    def reveal(self, reference: SecretRef) -> str:
        """The value behind a reference; read once per run."""
        if reference.uri not in self._values:
            value = self._answer(reference) if reference.scheme == PROMPT else _resolve(reference)
            self._values[reference.uri] = value
            self.conceal(value)
        return self._values[reference.uri]

    def _answer(self, reference: SecretRef) -> str:
        if self._ask is None:
            raise StepFailed(
                f"there is no terminal to ask for `{reference}` on",
                hint="run it on a terminal, or write `env://NAME` or `file:///PATH` in its place",
            )
        if answer := self._ask(reference.location):
            return answer
        raise StepFailed(f"nothing was typed for `{reference}`", hint="run it again, and type it")

    def conceal(self, value: Any) -> None:
        """Redact this value from now on; in a list or mapping, every text and number in it."""
        self._hidden += sorted({*_parts(value)}.difference(self._hidden))
        # The longest first, or the rest of a secret that holds another one would be shown.
        self._hidden.sort(key=len, reverse=True)

    def is_in(self, text: str) -> bool:
        """Whether a text has a known secret in it."""
        return any(value in text for value in self._hidden)

    def redact(self, text: str) -> str:
        """The text without any known secret."""
        for value in self._hidden:
            if value in text:
                text = text.replace(value, HIDDEN)
        return text


class _Number(str):
    """A number as a document has it: `1.50` would be another text once it is read."""

    __slots__ = ()


def _parts(secret: Any) -> Iterator[str]:
    """All that is hidden of a secret, wherever it turns up."""
    found = [secret]
    while found:
        part = found.pop()
        if isinstance(part, dict):
            found.extend(part.values())
        elif isinstance(part, (list, tuple)):
            found.extend(part)
        elif isinstance(part, (int, float, _Number)):
            yield from _digits(str(part))
        elif isinstance(part, str):
            yield from _lines(part.strip())
            found.append(_document(part.strip()))


def _digits(number: str) -> Iterator[str]:
    if sum(map(str.isdigit, number.lstrip("-0."))) >= SHORTEST_NUMBER:
        yield number.lstrip("-")


def _lines(text: str) -> Iterator[str]:
    # Output comes line by line, so a secret of several lines is hidden line by line too.
    lines = (text, *(line.strip() for line in text.splitlines()))
    return (line for line in lines if len(line) >= SHORTEST)


def _document(text: str) -> Any:
    """What a text holds that is a mapping or a list in JSON; nothing of any other."""
    if not text.startswith(("{", "[")):
        return None
    try:
        return json.loads(text, parse_int=_Number, parse_float=_Number)
    except (ValueError, RecursionError):
        return None


def _resolve(reference: SecretRef) -> str:
    if reference.scheme == "env":
        return _variable(reference.location)
    if reference.scheme == "file":
        return _content(reference)
    if "://" not in reference.uri:
        return reference.uri  # a secret that was written out, and accepted
    known = ", ".join(f"`{scheme}://`" for scheme in SCHEMES)
    raise StepFailed(f"unknown kind of secret `{reference}`", hint=f"known: {known}")


def _variable(name: str) -> str:
    if value := os.environ.get(name):
        return value
    state = "not set" if name not in os.environ else "empty"
    raise StepFailed(
        f"the environment variable `{name}` is {state}",
        hint=f"export {name} before running kubexm",
    )


def _content(reference: SecretRef) -> str:
    try:
        content = Path(reference.location).read_text(encoding="utf-8").rstrip("\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise StepFailed(
            f"can't read the secret `{reference}`: {reason}",
            hint=f"put the secret into `{reference.location}`, readable for who runs kubexm",
        ) from error
    if not content:
        hint = f"put the secret into `{reference.location}`"
        raise StepFailed(f"the secret `{reference}` is empty", hint=hint)
    return content
