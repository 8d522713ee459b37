"""Files and directories of this machine, as planning reads them."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from kubexm.common.digests import Digests

SOURCE = "source"
SHORT = 64 * 1024
"""A file of a `file` step up to this size becomes part of the graph."""
MAX_BYTES = 4 * 1024 * 1024
"""The most that any file may bring into a graph."""
MAX_FILES = 10_000
_BESIDE = "a relative path starts beside the pipeline file"


class BadFile(ValueError):
    """A file that can't become part of a graph; `hint` says what to do."""

    def __init__(self, message: str, hint: str = "", key: str = SOURCE) -> None:
        """`key`: the parameter that names it."""
        super().__init__(message)
        self.hint = hint
        self.key = key


def size(path: Path, name: str) -> int:
    """How large a file is that can be read."""
    try:
        if not path.is_file():
            raise BadFile(f"there is no file `{name}`", _BESIDE)
        with path.open("rb") as stream:
            return os.fstat(stream.fileno()).st_size
    except OSError as error:
        raise BadFile(f"can't read `{name}`: {error.strerror}", _BESIDE) from error


def content(path: Path, name: str) -> bytes:
    """All that a file holds that is not too large for a graph."""
    if size(path, name) > MAX_BYTES:
        hint = "let the host fetch it with a command"
        raise BadFile(f"`{name}` is larger than {MAX_BYTES // 2**20} MiB", hint)
    return path.read_bytes()


def digest(path: Path, name: str, digests: Digests | None = None) -> str:
    """The sha256 of a file."""
    try:
        with path.open("rb") as stream:
            return (digests or Digests()).of(stream.fileno())
    except OSError as error:
        raise BadFile(f"can't read `{name}`: {error.strerror}", _BESIDE) from error


def listed(
    path: Path, name: str, digests: Digests | None = None
) -> tuple[dict[str, str], dict[str, str]]:
    """Mode and digest of each file below a directory, and the mode of each directory."""
    if not path.is_dir():
        raise BadFile(f"there is no directory `{name}`", _BESIDE)
    files: dict[str, str] = {}
    directories: dict[str, str] = {}
    for below, found in _walked(path, name):
        mode, inside = f"{stat.S_IMODE(found.st_mode) & 0o777:04o}", f"{name}/{below}"
        if stat.S_ISDIR(found.st_mode):
            directories[below] = mode
        elif not stat.S_ISREG(found.st_mode):
            hint = "put what it stands for in its place, or make it with a `command` step"
            raise BadFile(f"`{inside}` is neither a file nor a directory", hint)
        elif len(files) == MAX_FILES:
            hint = "send them as an archive, by a `file` step and an `archive` step"
            raise BadFile(f"`{name}` has more than {MAX_FILES:,} files", hint)
        else:
            files[below] = f"{mode} {digest(path / below, inside, digests)}"
    return files, directories


def _walked(path: Path, name: str) -> Iterator[tuple[str, os.stat_result]]:
    """What is in a directory, by its name there, in an order that is always the same."""
    try:
        yield ".", path.stat()
        for above, folders, names in os.walk(path, onerror=_raise):
            folders.sort()
            for one in sorted((*folders, *names)):
                place = Path(above, one)
                below = str(place.relative_to(path))
                if not below.isprintable() or "\\" in below:
                    hint = "rename it: letters and blanks, no line ends and no backslash"
                    raise BadFile(f"`{name}` has a file named {below!r}", hint)
                yield below, place.lstat()
    except OSError as error:
        raise BadFile(f"can't read `{name}`: {error.strerror}", _BESIDE) from error


def _raise(error: OSError) -> None:
    raise error
