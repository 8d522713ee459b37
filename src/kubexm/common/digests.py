"""What files hold, by sha256, each read once as long as it does not change.

A file is known again by what its file system says of it: if it was written since, it has another
time. What is large is known again by later processes too.
"""

from __future__ import annotations

import os
import time
from concurrent.futures import Future
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from threading import Thread

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
        found = signature(descriptor)
        if (begun := self._under_way.get(found)) is not None:
            return begun.result()
        return self._known.get(found) or self._read(descriptor, found)

    def begin(self, path: Path) -> None:
        """Read a file beside whatever else is done; who asks for its digest waits for that."""
        descriptor = os.open(path, os.O_RDONLY)
        found, digest = signature(descriptor), Future[str]()
        if found in self._known or found in self._under_way:
            os.close(descriptor)
        else:
            self._under_way[found] = digest
            Thread(target=self._work, args=(descriptor, found, digest), daemon=True).start()

    def _work(self, descriptor: int, found: _Signature, digest: Future[str]) -> None:
        try:
            digest.set_result(self._read(descriptor, found))
        except OSError as error:
            digest.set_exception(error)
        finally:
            del self._under_way[found]
            os.close(descriptor)

    def _read(self, descriptor: int, found: _Signature) -> str:
        began, digest, place = time.time_ns(), sha256(), 0
        while data := os.pread(descriptor, _PIECE, place):
            digest.update(data)
            place += len(data)
        if signature(descriptor) == found and began - max(found[-2:]) > _SURE:
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


def signature(descriptor: int) -> _Signature:
    """What is another when an open file was changed."""
    found = os.fstat(descriptor)
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _parsed(line: str) -> tuple[_Signature, str] | None:
    *numbers, digest = line.split(" ")
    if len(numbers) != 5 or len(digest) != 64 or not all(map(str.isdecimal, numbers)):
        return None
    return tuple(map(int, numbers)), digest
