"""Versions as projects write them, their order, and ranges of them."""

from __future__ import annotations

import re
from functools import lru_cache

import msgspec

_VERSION = re.compile(r"v?([0-9]{1,9}(?:\.[0-9]{1,9}){0,3})(?:[-+]([0-9A-Za-z.+_-]+))?")
_BOUND = re.compile(r"(>=|<=|<|>|=)\s*(\S+)")
_BEFORE = ("alpha", "beta", "rc", "pre")
_PARTS = re.compile(r"[0-9]+|[A-Za-z]+")


class BadVersion(ValueError):
    """A text that is no version, or no range of them."""


class Version(msgspec.Struct, frozen=True, order=True):
    """The place of a version among others; `1.36` and `v1.36.0` have the same."""

    numbers: tuple[int, ...]
    is_final: bool
    """A candidate stands before the release; `-0` and `-flannel1` come after it."""
    rest: tuple[tuple[int, str], ...]

    @property
    def minor(self) -> str:
        """The release line of a Kubernetes version: `v1.36`."""
        return f"v{self.numbers[0]}.{self.numbers[1]}"


class Range(msgspec.Struct, frozen=True):
    """Versions between bounds, such as `>=2.1.5,<2.2`; every bound holds."""

    bounds: tuple[tuple[str, Version], ...]

    def __contains__(self, version: Version) -> bool:
        return all(_holds(version, sign, bound) for sign, bound in self.bounds)


@lru_cache(maxsize=4096)
def parse(text: str) -> Version:
    """The place of a version among others; `BadVersion` if it is none."""
    found = _VERSION.fullmatch(text)
    if found is None:
        raise BadVersion(f"found `{text[:40]}`, want a version such as `v1.36.3`")
    numbers = [int(number) for number in found[1].split(".")]
    rest = found[2] or ""
    return Version(
        numbers=tuple(numbers + [0] * (4 - len(numbers))),
        is_final=not rest.startswith(_BEFORE),
        rest=tuple(map(_part, _PARTS.findall(rest))),
    )


@lru_cache(maxsize=1024)
def parse_range(text: str) -> Range:
    """A range as it is written in a catalog; `BadVersion` if it can't be read."""
    return Range(tuple(_bound(part.strip()) for part in text.split(",")))


def bare(text: str) -> str:
    """A version without the `v` in front."""
    return text.removeprefix("v")


def _bound(text: str) -> tuple[str, Version]:
    found = _BOUND.fullmatch(text)
    if found is None:
        raise BadVersion(f"found `{text[:40]}`, want bounds such as `>=2.1.5,<2.2`")
    return found[1], parse(found[2])


def _part(text: str) -> tuple[int, str]:
    """Numbers by their value, before words: `flannel10` comes after `flannel9`."""
    return (int(text), "") if text.isdecimal() else (-1, text)


def _holds(version: Version, sign: str, bound: Version) -> bool:
    if sign == "=":
        return version == bound
    if sign.startswith(">"):
        return version > bound or (sign == ">=" and version == bound)
    return version < bound or (sign == "<=" and version == bound)
