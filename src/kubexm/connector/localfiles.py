"""Files of this machine: read, written atomically, looked at."""

from __future__ import annotations

import grp
import hashlib
import os
import pwd
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from io import BufferedReader
from pathlib import Path
from stat import S_IMODE, S_ISDIR, S_ISLNK, S_ISREG
from typing import Literal

from kubexm.connector.base import FileStat
from kubexm.errors import KubexmError, StepFailed

Permit = Callable[[], AbstractContextManager[None]]
"""For a moment in which nobody else can get the right to write; raises if we have it no more."""


def read(path: str) -> bytes:
    """The content of a file; `FileNotFoundError` if there is none."""
    with _opened(path) as file:
        return file.read()


def read_piece(path: str, size: int, number: int) -> bytes:
    """One of the pieces of this size that a file consists of."""
    with _opened(path) as file:
        return os.pread(file.fileno(), size, number * size)


def digest(path: str, size: int | None = None) -> str:
    """The sha256 of a file, or of so many bytes at its beginning."""
    with _opened(path) as file:
        if size is None:
            return hashlib.file_digest(file, "sha256").hexdigest()
        found = hashlib.sha256()
        while size and (data := file.read(min(size, 1 << 20))):
            found.update(data)
            size -= len(data)
        return found.hexdigest()


@contextmanager
def _opened(path: str) -> Iterator[BufferedReader]:
    try:
        # A pipe would keep us waiting for whoever writes into it.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            if not S_ISREG(os.fstat(descriptor).st_mode):
                raise StepFailed(f"can't read `{path}`: it is no file")
            yield file
    except FileNotFoundError:
        raise
    except OSError as error:
        raise StepFailed(f"can't read `{path}`: {error.strerror}") from error


def write(
    path: str,
    data: Iterable[bytes],
    mode: int | None,
    owner: str | None,
    group: str | None,
    permit: Permit = nullcontext,
) -> None:
    """Put a file in place whole or not at all, its content in pieces."""
    place = Path(path)
    # The name is the same each time, so that a crash in between leaves nothing behind for good.
    # So whoever may not write any more must not touch it: it may be that of a later run.
    temporary = place.with_name(f".{place.name}.kubexm")
    try:
        _write_beside(temporary, data, _wanted(path, mode, owner, group), permit)
        with permit():
            temporary.replace(place)
    except (OSError, LookupError, KubexmError) as error:
        with suppress(KubexmError, OSError), permit():  # a read-only file system keeps it
            temporary.unlink(missing_ok=True)
        if isinstance(error, KubexmError):
            raise
        reason = error.strerror if isinstance(error, OSError) else error
        raise StepFailed(f"can't write `{path}`: {reason}") from error


def _wanted(
    path: str, mode: int | None, owner: str | None, group: str | None
) -> tuple[int, int, int]:
    """Mode, user id and group id of the new file; -1 is who we are."""
    kept_mode, uid, gid = 0o644, -1, -1
    with suppress(FileNotFoundError):
        found = os.lstat(path)
        if S_ISREG(found.st_mode):
            kept_mode, uid, gid = S_IMODE(found.st_mode), found.st_uid, found.st_gid
    if owner is not None:
        uid = int(owner) if owner.isdecimal() else pwd.getpwnam(owner).pw_uid
    if group is not None:
        gid = int(group) if group.isdecimal() else grp.getgrnam(group).gr_gid
    return kept_mode if mode is None else mode, uid, gid


def _write_beside(
    temporary: Path, data: Iterable[bytes], wanted: tuple[int, int, int], permit: Permit
) -> None:
    mode, uid, gid = wanted
    with permit():
        temporary.unlink(missing_ok=True)
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.writelines(data)
        file.flush()
        # Owner first: a change of owner takes away set-user-id bits.
        os.fchown(descriptor, uid, gid)
        os.fchmod(descriptor, mode)
        os.fsync(descriptor)


def stat(path: str) -> FileStat | None:
    """What is at a path; links are not followed."""
    try:
        found = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise StepFailed(f"can't look at `{path}`: {error.strerror}") from error
    return FileStat(
        kind=_kind(found.st_mode),
        mode=S_IMODE(found.st_mode),
        owner=_name(lambda: pwd.getpwuid(found.st_uid).pw_name, found.st_uid),
        group=_name(lambda: grp.getgrgid(found.st_gid).gr_name, found.st_gid),
        size=found.st_size,
        uid=found.st_uid,
        gid=found.st_gid,
    )


def _kind(mode: int) -> Literal["file", "directory", "link", "other"]:
    if S_ISREG(mode):
        return "file"
    if S_ISDIR(mode):
        return "directory"
    return "link" if S_ISLNK(mode) else "other"


def _name(lookup: Callable[[], str], number: int) -> str:
    try:
        return lookup()
    except KeyError:
        return str(number)
