"""What a file is by what is in it, for those whose sum is not known."""

from __future__ import annotations

import gzip
import tarfile
from io import RawIOBase
from pathlib import Path
from typing import IO, Literal
from zlib import error as BadCompression  # noqa: N812 what it is called says nothing

from kubexm.resource.disk import explained

Kind = Literal["", "file", "binary", "archive", "manifest", "chart"]
"""Empty where nothing is expected of it; `file` is anything that some server may have meant."""
_LARGEST_CHART = 256 << 20
"""Unpacked bytes; helm takes fewer."""
_HEAD = 1024
ZSTD = "a file of zstd"
_KNOWN = (
    (b"\x7fELF", "a program"),
    (b"#!", "a script"),
    (b"\x1f\x8b", "a file of gzip"),
    (b"\xfd7zXZ\0", "a file of xz"),
    (b"\x28\xb5\x2f\xfd", ZSTD),
    (b"BZh", "a file of bzip2"),
    (b"PK\x03\x04", "a file of zip"),
)
_NO_FILES = ("empty", "a web page")
_PROGRAMS = ("a program", "a script")
_PAGES = (b"<!doctype html", b"<html")
_WANTED = {"binary": "a program", "archive": "an archive", "manifest": "a manifest in YAML"}


def fault(kind: Kind, path: Path) -> str:
    """What is wrong with a file that has to be of a kind; empty if nothing is."""
    with explained(path), path.open("rb") as file:
        found = called(file.read(_HEAD))
    if _is_of(kind, found, path):
        return ""
    return f"it is {found}, want {_WANTED.get(kind, f'a {kind}')}"


def _is_of(kind: Kind, found: str, path: Path) -> bool:
    match kind:
        case "":
            return True
        case "chart":
            return _is_chart(path)
        case "binary":
            return found in _PROGRAMS
        case "archive":
            return found.startswith("a file of ") or tarfile.is_tarfile(path)
        case "manifest":
            return found == "text"
        case "file":
            return found not in _NO_FILES


def called(head: bytes) -> str:
    """What people call a file that begins so."""
    if not head:
        return "empty"
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text.lower().startswith(_PAGES):
        return "a web page"
    if known := next((name for magic, name in _KNOWN if head.startswith(magic)), ""):
        return known
    return "something else" if b"\0" in head else "text"


def _is_chart(path: Path) -> bool:
    try:
        with (
            gzip.open(path) as unpacked,
            tarfile.open(fileobj=_Limited(unpacked), mode="r|") as tar,
        ):
            return any(member.name.partition("/")[2] == "Chart.yaml" for member in tar)
    except (tarfile.TarError, BadCompression, OSError, EOFError):
        return False


class _Limited(RawIOBase):
    """The beginning of a file: whoever packed it may have made much out of little."""

    def __init__(self, file: IO[bytes] | gzip.GzipFile) -> None:
        self._file = file
        self._left = _LARGEST_CHART

    def read(self, size: int = -1, /) -> bytes:
        data = self._file.read(self._left if size < 0 else min(size, self._left))
        self._left -= len(data)
        return data
