"""The file of a bundle: a tar whose files are a frame of zstd each, the manifest first.

The order is that of the manifest, and nothing tells a time or an owner, so that the same content is
the same bytes. All of it reads and writes files, so it belongs off the loop.
"""

from __future__ import annotations

import os
import tarfile
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from hashlib import sha256
from itertools import chain
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Protocol

import msgspec

from kubexm.errors import InvalidFile, Refused, StepFailed
from kubexm.resource import bundle_manifest
from kubexm.resource.arriving import hold
from kubexm.resource.bundle_frames import Lost, Unreadable, packed, skip, unpacked
from kubexm.resource.bundle_manifest import Manifest, quoted
from kubexm.resource.disk import explained, sync_directory
from kubexm.resource.store import Store, opened

MANIFEST = "kubexm-bundle.json"
_END = bytes(2 * tarfile.BLOCKSIZE)
"""What a tar ends with."""
_LARGEST_MANIFEST = 64 << 20
_PIECE = 1 << 20
_STEP = 8 << 20
"""Bytes after which whoever waits hears how far it is."""
_ANEW = "get the bundle anew: copy it again, or build it again"


class Damage(msgspec.Struct, frozen=True):
    """A file of a bundle that is not what it has to be."""

    entry: str
    reason: str
    wanted: str = ""
    """The sha256 that it has to have; empty for what belongs to no file."""
    found: str = ""
    """The sha256 of what could be read of it; empty if nothing could."""
    users: tuple[str, ...] = ()
    """The files and images that it is of."""

    def __str__(self) -> str:
        sums = f"; found sha256 {self.found}, want {self.wanted}" if self.found else ""
        users = ", ".join(f"`{name}`" for name in self.users)
        return f"{self.reason}{sums}" + (f" (of {users})" if users else "")


class Sink(Protocol):
    """Where the bytes of a file go."""

    @property
    def digest(self) -> str:
        """The sha256 of what came."""

    size: int
    """How many bytes came."""

    def write(self, data: bytes, /) -> None: ...


Taking = Callable[[str], AbstractContextManager[Sink | None]]
"""Where the file with this sha256 goes; None if nobody needs it."""


class Hashing:
    """Takes bytes for their digest alone."""

    def __init__(self) -> None:
        self.size = 0
        self._hash = sha256()

    @property
    def digest(self) -> str:
        return self._hash.hexdigest()

    def write(self, data: bytes, /) -> None:
        self._hash.update(data)
        self.size += len(data)


def written(manifest: Manifest, store: Store, path: Path) -> Generator[int, None, None]:
    """Write a bundle out of a store; how many bytes of the content are in it, again and again.

    It has its name when all of it is there.
    """
    with explained(path), _draft_of(path) as file:
        text = bundle_manifest.encoded(manifest)
        file.writelines(_member(MANIFEST, [text], len(text)))
        done = 0
        for digest, size in manifest.blobs.items():
            pieces = _member(_entry(digest), _sound(digest, store), size)
            for number, piece in enumerate(pieces, 1):
                file.write(piece)
                if number * _PIECE % _STEP == 0:
                    yield done + min(number * _PIECE, size)
            done += size
            yield done
        file.writelines(packed([_END], len(_END)))


def require_place(path: Path) -> None:
    """Raise `OSError` if no bundle can be written there; nothing is left behind."""
    with TemporaryFile(dir=path.parent), suppress(FileNotFoundError):
        _draft(path).lstat()  # its name may be too long


def head(path: Path) -> Manifest:
    """What a bundle says of itself, by a look at its beginning."""
    with _opened(path) as file:
        try:
            name, data = _first(file)
        except Unreadable as error:
            message = f"this is no bundle, or its beginning is damaged: {error}"
            raise InvalidFile(message, where=str(path), hint=_ANEW) from error
    if name != MANIFEST:
        message = f"this is no bundle: found {quoted(name)} in front, want `{MANIFEST}`"
        raise InvalidFile(message, where=str(path), hint="name what `kubexm bundle build` wrote")
    return bundle_manifest.decoded(data, str(path))


def walked(path: Path, manifest: Manifest, taking: Taking) -> Generator[int | Damage, None, None]:
    """Go through all files of a bundle; how many bytes are behind us, and what is damaged."""
    done = 0
    with _opened(path) as file:
        skip(file)
        entries = iter(manifest.blobs.items())
        for digest, size in entries:
            try:
                yield from (done + part for part in _taken(file, digest, size, taking))
            except _Broken as broken:
                users = manifest.users(digest)
                yield Damage(_entry(digest), broken.reason, digest, broken.found, users)
                if broken.is_last:
                    yield from (_missing(manifest, each) for each, _ in entries)
                    return
            done += size
            yield done
        yield from _end(file)


class _Broken(Exception):
    """A file of a bundle is damaged."""

    def __init__(self, reason: str, found: str = "", *, is_last: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.found = found
        self.is_last = is_last
        """Whether nothing behind it can be found."""


@contextmanager
def _draft_of(path: Path) -> Iterator[IO[bytes]]:
    """What becomes the file of this name, unless something goes wrong."""
    draft = _draft(path)
    handle = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    with os.fdopen(handle, "wb") as file:
        if not hold(handle):
            raise Refused("another process writes this bundle", where=str(path))
        try:
            file.truncate(0)  # of one that died
            yield file
            file.flush()
            os.fsync(handle)
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)
    sync_directory(path.parent)


def _draft(path: Path) -> Path:
    return path.with_name(f".{path.name}.part")


def _member(name: str, pieces: Iterable[bytes], size: int) -> Iterator[bytes]:
    """A file of the tar as a frame."""
    header = tarfile.TarInfo(name)  # without a time and an owner
    header.size = size
    first = header.tobuf(tarfile.GNU_FORMAT, "utf-8", "strict")
    padding = bytes(-size % tarfile.BLOCKSIZE)
    return packed(chain([first], pieces, [padding]), len(first) + size + len(padding))


def _sound(digest: str, store: Store) -> Iterator[bytes]:
    """A file of the store, piece by piece, if it is what it has to be."""
    found = sha256()
    with store.open(digest) as file:
        while piece := file.read(_PIECE):
            found.update(piece)
            yield piece
    if found.hexdigest() != digest:
        store.discard(digest)
        message = f"the store was damaged: found sha256 {found.hexdigest()}, want {digest}"
        raise StepFailed(
            message,
            where=str(store.path(digest)),
            hint="it was thrown away; build once more, and it is fetched anew",
        )


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    try:
        file = opened(path)
    except StepFailed as error:
        raise InvalidFile(error.message, where=str(path), hint=error.hint) from error
    with file, explained(path):
        yield file


def _first(file: IO[bytes]) -> tuple[str, bytes]:
    """The name and the content of the first file."""
    data = bytearray()
    for piece in unpacked(file):
        data += piece
        if len(data) > _LARGEST_MANIFEST:
            raise Unreadable(f"its first file is larger than {_LARGEST_MANIFEST:,} bytes")
    header = _header(bytes(data[: tarfile.BLOCKSIZE]))
    return header.name, bytes(data[tarfile.BLOCKSIZE :][: header.size])


def _taken(file: IO[bytes], digest: str, size: int, taking: Taking) -> Iterator[int]:
    """Hand a file over; how much of it there is, now and then."""
    with taking(digest) as sink:
        try:
            if sink is None:
                skip(file)
                return
            yield from _poured(_content(file, digest, size), sink)
        except Unreadable as error:
            found, done = ("", 0) if sink is None else (sink.digest, sink.size)
            reason = f"{error}, after {done:,} of {size:,} bytes"
            known = "" if found == digest else found  # then what is around it is damaged
            raise _Broken(reason, known, is_last=isinstance(error, Lost)) from error
        if sink.digest != digest:
            raise _Broken("it has another content", sink.digest)


def _poured(pieces: Iterator[bytes], sink: Sink) -> Iterator[int]:
    for piece in pieces:
        sink.write(piece)
        if sink.size % _STEP < len(piece):
            yield sink.size


def _content(file: IO[bytes], digest: str, size: int) -> Iterator[bytes]:
    """The content of the next file, which has to be this one; always up to its end."""
    pieces, first, left = unpacked(file), bytearray(), size
    for piece in pieces:
        first += piece
        if len(first) >= tarfile.BLOCKSIZE:
            break
    for piece in chain([bytes(first[tarfile.BLOCKSIZE :])], pieces):
        yield piece[:left]
        left -= len(piece[:left])
    header = _header(bytes(first[: tarfile.BLOCKSIZE]))
    if (header.name, header.size) != (_entry(digest), size) or left:
        there = size - left if header.size == size else max(header.size, 0)  # tar can say less
        raise Unreadable(f"found {quoted(header.name)} with {there:,} bytes in its place")


def _header(data: bytes) -> tarfile.TarInfo:
    try:
        return tarfile.TarInfo.frombuf(data, "utf-8", "strict")
    except (tarfile.TarError, UnicodeDecodeError) as error:
        raise Unreadable("it has no header of tar") from error


def _missing(manifest: Manifest, digest: str) -> Damage:
    return Damage(_entry(digest), "it is not there", digest, users=manifest.users(digest))


def _end(file: IO[bytes]) -> Iterator[Damage]:
    try:
        if b"".join(unpacked(file)) != _END:
            yield Damage("the end", "it is not that of a tar")
    except Unreadable as error:
        yield Damage("the end", str(error))
        return
    if file.read(1):
        yield Damage("the end", "there is something behind it")


def _entry(digest: str) -> str:
    return f"blobs/sha256/{digest}"
