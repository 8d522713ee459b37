"""Locks: catalogs that hold fast what was fetched, so that it is the same next time.

A lock is laid over the catalog as any other catalog of a user is.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby, pairwise

import msgspec

from kubexm.errors import InvalidInput, Problem
from kubexm.resource.entries import FileArch
from kubexm.resource.reading import quoted, written

_HEAD = """\
# The files that were fetched. Given as a catalog, no other content of them is accepted again.
# Images and charts are not in it: a bundle holds them fast.
"""


class Locked(msgspec.Struct, frozen=True, order=True):
    """A file that was fetched, and what it is to be from now on."""

    component: str
    version: str
    name: str
    arch: FileArch
    sha256: str


def text(fetched: Iterable[Locked]) -> str:
    """The lock as TOML, the same for the same files in whatever order they came."""
    found = sorted(set(fetched))
    _refuse_two(found)
    tables = groupby(found, key=lambda each: (each.component, each.version))
    return _HEAD + "".join(_table(*key, list(files)) for key, files in tables)


def _refuse_two(found: list[Locked]) -> None:
    problems = [
        Problem(f"`{one.component}` `{one.version}`, `{one.name}` for {one.arch}")
        for one, other in pairwise(found)
        if (one.component, one.version, one.name, one.arch)
        == (other.component, other.version, other.name, other.arch)
    ]
    if problems:
        message = "the same file was fetched with different contents"
        raise InvalidInput(message, problems=problems, hint="find out which is right")


def _table(component: str, version: str, found: list[Locked]) -> str:
    head = written(("components", component, "versions", version, "sha256"))
    lines = [f'{quoted(each.name)}.{each.arch} = "{each.sha256}"\n' for each in found]
    return f"\n[{head}]\n{''.join(lines)}"
