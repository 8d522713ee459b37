"""The artifact store: files by the sha256 of what is in them, and names that refer to them.

Many processes may use one store at once. A file gets its place when it is whole and durable, so
whatever ends a process leaves parts at most. Reading needs no lock; whoever adds shares one for a
moment with all who add, and only who clears up is alone.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import file_digest
from io import BufferedReader, BytesIO
from pathlib import Path
from stat import S_ISREG
from typing import IO
from urllib.parse import quote, unquote

import msgspec

from kubexm.errors import InvalidInput, StepFailed, StoreUnusable
from kubexm.resource.arriving import SUFFIX, Part, beside, hold, is_at
from kubexm.resource.disk import draft_name, explained, sync_directory, write_whole

FORMAT = b"kubexm artifact store 1\n"
_OURS = frozenset({"format", "blobs", "names", "parts", "lock"})
_DIGEST = re.compile(r"[0-9a-f]{64}")
_LOCK_TRIES = 600
_LOCK_PAUSE = 0.05


class Blob(msgspec.Struct, frozen=True, order=True):
    """A file of the store."""

    sha256: str
    size: int


class Damage(msgspec.Struct, frozen=True):
    """A file of the store that is not what it has to be."""

    path: Path
    wanted: str
    found: str | None
    """What its sha256 is; None if it is not there."""
    names: tuple[str, ...] = ()
    """What refers to it."""

    def __str__(self) -> str:
        found = "it is not there" if self.found is None else f"sha256 {self.found}"
        names = ", ".join(f"`{name}`" for name in self.names)
        return f"{self.path}: {found}, want {self.wanted}" + (f" ({names})" if names else "")


class Store:
    """One directory; it is made when something is added."""

    def __init__(self, root: Path, space: str = "") -> None:
        """`space`: stands in front of all names that are given here."""
        self.root = root.absolute()
        self._space = space
        self._names = self.root / "names"
        self._parts = self.root / "parts"
        self._is_ready = False

    def loaded(self) -> Store:
        """The same files by the names that bundles gave them, and by the usual ones of the rest.

        So who uses no bundle takes nothing of what bundles call the same.
        """
        return Store(self.root, "loaded/")

    def path(self, digest: str) -> Path:
        """Where the file with this sha256 lies, or would."""
        _require_digest(digest)
        return self.root / "blobs" / "sha256" / digest[:2] / digest

    def has(self, digest: str) -> bool:
        return self.path(digest).is_file()

    def open(self, digest: str) -> BufferedReader:
        """The file with this sha256, for reading; it can be read to its end whatever happens."""
        with explained(self.path(digest)):
            try:
                return self.path(digest).open("rb")
            except FileNotFoundError as error:
                message = f"sha256 {digest} is not in the store"
                raise StepFailed(message, where=str(self.root), hint="fetch it first") from error

    def add(
        self, content: bytes | Path, *, name: str | None = None, wanted: str | None = None
    ) -> Blob:
        """Copy bytes or a file into the store; `wanted`: the sha256 that it has to have."""
        part = self.new_part()
        try:
            with BytesIO(content) if isinstance(content, bytes) else opened(content) as file:
                while _copied(part, file, content):
                    pass
            return self.place(part, name=name, wanted=wanted)
        finally:
            part.close()

    def place(self, part: Part, *, name: str | None = None, wanted: str | None = None) -> Blob:
        """Take a part that is whole, and give it a name if one is said."""
        if wanted not in (None, part.digest):
            raise StepFailed(
                f"sha256 {part.digest}, want {wanted}", hint="get the file once more, or another"
            )
        target = self.path(part.digest)
        with explained(target), self._locked(fcntl.LOCK_SH):
            target.parent.mkdir(parents=True, exist_ok=True)
            part.place(target)
            sync_directory(target.parent)
            sync_directory(target.parent.parent)
            if name is not None:
                self._refer(name, part.digest)
        return Blob(part.digest, part.size)

    def new_part(self) -> Part:
        """A part that nobody else knows, and that is gone when it is closed."""
        with self._adding():
            path = self._parts / draft_name()
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
            hold(handle)
            return Part(path, handle, lasting=False)

    def part_of(self, digest: str) -> Part | None:
        """The part of what has this sha256, as it was left; None if another process has it."""
        _require_digest(digest)
        path = self._parts / digest
        with self._adding():
            for _ in range(10):
                handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
                if not hold(handle):
                    os.close(handle)
                    return None
                if is_at(handle, path):
                    return Part(path, handle, lasting=True)
                os.close(handle)  # it has got its place meanwhile
        return None

    def part_size(self, digest: str) -> int:
        """How much there is of a part that may be another process's."""
        try:
            return (self._parts / digest).stat().st_size
        except OSError:
            return 0

    def require_room(self, size: int) -> None:
        """Raise before anything is written if this many bytes have no room."""
        with explained(self.root):
            free = shutil.disk_usage(self.root).free
        if free < size:
            raise StoreUnusable(
                f"the disk is full: {size:,} bytes are wanted, {free:,} are free",
                where=str(self.root),
                hint="free some space there, or use a store on another disk",
            )

    def names(self) -> dict[str, str]:
        """All names and the sha256 to which each refers."""
        with explained(self._names):
            files = sorted(self._names.iterdir()) if self._names.is_dir() else []
            known = {unquote(file.name): _read(file) for file in files if file.name[0] != "."}
        return {name: digest for name, digest in known.items() if digest is not None}

    def find(self, name: str) -> str | None:
        """The sha256 to which a name refers, if it is known and there."""
        for known in dict.fromkeys((f"{self._space}{name}", name)):
            with explained(self._names):
                digest = _read(self._names / _file_name(known))
            if digest is not None and self.has(digest):
                return digest
        return None

    def claim(self, name: str, digest: str) -> bool:
        """Let a name refer to a file; False if that is not there."""
        with self._adding():
            if not self.has(digest):
                return False
            self._refer(name, digest)
            return True

    def forget(self, name: str) -> None:
        """Let a name refer to nothing; the file stays until the store is pruned."""
        with explained(self._names):
            (self._names / _file_name(f"{self._space}{name}")).unlink(missing_ok=True)

    def blobs(self) -> list[Blob]:
        """All files, in the order of their digests."""
        with explained(self.root):
            files = (self.root / "blobs" / "sha256").glob("??/*")
            return sorted(
                Blob(file.name, file.stat().st_size)
                for file in files
                if _DIGEST.fullmatch(file.name)
            )

    def verify(self, digest: str) -> Damage | None:
        """Read a file and compare; None if it is sound."""
        try:
            with self.open(digest) as file, explained(self.path(digest)):
                found: str | None = file_digest(file, "sha256").hexdigest()
        except StepFailed:
            found = None
        if found == digest:
            return None
        names = tuple(name for name, wanted in self.names().items() if wanted == digest)
        return Damage(self.path(digest), digest, found, names)

    def verify_all(self) -> list[Damage]:
        """Read everything, and look for what names refer to; whatever is damaged or missing."""
        digests = {blob.sha256 for blob in self.blobs()} | set(self.names().values())
        found = (self.verify(digest) for digest in sorted(digests))
        return [damage for damage in found if damage is not None]

    def discard(self, digest: str) -> None:
        """Throw a file away, such as a damaged one; names go on to refer to it."""
        with explained(self.path(digest)):
            self.path(digest).unlink(missing_ok=True)

    def prune(self, *, parts: bool = False) -> list[Blob]:
        """Remove what no name refers to, and what dead processes left.

        `parts`: those too with which a later fetch could go on.
        """
        if not self.root.is_dir():
            return []
        with explained(self.root), self._locked(fcntl.LOCK_EX):
            wanted = set(self.names().values())
            unwanted = [blob for blob in self.blobs() if blob.sha256 not in wanted]
            for blob in unwanted:
                self.path(blob.sha256).unlink(missing_ok=True)
            for draft in self._names.glob(".*"):
                draft.unlink(missing_ok=True)
            for part in self._leftovers(parts):
                part.unlink(missing_ok=True)
        return unwanted

    def _leftovers(self, resumable: bool) -> Iterator[Path]:
        for path in sorted(self._parts.glob("*")):
            if path.suffix == SUFFIX or not (resumable or path.name[0] == "."):
                continue
            with path.open("rb") as file:
                if hold(file.fileno()):
                    yield path
                    yield beside(path)

    def _refer(self, name: str, digest: str) -> None:
        write_whole(self._names / _file_name(f"{self._space}{name}"), f"{digest}\n".encode())

    @contextmanager
    def _adding(self) -> Iterator[None]:
        with explained(self.root):
            self._make_ready()
            with self._locked(fcntl.LOCK_SH):
                yield

    def _make_ready(self) -> None:
        if self._is_ready:
            return
        self.root.mkdir(parents=True, exist_ok=True)
        self._require_ours()
        for directory in (self._names, self._parts):
            directory.mkdir(exist_ok=True)
        self._is_ready = True

    def _require_ours(self) -> None:
        marker = self.root / "format"
        if not marker.exists():
            self._require_nothing_else()
            write_whole(marker, FORMAT)
        elif marker.read_bytes() != FORMAT:
            raise StoreUnusable(
                f"this is no artifact store that this kubexm knows: `format` is not"
                f" `{FORMAT.decode().strip()}`",
                where=str(self.root),
                hint="use another directory, or the kubexm that made it",
            )

    def _require_nothing_else(self) -> None:
        # Drafts of another process that makes the store at the same time begin with a dot.
        others = (path.name for path in self.root.iterdir() if path.name[0] != ".")
        if (foreign := next((name for name in sorted(others) if name not in _OURS), None)) is None:
            return
        raise StoreUnusable(
            f"this directory is no artifact store: `{foreign}` is in it",
            where=str(self.root),
            hint="name an empty directory, or one that does not exist",
        )

    @contextmanager
    def _locked(self, how: int) -> Iterator[None]:
        path = self.root / "lock"
        handle = os.open(path, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            _lock(handle, how, path)
            yield
        finally:
            os.close(handle)


def opened(path: Path) -> IO[bytes]:
    """A plain file of this machine, for reading."""
    try:
        # A pipe would keep us waiting for whoever writes into it.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise StepFailed(
            f"can't be read: {_said(error)}", where=str(path), hint="check its path and rights"
        ) from error
    if not S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise StepFailed("this is no file", where=str(path), hint="name a plain file")
    return os.fdopen(handle, "rb")


def _copied(part: Part, file: IO[bytes], content: bytes | Path) -> bool:
    try:
        return part.copy(file)
    except OSError as error:
        raise StepFailed(f"can't be read: {_said(error)}", where=str(content)) from error


def _lock(handle: int, how: int, path: Path) -> None:
    for _ in range(_LOCK_TRIES):
        try:
            return fcntl.flock(handle, how | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_LOCK_PAUSE)
    raise StoreUnusable(
        f"another process keeps the store locked for {_LOCK_TRIES * _LOCK_PAUSE:g} s",
        where=str(path),
        hint="a kubexm may be suspended: `fuser -v` on the file names it; end it",
    )


def _said(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


def _read(file: Path) -> str | None:
    try:
        text = file.read_text(errors="replace").strip()
    except FileNotFoundError:
        return None
    return text if _DIGEST.fullmatch(text) else None


def _file_name(name: str) -> str:
    """The name as a file name: no directory, and no dot in front."""
    written = quote(name, safe="")
    written = f"%2E{written[1:]}" if written.startswith(".") else written
    if not 0 < len(written) <= 255:
        raise InvalidInput(
            f"the name of an artifact has {len(written)} characters as a file name, want 1 to 255",
            hint="give it a shorter one",
        )
    return written


def _require_digest(text: str) -> None:
    if not _DIGEST.fullmatch(text):
        raise InvalidInput(
            f"found `{text[:80]}`, want a sha256: 64 digits from 0 to f, in lower case",
            hint="write the digest as `sha256sum` prints it",
        )
