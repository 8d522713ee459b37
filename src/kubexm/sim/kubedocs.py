"""Documents that Kubernetes reads: YAML or JSON, one after the other in a file."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import msgspec

from kubexm.document import foreign, writing
from kubexm.errors import InvalidFile

Object = dict[str, Any]
"""A document, or an object of the API."""
_START = re.compile(r"^---(?=\s|$)", re.MULTILINE)


class Unreadable(Exception):
    """What can't be read, in the words of the program that tried."""


@lru_cache(maxsize=1024)
def documents(data: bytes) -> tuple[Object, ...]:
    """All documents of a text, those that hold nothing left out; nobody may change them."""
    # Thousands of hosts have the same files, and are asked for them again and again.
    parts = _START.split(data.decode(errors="replace"))
    found = [_read(part) for part in parts if _says_something(part)]
    return tuple(one for whole in found for one in _listed(whole))


def document(data: bytes) -> Object:
    """The only document of a text."""
    found = documents(data)
    if len(found) != 1:
        raise Unreadable(f"found {len(found)} documents, want one")
    return found[0]


def text(value: object) -> str:
    """A document as YAML."""
    return writing.dumped(value)


def part(value: object, *path: str) -> Any:
    """What lies at a path in a document; None where something on the way is missing."""
    for name in path:
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value


def section(value: object, *path: str) -> Object:
    """The mapping at a path in a document; empty if there is none."""
    found = part(value, *path)
    return found if isinstance(found, dict) else {}


def entries(value: object, *path: str) -> list[Any]:
    """The list at a path in a document; empty if there is none."""
    found = part(value, *path)
    return found if isinstance(found, list) else []


def _read(text: str) -> Object:
    found = _of_json(text) if text.lstrip()[:1] == "{" else _of_yaml(text)
    if not isinstance(found, dict):
        raise Unreadable("error converting YAML to JSON: want a mapping at the top")
    return found


def _of_json(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return _of_yaml(text)  # a mapping of YAML may begin like that too


def _listed(found: Object) -> list[Object]:
    """The objects of a document that is a list of them."""
    return entries(found, "items") if found.get("kind") == "List" else [found]


def _of_yaml(text: str) -> Any:
    try:
        found = foreign.parse(text, "yaml")
    except InvalidFile as error:
        raise Unreadable(f"error converting YAML to JSON: {error.problems[0]}") from None
    if found.notes:
        raise Unreadable(f"error converting YAML to JSON: {found.notes[0].problem}")
    return found.data


def _says_something(part: str) -> bool:
    return any(line.strip() and not line.lstrip().startswith("#") for line in part.split("\n"))
