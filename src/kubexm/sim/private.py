"""How a world keeps its files: whole or not at all, and read by its owner alone.

Hosts hold real secrets, such as the key of an etcd that the cluster file names.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from stat import S_IMODE
from typing import BinaryIO

_OWN_DIRECTORY, _OWN_FILE = 0o700, 0o600
_OTHERS = 0o077


@contextmanager
def written(path: Path) -> Iterator[BinaryIO]:
    """What is written here is in place once that has ended well."""
    draft = path.with_suffix(f".{os.getpid()}")
    try:
        # Made so, not changed: who has opened it in between would read what comes later.
        with open(draft, "wb", opener=_own_file) as file:
            yield file
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def made(path: Path) -> None:
    """Have a directory that nobody else looks into, also one that is there."""
    path.mkdir(_OWN_DIRECTORY, parents=True, exist_ok=True)
    closed(path)


def closed(path: Path) -> None:
    """Take from others what they may do in a directory that is ours."""
    mode = S_IMODE(path.stat().st_mode)
    if mode & _OTHERS:
        with suppress(OSError):  # of somebody else, who decides; or on a read-only disk
            path.chmod(mode & ~_OTHERS)


def _own_file(path: str, flags: int) -> int:
    return os.open(path, flags, _OWN_FILE)
