"""Tars with the same bytes for the same contents: no times, no owners, a fixed order."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

_PLAIN = 0o644
_PROGRAM = 0o755


@dataclass(frozen=True, slots=True)
class Link:
    """A symbolic link."""

    target: str


@dataclass(frozen=True, slots=True)
class Directory:
    """A directory of its own, where none would come by itself or with another mode."""

    mode: int = 0o755


Entry = Path | bytes | Link | Directory
"""A file of this machine, with its mode as far as it can be run; bytes; or one of those above."""


def write(file: IO[bytes], entries: Mapping[str, Entry]) -> None:
    """Write a tar of what is to be in it, by name."""
    with tarfile.open(fileobj=file, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for name in sorted(entries):
            _add(tar, name, entries[name])


def write_packed(path: Path, entries: Mapping[str, Entry]) -> None:
    """The same, packed by gzip."""
    with path.open("wb") as raw, gzip.GzipFile("", "wb", 6, raw, mtime=0) as packed:
        write(cast(IO[bytes], packed), entries)


def with_parents(entries: Mapping[str, Entry]) -> dict[str, Entry]:
    """The directories that the names lie in, too: an image is a whole root."""
    parents = {str(parent): Directory() for name in entries for parent in Path(name).parents}
    parents.pop(".", None)
    return {**parents, **entries}


def _add(tar: tarfile.TarFile, name: str, entry: Entry) -> None:
    header = tarfile.TarInfo(name)
    if isinstance(entry, Link):
        header.type, header.linkname, header.mode = tarfile.SYMTYPE, entry.target, 0o777
        tar.addfile(header)
    elif isinstance(entry, Directory):
        header.type, header.mode = tarfile.DIRTYPE, entry.mode
        tar.addfile(header)
    elif isinstance(entry, bytes):
        header.size, header.mode = len(entry), _PROGRAM if entry[:2] == b"#!" else _PLAIN
        tar.addfile(header, io.BytesIO(entry))
    else:
        _add_file(tar, header, entry)


def _add_file(tar: tarfile.TarFile, header: tarfile.TarInfo, path: Path) -> None:
    status = path.stat()
    header.size, header.mode = status.st_size, _PROGRAM if status.st_mode & 0o100 else _PLAIN
    with path.open("rb") as file:
        tar.addfile(header, file)
