"""What is on its way into the store: a file that one process at a time writes and hashes."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import IO

import msgspec

from kubexm.resource.disk import explained, write_at

PIECE = 1 << 20
"""Bytes that are written at once."""
SUFFIX = ".from"
"""Of the file beside a part that says where it comes from."""
_STRETCH = 16 << 20
"""Bytes that are read again at once of what an earlier process left."""


class Origin(msgspec.Struct, frozen=True):
    """By what a server knows again what it sent, and how long all of it is."""

    validator: str | None = None
    """A strong ETag or a date, as `If-Range` wants it."""
    total: int | None = None


class Part:
    """One file that grows; what is in it counts as far as it is hashed."""

    def __init__(self, path: Path, handle: int, *, lasting: bool) -> None:
        """`handle`: open and held; `lasting`: it is left for later if it does not get whole."""
        self.path = path
        self.size = 0
        self.origin = Origin()
        self._handle = handle
        self._lasting = lasting
        self._hash = sha256()

    @property
    def digest(self) -> str:
        return self._hash.hexdigest()

    def take_up(self) -> bool:
        """Read on in what an earlier process left; False if there is no more of it."""
        with explained(self.path):
            if not self.size:
                self.origin = _origin(beside(self.path))
            if self.origin.validator is None:  # nobody could say whether it is the same
                self.begin(Origin())
                return False
            data = os.pread(self._handle, _STRETCH, self.size)
        self._hash.update(data)
        self.size += len(data)
        return bool(data)

    def begin(self, origin: Origin) -> None:
        """Throw away what is there and start over."""
        with explained(self.path):
            os.ftruncate(self._handle, 0)
            if self._lasting:
                # If it is cut off it can't be read, and the next one starts over too.
                beside(self.path).write_bytes(msgspec.json.encode(origin))
        self.size, self.origin, self._hash = 0, origin, sha256()

    def write(self, data: bytes) -> None:
        with explained(self.path):
            write_at(self._handle, data, self.size)
        self._hash.update(data)
        self.size += len(data)

    def copy(self, file: IO[bytes]) -> bool:
        """Take over the next piece of a file; False at its end."""
        data = file.read(PIECE)
        if data:
            self.write(data)
        return bool(data)

    def place(self, target: Path) -> None:
        """Make it durable and give it its place, where nobody writes to it any more."""
        with explained(target):
            os.fsync(self._handle)
            self.path.replace(target)
            beside(self.path).unlink(missing_ok=True)
            target.chmod(0o444)

    def discard(self) -> None:
        """Let go of it, and leave nothing."""
        self._lasting = False
        self.close()

    def close(self) -> None:
        """Let go of it; what is there stays if somebody could go on with it."""
        if self._handle < 0:
            return
        # A full disk is told by what wrote to it.
        with suppress(OSError):
            if is_at(self._handle, self.path) and not self._is_of_use():
                self.path.unlink(missing_ok=True)
                beside(self.path).unlink(missing_ok=True)
        os.close(self._handle)
        self._handle = -1

    def _is_of_use(self) -> bool:
        """By what lies on the disk: whoever was cancelled early has not looked yet."""
        if not self._lasting or not os.fstat(self._handle).st_size:
            return False
        return _origin(beside(self.path)).validator is not None


def hold(handle: int) -> bool:
    """Become the one who writes to an open part; False if another process is."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_at(handle: int, path: Path) -> bool:
    """Whether an open file still lies at this path: another process may have moved it."""
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False


def beside(path: Path) -> Path:
    """Where it is kept from where a part comes."""
    return path.with_name(f"{path.name}{SUFFIX}")


def _origin(path: Path) -> Origin:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Origin)
    except (FileNotFoundError, msgspec.MsgspecError):
        return Origin()
