"""What speaks SSH is loaded without other programs.

asyncssh asks, while it is loaded, for two libraries that it can do without, and Python looks for
each by starting `ldconfig`, a compiler and a linker: as long as all of cryptography takes to load.
The list that `ldconfig` would print is read here instead, where there is one.
"""

from __future__ import annotations

import ctypes.util
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

LISTED = Path("/etc/ld.so.cache")
_Find = Callable[[str], str | None]


@contextmanager
def lightly() -> Iterator[None]:
    """Meanwhile libraries are looked for in the list alone."""
    place: Any = ctypes.util
    usual = place.find_library
    place.find_library = _listed_or(usual)
    try:
        yield
    finally:
        place.find_library = usual


def _listed_or(usual: _Find) -> _Find:
    try:
        listed = LISTED.read_bytes()
    except OSError:
        return usual
    return lambda name: next(filter(_loads, _files(listed, name)), None)


def _files(listed: bytes, name: str) -> Iterator[str]:
    """The files of a library by the list, where names end with a zero and may end a path."""
    beginning = f"lib{name}.so".encode()
    at = listed.find(beginning)
    while at > 0:
        file = listed[at : listed.find(b"\0", at)]
        if listed[at - 1] in b"\0/" and not file.removeprefix(beginning).strip(b".0123456789"):
            yield file.decode()
        at = listed.find(beginning, at + 1)


def _loads(file: str) -> bool:
    """Whether a library is one for us: the list has those of other architectures too."""
    try:
        ctypes.CDLL(file)
    except OSError:
        return False
    return True
