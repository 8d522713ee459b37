"""A host whose disk is full, at no cost for the machine's own.

The file that takes the space has no contents, so the image of the disk does not grow, and it
lies where the host does not see it.
"""

from __future__ import annotations

import os
from pathlib import Path

from lab.site import Home

_BIGGEST = 1024**3
_BLOCK = 4096


def fill(home: Home) -> None:
    """Leave no free block."""
    with _filler(home).open("ab") as file:
        size, taken = _BIGGEST, file.tell()
        while size >= _BLOCK:
            if _takes(file.fileno(), taken, size):
                taken += size
            else:
                size //= 2


def unfill(home: Home) -> None:
    _filler(home).unlink(missing_ok=True)


def _takes(file: int, start: int, size: int) -> bool:
    try:
        os.posix_fallocate(file, start, size)
    except OSError:
        return False
    return True


def _filler(home: Home) -> Path:
    return home.disk / "filler"
