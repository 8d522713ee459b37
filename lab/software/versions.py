"""Versions as projects write them: `v1.36.3`, `3.0.11`; compared, and the nearest that there is."""

from __future__ import annotations

import re
from collections.abc import Iterable

_RELEASE = re.compile(r"v?(\d+)\.(\d+)(?:\.(\d+))?")
_IN_DEBIAN = re.compile(r"(?:\d+:)?(\d+(?:\.\d+)*)")


def numbers(version: str) -> tuple[int, int, int]:
    """To compare by; only of a release."""
    found = _RELEASE.fullmatch(version)
    if found is None:
        raise ValueError(f"`{version}` is no release")
    major, minor, patch = found.groups(default="0")
    return int(major), int(minor), int(patch)


def releases(versions: Iterable[str]) -> list[str]:
    """Those that are no candidates or earlier, the oldest first."""
    return sorted(filter(_RELEASE.fullmatch, versions), key=numbers)


def is_whole(version: str) -> bool:
    """Whether it is one release, and no line of them."""
    found = _RELEASE.fullmatch(version)
    return found is not None and found[3] is not None


def bare(version: str) -> str:
    return version.removeprefix("v")


def line(version: str) -> str:
    """The release line: `v1.36`."""
    major, minor, _ = numbers(version)
    return f"v{major}.{minor}"


def of_package(version: str) -> str:
    """What a package of Debian packs: `1:1.37.0-6+b9` is `1.37.0`."""
    found = _IN_DEBIAN.match(version)
    if found is None:
        raise ValueError(f"`{version}` is no version of a package")
    return found[1]


def nearest(wanted: str, there: Iterable[str]) -> str:
    """Of the same release line if there is one; of two that are equally near the newer."""
    place = numbers(wanted)

    def distance(version: str) -> tuple[list[int], bool]:
        own = numbers(version)
        return [abs(one - other) for one, other in zip(own, place, strict=True)], own < place

    return min(there, key=distance)
