"""Secret values: resolved from their references in memory, and hidden wherever text goes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from kubexm.common.secrets import SCHEMES, SecretRef
from kubexm.errors import StepFailed

HIDDEN = "***"
SHORTEST = 4
"""A shorter secret would hide half of any text, and protects nothing."""


class SecretVault:
    """Resolves references and remembers every value it has seen, to redact it."""

    def __init__(self) -> None:
        self._values: dict[str, str] = {}
        self._hidden: list[str] = []

    def reveal(self, reference: SecretRef) -> str:
        """The value behind a reference; read once per run."""
        if reference.uri not in self._values:
            value = _resolve(reference)
            self._values[reference.uri] = value
            self.conceal(value)
        return self._values[reference.uri]

    def conceal(self, value: Any) -> None:
        """Redact this value from now on; in a list or mapping, every text in it."""
        if isinstance(value, dict):
            for item in value.values():
                self.conceal(item)
        elif isinstance(value, (list, tuple)):
            for item in value:
                self.conceal(item)
        elif isinstance(value, str) and len(value.strip()) >= SHORTEST:
            self._hide(value.strip())

    def _hide(self, text: str) -> None:
        # Output comes line by line, so a secret of several lines is hidden line by line too.
        for part in {text, *(line.strip() for line in text.splitlines())}:
            if len(part) >= SHORTEST and part not in self._hidden:
                self._hidden.append(part)
        self._hidden.sort(key=len, reverse=True)

    def redact(self, text: str) -> str:
        """The text without any known secret."""
        for value in self._hidden:
            if value in text:
                text = text.replace(value, HIDDEN)
        return text


def _resolve(reference: SecretRef) -> str:
    if reference.scheme == "env":
        return _variable(reference.location)
    if reference.scheme == "file":
        return _content(reference)
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
