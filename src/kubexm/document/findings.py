"""Something wrong in a file, and how values and places are told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from kubexm.document.source import DataPath


class Finding(msgspec.Struct, frozen=True):
    """Something wrong at a path; `at_key` if it is the key there and not its value."""

    path: DataPath
    message: str
    hint: str = ""
    at_key: bool = False
    excerpt: str = ""
    """The part of a text of several lines that it is about."""
    of_host: bool = False
    """Whether hosts differ in it: they are named, even if it is all of them."""

    def under(self, *path: str | int) -> Finding:
        """The same, seen from further out."""
        return replace(self, path=(*path, *self.path))


def written_path(path: Sequence[str | int]) -> str:
    """A path as people write it: `spec.modules[0].name`."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".")


def shown(value: Any) -> str:
    """A found value as a reader knows it from the file."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, str):
        # In full or not at all: it may be the value of a secret, of which a piece is not hidden.
        return f"the text `{value}`" if len(value) <= 40 else f"a text of {len(value)} characters"
    if isinstance(value, int | float):
        return f"the number {value}"
    return "a list" if isinstance(value, list | tuple) else "a mapping"


def plain_number(bound: float) -> str:
    """A bound as people write it: `10`, not `10.0`."""
    return str(int(bound) if bound == int(bound) else bound)
