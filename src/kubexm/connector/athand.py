"""What of a file lies in memory, and is read without waiting for a disk or another machine."""

from __future__ import annotations

import os
from pathlib import Path

_WITHOUT_DISK = ("tmpfs", "ramfs")
_MOUNTS = Path("/proc/self/mountinfo")


class AtHand:
    """Reads an open file as far as that takes no time."""

    def __init__(self, descriptor: int, piece: int) -> None:
        """`piece`: how many bytes are read at most."""
        self._descriptor = descriptor
        self._flags = _flags(descriptor)
        self._piece = memoryview(bytearray(piece))

    def read(self, place: int, count: int) -> bytes:
        """So many bytes from a place on; none unless it is known that all of them are there."""
        if self._flags is None:
            return b""
        try:
            had = os.preadv(self._descriptor, (self._piece[:count],), place, self._flags)
        except OSError:  # it would have to wait, or its file system can't tell
            return b""
        return bytes(self._piece[:count]) if had == count else b""


def _flags(descriptor: int) -> int | None:
    """How to read without waiting; None if there is no way."""
    if _is_memory(os.fstat(descriptor).st_dev):
        return 0
    return getattr(os, "RWF_NOWAIT", None)


def _is_memory(device: int) -> bool:
    """Whether a file system has no disk; such a one can't be told not to wait."""
    number = f"{os.major(device)}:{os.minor(device)}"
    try:
        mounts = _MOUNTS.read_text(errors="replace").splitlines()
    except OSError:
        return False
    found = (line.partition(" - ") for line in mounts)
    kinds = (kind.split()[0] for place, _, kind in found if place.split()[2] == number)
    return next(kinds, "") in _WITHOUT_DISK
