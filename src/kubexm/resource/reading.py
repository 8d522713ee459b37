"""Catalog files: read, laid over each other, and blamed for what is wrong in them.

What only the whole can tell, such as a default that is no known version, is blamed on the last
file that says something there.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from kubexm.errors import InvalidFile, Problem

Data = dict[str, Any]
KeyPath = tuple[str | int, ...]
Source = tuple[str, Data]
"""The name of a file, and what it says."""
_BARE = re.compile(r"[A-Za-z0-9_-]+")


class Mistake(msgspec.Struct, frozen=True):
    """Something wrong at the path of a key."""

    path: KeyPath
    message: str
    hint: str = ""


def read(path: Path) -> Data:
    """What a file says, which is TOML."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        message = f"the catalog can't be read: {reason}"
        raise InvalidFile(message, where=str(path), hint="check its path and mode") from error
    except tomllib.TOMLDecodeError as error:
        message = f"the catalog is not TOML: {error}"
        raise InvalidFile(message, where=str(path), hint="correct that line") from error
    except RecursionError as error:
        message = "the catalog can't be read: its lists and tables are too deep in each other"
        raise InvalidFile(message, where=str(path), hint="no catalog needs that") from error


def overlaid(below: Data, above: Data) -> Data:
    """Two catalogs as one: tables are joined key by key, of anything else the upper one holds."""
    joined = dict(below)
    for key, value in above.items():
        lower: Any = joined.get(key)
        both = isinstance(lower, dict) and isinstance(value, dict)
        joined[key] = overlaid(lower, value) if both else value
    return joined


def problems(found: Sequence[Mistake], sources: Sequence[Source]) -> list[Problem]:
    """Mistakes with the file that they are blamed on."""
    return [
        Problem(
            f"{written(mistake.path)}: {mistake.message}" if mistake.path else mistake.message,
            where=_blamed(mistake.path, sources),
            hint=mistake.hint,
        )
        for mistake in found
    ]


def written(path: KeyPath) -> str:
    """The path of a key as it is written in TOML: `components.etcd.versions."v3.6.14"`."""
    parts = (_index(part) if isinstance(part, int) else f".{quoted(part)}" for part in path)
    return "".join(parts).removeprefix(".")


def quoted(key: str) -> str:
    """A key, in quotes if TOML wants them."""
    if _BARE.fullmatch(key):
        return key
    return msgspec.json.encode(key).decode()


def _index(part: int) -> str:
    return f"[{part}]"


def _blamed(path: KeyPath, sources: Sequence[Source]) -> str:
    """The last file that reaches furthest along the path."""
    return max(enumerate(sources), key=lambda each: (_reach(path, each[1][1]), each[0]))[1][0]


def _reach(path: KeyPath, data: Any) -> int:
    for depth, part in enumerate(path):
        if not isinstance(data, dict) or part not in data:
            return depth
        data = data[part]
    return len(path)
