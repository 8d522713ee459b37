"""Ranges in the names and addresses of hosts: `node[01:20]` stands for twenty."""

from __future__ import annotations

import ipaddress
import itertools
import math
import re
from collections.abc import Iterator

import msgspec

MAX_HOSTS = 10_000
_BRACKETS = re.compile(r"\[([^\[\]]*)\]")
_NUMBERS = re.compile(r"([0-9]{1,18}):([0-9]{1,18})")
_LETTERS = re.compile(r"([a-z]):([a-z])|([A-Z]):([A-Z])")
_DASH = re.compile(r"([0-9]+|[a-zA-Z]) *- *([0-9]+|[a-zA-Z])")
_BOTH_ENDS = "write both ends, such as `[01:20]` or `[a:f]`"


class BadRange(ValueError):
    """Brackets that hold no range; `hint` says what to write."""

    def __init__(self, message: str, hint: str = _BOTH_ENDS) -> None:
        super().__init__(message)
        self.hint = hint


class Range(msgspec.Struct, frozen=True):
    """Numbers or letters from one to another, both included."""

    first: int
    last: int
    width: int = 0
    """How many digits a number has at least; zero stands for letters."""

    @property
    def size(self) -> int:
        return self.last - self.first + 1

    def members(self) -> Iterator[str]:
        return map(self.written, range(self.first, self.last + 1))

    def written(self, number: int) -> str:
        """One of them as it stands in the text."""
        return f"{number:0{self.width}d}" if self.width else chr(number)


class Pattern(msgspec.Struct, frozen=True):
    """A text, in parts, with ranges between them."""

    parts: tuple[str | Range, ...]

    @property
    def has_ranges(self) -> bool:
        return any(isinstance(part, Range) for part in self.parts)

    @property
    def size(self) -> int:
        """How many texts it stands for."""
        return math.prod(part.size for part in self.parts if isinstance(part, Range))

    def members(self) -> Iterator[str]:
        """All combinations; the last range goes fastest."""
        parts = ([part] if isinstance(part, str) else [*part.members()] for part in self.parts)
        return map("".join, itertools.product(*parts))

    @property
    def first(self) -> str:
        """The first of its texts; no other has more zeros in front of a number."""
        return "".join(
            part if isinstance(part, str) else part.written(part.first) for part in self.parts
        )

    @property
    def last(self) -> str:
        """The last of its texts; no other is longer."""
        return "".join(
            part if isinstance(part, str) else part.written(part.last) for part in self.parts
        )


def parse(text: str) -> Pattern:
    """The ranges of a text and what stands around them; `BadRange` if one can't be read."""
    if "[" not in text and "]" not in text:
        return Pattern((text,))
    parts: list[str | Range] = []
    end = 0
    for found in _BRACKETS.finditer(text):
        if _is_address(found[1]):
            continue
        parts += [text[end : found.start()], _range(found[0], found[1])]
        end = found.end()
    parts.append(text[end:])
    around = "".join(part for part in parts if isinstance(part, str))
    if around.count("[") != around.count("]"):
        raise BadRange(f"found `{text[:40]}`, in which a bracket has no partner")
    return Pattern(tuple(part for part in parts if part != ""))


def _is_address(text: str) -> bool:
    """Whether this is an IPv6 address, which is written in brackets too."""
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return True


def _range(written: str, inner: str) -> Range:
    if found := _NUMBERS.fullmatch(inner):
        return _numbers(found[1], found[2])
    if found := _LETTERS.fullmatch(inner):
        first, last = (text for text in found.groups() if text)
        _goes_up(first, last, ord(first), ord(last))
        return Range(ord(first), ord(last))
    hint = _BOTH_ENDS
    if found := _DASH.fullmatch(inner):
        hint = f"write both ends with a colon between them: `[{found[1]}:{found[2]}]`"
    raise BadRange(f"found `{written[:40]}`, want a range of numbers or of letters", hint)


def _numbers(first: str, last: str) -> Range:
    _goes_up(first, last, int(first), int(last))
    # Of `[1:020]` nobody knows how many digits are meant.
    if last.startswith("0") and len(last) > len(first):
        hint = f"write `[{first.zfill(len(last))}:{last}]`, or leave the zeros out of both"
        raise BadRange(f"found `[{first}:{last}]`, want the zeros in front of both ends", hint)
    return Range(int(first), int(last), len(first) if first.startswith("0") else 1)


def _goes_up(first: str, last: str, low: int, high: int) -> None:
    if low > high:
        message = f"found `[{first}:{last}]`, want a range that goes up"
        raise BadRange(message, f"write `[{last}:{first}]`")
