"""The file that holds the key of all secrets: made once, whole, readable by its owner alone."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path

from kubexm.errors import StoreUnusable

SIZE = 32


def read(path: Path) -> bytes | None:
    """The key in this file; None if there is no file."""
    try:
        with path.open("rb") as file:
            exposed = os.fstat(file.fileno()).st_mode & 0o077
            key = file.read(SIZE + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise unusable(path, f"can't be read ({error.strerror})", "check its owner") from error
    if exposed:
        raise unusable(path, "can be read by others", f"take that right away: chmod 600 {path}")
    if len(key) != SIZE:
        raise unusable(path, "is damaged", "restore it from a backup")
    return key


def create(path: Path) -> None:
    """Put a new key into this file, unless another process was faster."""
    draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    try:
        try:
            _write_durably(draft, secrets.token_bytes(SIZE))
            # A link is there whole or not at all, and never replaces what is there.
            with suppress(FileExistsError):
                path.hardlink_to(draft)
        finally:
            draft.unlink(missing_ok=True)
        _sync_directory(path.parent)
    except OSError as error:
        raise unusable(path, f"can't be made ({error.strerror})", "check its directory") from error


def unusable(path: Path, problem: str, hint: str) -> StoreUnusable:
    """What to say of a key file that is of no use."""
    return StoreUnusable(f"the key file {problem}", where=str(path), hint=hint)


def _write_durably(path: Path, content: bytes) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _sync_directory(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
