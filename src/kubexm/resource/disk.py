"""Files that are on the disk whole or not at all, and what to say when the disk refuses."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kubexm.errors import StoreUnusable

_ROOM = "free some space there; what is in the store is intact"
_RIGHT = "make the directory writable for this user, or use another one"
_MEANING = {
    errno.ENOSPC: ("the disk is full", _ROOM),
    errno.EDQUOT: ("the quota of this user is used up", _ROOM),
    errno.EFBIG: ("the file is too large for its file system", "use another file system"),
    errno.EROFS: ("the file system is read-only", _RIGHT),
    errno.EACCES: ("this user may not do that", _RIGHT),
    errno.EPERM: ("this user may not do that", _RIGHT),
    errno.ENOTDIR: ("a file is where a directory should be", "move it away"),
    errno.EEXIST: ("a file is where a directory should be", "move it away"),
}


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn errors of the system into `StoreUnusable`, with the path and a remedy."""
    try:
        yield
    except OSError as error:
        usual = (error.strerror or str(error)).lower(), "look at the disk and the system log"
        meaning, hint = _MEANING.get(error.errno or 0, usual)
        raise StoreUnusable(meaning, where=str(error.filename or path), hint=hint) from error


def write_whole(path: Path, content: bytes, *, mode: int = 0o644) -> None:
    """Put a small file there, durably; who reads meanwhile sees the old one or the new one."""
    draft = path.with_name(draft_name())
    try:
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    sync_directory(path.parent)


def draft_name() -> str:
    """A name for a file that is not whole yet; nothing that is whole begins with a dot."""
    return f".{secrets.token_hex(8)}"


def sync_directory(path: Path) -> None:
    """Make durable which files are in it."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_at(handle: int, data: bytes, place: int) -> None:
    """Write all of it; one call may write less, when the disk is nearly full."""
    view = memoryview(data)
    while view:
        written = os.pwrite(handle, view, place)
        view, place = view[written:], place + written
