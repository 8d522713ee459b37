"""Command lines that are plain enough to be read without the parser, which takes long to load.

They are those of commands that call hosts, where the time until then counts.

Whatever is unusual or wrong, or asks for help, is left to the parser. What is read here means the
same to it; a test holds the two against each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

_SWITCHES = {
    "--check": "check",
    "--dry-run": "check",
    "--simulate": "simulate",
    "--require-all-hosts": "require_all_hosts",
    "--allow-literal-secrets": "allow_literal_secrets",
}
_LISTS = {
    "--set": "set_",
    "--only": "only",
    "--from": "from_",
    "--skip": "skip",
    "--hosts": "hosts",
}
_VALUES: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "-f": ("file", Path),
    "--file": ("file", Path),
    "-o": ("output", {"text": "text", "json": "json", "yaml": "yaml"}.__getitem__),
    "--output": ("output", {"text": "text", "json": "json", "yaml": "yaml"}.__getitem__),
}


_COMMANDS: Mapping[tuple[str, ...], frozenset[str]] = {
    ("run",): frozenset(
        (*_SWITCHES.values(), *_LISTS.values(), *(name for name, _ in _VALUES.values()))
    ),
    ("hosts", "check"): frozenset(
        ("file", "hosts", "simulate", "set_", "allow_literal_secrets", "output")
    ),
}
"""The options of each command, by the names of its parameters."""


class Plain(msgspec.Struct, frozen=True):
    """A command, and what it is told to do."""

    command: tuple[str, ...]
    options: Mapping[str, Any]


def read(arguments: Sequence[str]) -> Plain | None:
    """What a plain command line says; None if it is another, or not plain."""
    for command, known in _COMMANDS.items():
        if tuple(arguments[: len(command)]) == command:
            options = _options(arguments[len(command) :])
            is_plain = "file" in options and options.keys() <= known
            return Plain(command, options) if is_plain else None
    return None


def _options(arguments: Sequence[str]) -> Mapping[str, Any]:
    """Options by the names of their parameters; none if one of them is not plain."""
    found: dict[str, Any] = {}
    try:
        _take(iter(arguments), found)
    except (LookupError, StopIteration):
        return {}
    return found


def _take(words: Iterator[str], found: dict[str, Any]) -> None:
    """Read one word after the other; anything unknown or repeated is a `LookupError`."""
    for word in words:
        if word in _LISTS:
            name = _LISTS[word]
            found[name] = (*found.get(name, ()), _plain(next(words)))
            continue
        name, value = _single(word, words)
        if name in found:
            raise LookupError(word)
        found[name] = value


def _single(word: str, words: Iterator[str]) -> tuple[str, Any]:
    if word in _SWITCHES:
        return _SWITCHES[word], True
    name, convert = _VALUES[word]
    return name, convert(_plain(next(words)))


def _plain(word: str) -> str:
    if word[:1] in ("", "-", "[", "{"):
        raise LookupError(word)
    return word
