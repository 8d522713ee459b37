"""Runs whose command line is plain enough to be read without the parser, which takes long to load.

Whatever is unusual or wrong, or asks for help, is left to the parser. What is read here means the
same to it; a test holds the two against each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

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


def read(arguments: Sequence[str]) -> dict[str, Any] | None:
    """What `kubexm run` is told to do; None if this is another command, or not plain."""
    if not arguments or arguments[0] != "run":
        return None
    found: dict[str, Any] = {}
    try:
        _take(iter(arguments[1:]), found)
    except (LookupError, StopIteration):
        return None
    return found if "file" in found else None


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
