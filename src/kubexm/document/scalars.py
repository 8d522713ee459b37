"""What an unquoted word of a file means: the core schema of YAML 1.2 and nothing more.

`no`, `on` and `22:22` are text here. What would surprise in silence, such as `0644`, is refused.
"""

from __future__ import annotations

import math
import re

Scalar = str | int | float | bool | None

_WORDS: dict[str, Scalar] = {
    "": None,
    "~": None,
    "null": None,
    "Null": None,
    "NULL": None,
    "true": True,
    "True": True,
    "TRUE": True,
    "false": False,
    "False": False,
    "FALSE": False,
}
_NUMERIC = frozenset("0123456789+-.")
_INTEGER = re.compile(r"[-+]?[0-9]+")
_OTHER_BASE = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_LEADING_ZERO = re.compile(r"[-+]?0[0-9]+")
_LARGEST = 2**63 - 1


class Ambiguous(ValueError):
    """A word that looks like a number and that is not the number it looks like."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


def resolve(word: str) -> Scalar:
    """The value of a word that was written without quotes."""
    if word in _WORDS:
        return _WORDS[word]
    return _number(word) if word[0] in _NUMERIC else word


def based(word: str, base: int) -> int:
    """A number in another base; of any that the word itself names, if it is 0."""
    return _bounded(word, int(word, base) if len(word) < 80 else None)


def _number(word: str) -> Scalar:
    if _LEADING_ZERO.fullmatch(word):
        raise Ambiguous(
            f"`{_short(word)}` is a number with a leading zero, which YAML reads as decimal",
            f'write "{_short(word)}", in quotes',
        )
    if _INTEGER.fullmatch(word):
        return _bounded(word, int(word) if len(word) < 25 else None)
    if _OTHER_BASE.fullmatch(word):
        return based(word, 0)
    if _FLOAT.fullmatch(word):
        return _finite(word)
    if _NOT_FINITE.fullmatch(word):
        raise _too_large(word)
    return word


def _bounded(word: str, number: int | None) -> int:
    if number is None or abs(number) > _LARGEST:
        raise _too_large(word)
    return number


def _finite(word: str) -> float:
    number = float(word)
    if not math.isfinite(number):
        raise _too_large(word)
    return number


def _too_large(word: str) -> Ambiguous:
    return Ambiguous(
        f"`{_short(word)}` is a number that can't be kept exactly",
        "quote it if it is meant as text",
    )


def _short(word: str) -> str:
    return word if len(word) <= 20 else f"{word[:20]}…"
