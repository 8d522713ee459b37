"""What files hold, by sha256, each read once as long as it does not change.

A file is known again by what its file system says of it: if it was written since, it has another
time. What is large is known again by later processes too.
"""

from __future__ import annotations

import os
import time
from collections import deque
from concurrent.futures import Future
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from threading import Lock, Thread

LARGE = 8 << 20
"""Bytes from which on it is worth the while."""
KEPT = 1000
"""So many files are known again, the latest."""
_PIECE = 4 << 20
_SURE = 2_000_000_000
"""Nanoseconds after which a file that is written once more has another time for sure."""
_Signature = tuple[int, ...]


class Digests:
    """What was read, here or by whoever has left it in the same file."""

    def __init__(self, file: Path | None = None) -> None:
        """`file`: where it is kept; if that fails, it is done without."""
        self._known: dict[_Signature, str] = {}
        self._under_way: dict[_Signature, Future[str]] = {}
        self._wanted: deque[tuple[Path, _Signature, Future[str]]] = deque()
        self._readers = 0
        self._counting = Lock()
        self._file = file
        if file is not None:
            with suppress(OSError):
                self._recall(file)

    def _recall(self, file: Path) -> None:
        lines = file.read_text(errors="replace").splitlines()
        self._known.update(filter(None, map(_parsed, lines[-KEPT:])))
        if len(lines) > 2 * KEPT:
            file.write_text("".join(f"{line}\n" for line in lines[-KEPT:]))

    def of(self, descriptor: int) -> str:
        """The digest of an open file; of one that has not changed, without reading it again."""
        found = signature(os.fstat(descriptor))
        if (begun := self._under_way.get(found)) is not None:
            with suppress(OSError):
                return begun.result()
        return self._known.get(found) or self._read(descriptor, found)

    def begin(self, path: Path) -> bool:
        """Read a file beside whatever else is done; who asks for its digest waits for that.

        False if it is known already.
        """
        found = signature(path.stat())
        if found in self._known:
            return False
        if found not in self._under_way:
            self._begin(path, found)
        return True

    def _begin(self, path: Path, found: _Signature) -> None:
        digest = self._under_way[found] = Future[str]()
        with self._counting:
            self._wanted.append((path, found, digest))
            if self._readers >= (os.cpu_count() or 1):
                return
            self._readers += 1
        Thread(target=self._work, daemon=True).start()

    def _work(self) -> None:
        """One of as many readers as there are cores; each goes on as long as it finds something."""
        while (wanted := self._next()) is not None:
            path, found, digest = wanted
            try:
                with path.open("rb") as file:
                    _require(found, file.fileno())
                    digest.set_result(self._read(file.fileno(), found))
            except OSError as error:
                digest.set_exception(error)
            del self._under_way[found]

    def _next(self) -> tuple[Path, _Signature, Future[str]] | None:
        with self._counting:
            if self._wanted:
                return self._wanted.popleft()
            self._readers -= 1
            return None

    def _read(self, descriptor: int, found: _Signature) -> str:
        began, digest, place = time.time_ns(), sha256(), 0
        while data := os.pread(descriptor, _PIECE, place):
            digest.update(data)
            place += len(data)
        if signature(os.fstat(descriptor)) == found and began - max(found[-2:]) > _SURE:
            self._keep(found, digest.hexdigest())
        return digest.hexdigest()

    def _keep(self, found: _Signature, digest: str) -> None:
        self._known[found] = digest
        if self._file is None or found[2] < LARGE:
            return
        with suppress(OSError):
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with self._file.open("a") as kept:
                kept.write(f"{' '.join(map(str, found))} {digest}\n")


def signature(found: os.stat_result) -> _Signature:
    """What is another when a file was changed."""
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _require(found: _Signature, descriptor: int) -> None:
    if signature(os.fstat(descriptor)) != found:
        raise FileNotFoundError("it is another file by now")


def _parsed(line: str) -> tuple[_Signature, str] | None:
    *numbers, digest = line.split(" ")
    if len(numbers) != 5 or len(digest) != 64 or not all(map(str.isdecimal, numbers)):
        return None
    return tuple(map(int, numbers)), digest
