"""Secrets: what plans, journals and logs hold in place of one, and data that don't show theirs."""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

PROMPT = "prompt"
SCHEMES = ("env", "file", PROMPT)


class SecretRef(msgspec.Struct, frozen=True):
    """A secret by reference, such as `env://TOKEN`, `file:///etc/token` or `prompt://token`."""

    uri: str

    @property
    def scheme(self) -> str:
        return self.uri.partition("://")[0]

    @property
    def location(self) -> str:
        return self.uri.partition("://")[2]

    def __str__(self) -> str:
        return self.uri


class Discreet(msgspec.Struct, frozen=True):
    """Data that show all fields but those with a secret."""

    hidden: ClassVar[frozenset[str]]

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self.__rich_repr__())
        return f"{type(self).__name__}({shown})"

    # Tracebacks in colour ask for this first, and a struct would tell everything.
    def __rich_repr__(self) -> list[tuple[str, Any]]:
        names = (name for name in self.__struct_fields__ if name not in self.hidden)
        return [(name, getattr(self, name)) for name in names]


def is_reference(text: str) -> bool:
    """Whether this text is a reference of a known scheme."""
    scheme, separator, location = text.partition("://")
    return bool(separator and location) and scheme in SCHEMES
