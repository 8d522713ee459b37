"""The files of a simulated host; what can't be done is an `OSError`, as on a real one."""

from __future__ import annotations

import errno
import os
import sys
from collections import OrderedDict
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from posixpath import dirname, join, normpath
from typing import Any

import msgspec

from kubexm.connector.source import Source
from kubexm.sim import private
from kubexm.sim.state import HostState, Inode

_SHORT = 1024
"""Content up to this length is kept with the host, longer one once for all hosts."""
_MOST_LINKS = 40


class Blobs:
    """Long contents by their sha256, each once in a world; the last few stay in memory."""

    def __init__(self, directory: Path, keep: int = 64) -> None:
        self._directory = directory
        self._keep = keep
        self._recent: OrderedDict[str, bytes] = OrderedDict()

    def add(self, data: bytes) -> str:
        """Keep this content, and say by which name."""
        name = sha256(data).hexdigest()
        path = self._directory / name
        if name not in self._recent and not path.exists():
            with private.written(path) as file:
                file.write(data)
        self._remember(name, data)
        return name

    def adopt(self, source: Source, name: str) -> None:
        """Keep the content of a file of this machine, whose sha256 is its name."""
        place = self._directory / name
        if place.exists():
            return
        with private.written(place) as file:
            file.writelines(source.all_pieces())

    def get(self, name: str) -> bytes:
        if name in self._recent:
            return self._recent[name]
        data = (self._directory / name).read_bytes()
        self._remember(name, data)
        return data

    def _remember(self, name: str, data: bytes) -> None:
        self._recent[name] = data
        self._recent.move_to_end(name)
        if len(self._recent) > self._keep:
            self._recent.popitem(last=False)


class Filesystem:
    """Paths of one host."""

    __slots__ = ("_blobs", "_state", "full")

    def __init__(self, state: HostState, blobs: Blobs) -> None:
        self._state = state
        self._blobs = blobs
        self.full = False
        """Nothing can be written while this holds."""

    def lookup(self, path: str) -> Inode | None:
        """What is at a path; a link itself, not what it points to."""
        return self._inode(self._place(path))

    def find(self, path: str) -> Inode:
        """What is at a path; `FileNotFoundError` if nothing is."""
        if (found := self.lookup(path)) is None:
            raise _error(errno.ENOENT, path)
        return found

    def resolve(self, path: str) -> str:
        """The path that a path leads to, all links followed."""
        place = self._place(path)
        for _ in range(_MOST_LINKS):
            found = self._inode(place)
            if found is None or found.kind != "link":
                return place
            place = self._place(join(dirname(place), found.target))
        raise _error(errno.ELOOP, path)

    def read(self, path: str) -> bytes:
        """The content of a file, links followed."""
        found = self.find(self.resolve(path))
        if found.kind == "directory":
            raise _error(errno.EISDIR, path)
        return self._blobs.get(found.blob) if found.blob else found.text.encode()

    def digest(self, path: str) -> str:
        """The sha256 of a file."""
        found = self.find(self.resolve(path))
        return found.blob or sha256(self.read(path)).hexdigest()

    def write(
        self,
        path: str,
        data: bytes,
        *,
        mode: int | None = None,
        owner: str | None = None,
        group: str | None = None,
    ) -> None:
        """Put a file in place; what is not given stays as it is."""
        place, kept = self._file_at(path)
        self._require_known(path, owner, group)
        made = self._with_content(kept, data)
        self._state.set(place, _changed(made, mode=mode, owner=owner, group=group))

    def adopt(
        self,
        path: str,
        source: Source,
        digest: str,
        *,
        mode: int | None = None,
        owner: str | None = None,
        group: str | None = None,
    ) -> None:
        """The same with the content of a file of this machine, which has this sha256."""
        place, kept = self._file_at(path)
        self._require_known(path, owner, group)
        self._blobs.adopt(source, digest)
        made = msgspec.structs.replace(kept, text="", blob=digest, size=source.size)
        self._state.set(place, _changed(made, mode=mode, owner=owner, group=group))

    def _file_at(self, path: str) -> tuple[str, Inode]:
        """Where a file comes, and what of the one that is there it keeps."""
        place = self._new_place(path)
        found = self._inode(place)
        if found is not None and found.kind == "directory":
            raise _error(errno.EISDIR, path)
        kept = found if found is not None and found.kind == "file" else Inode("file", 0o644)
        return place, kept

    def make_directory(self, path: str, mode: int = 0o755, *, parents: bool = False) -> None:
        """Make a directory; with `parents`, all above it, and none that is there already."""
        if parents:
            for above in self._missing(path):
                self.make_directory(above, mode if above == normpath(path) else 0o755)
            return
        place = self._new_place(path)
        if self._inode(place) is not None:
            raise _error(errno.EEXIST, path)
        self._state.set(place, Inode("directory", mode))

    def make_link(self, target: str, path: str, *, force: bool = False) -> None:
        place = self._new_place(path)
        found = self._inode(place)
        if found is not None and (not force or found.kind == "directory"):
            raise _error(errno.EEXIST, path)
        self._state.set(place, Inode("link", 0o777, target=target, size=len(target)))

    def change(
        self,
        path: str,
        *,
        mode: int | None = None,
        owner: str | None = None,
        group: str | None = None,
        follow: bool = True,
    ) -> None:
        """Set mode, owner or group of what a path leads to, or of a link itself."""
        place = self.resolve(path) if follow else self._place(path)
        self._require_known(path, owner, group)
        found = self.find(place)
        self._state.set(place, _changed(found, mode=mode, owner=owner, group=group))

    def remove(self, path: str) -> None:
        """Remove a file, a link or an empty directory."""
        place = self._place(path)
        self.find(place)
        if self.children(place):
            raise _error(errno.ENOTEMPTY, path)
        self._state.set(place, None)

    def remove_tree(self, path: str) -> None:
        """Remove a path and all that is below it."""
        place = self._place(path)
        self.find(place)
        for below in reversed(self._tree(place)):
            self._state.set(below, None)

    def rename(self, source: str, target: str) -> None:
        """Move a path; a file there is replaced."""
        old, new = self._place(source), self._new_place(target)
        self._graft(old, new)
        for below in reversed(self._tree(old)):
            self._state.set(below, None)

    def copy(self, source: str, target: str) -> None:
        """Copy a path with all that is below it, owners and modes included."""
        self._graft(self._place(source), self._new_place(target))

    def children(self, path: str) -> list[str]:
        """The names in a directory."""
        prefix = path.rstrip("/") + "/"
        below = (key[len(prefix) :] for key in self._state.keys(prefix))
        return sorted(name for name in below if name and "/" not in name)

    def _require_known(self, path: str, owner: str | None, group: str | None) -> None:
        """A number may be anybody's; a name has to be that of somebody."""
        for kind, name in (("user", owner), ("group", group)):
            if name is None or name.isdecimal():
                continue
            if self._state.get(f"{kind}:{name}") is None:
                raise OSError(errno.EINVAL, f"the host has no {kind} `{name}`", path)

    def _graft(self, old: str, new: str) -> None:
        found = self.find(old)
        there = self._inode(new)
        if there is not None and "directory" in (there.kind, found.kind):
            raise _error(errno.EEXIST, new)
        for below in self._tree(old):
            self._state.set(new + below[len(old) :], self._inode(below))

    def _tree(self, place: str) -> list[str]:
        return [place, *sorted(self._state.keys(place.rstrip("/") + "/"))]

    def _missing(self, path: str) -> list[str]:
        """The directories that a path lacks, from the top down."""
        missing = []
        place = normpath(path)
        while (found := self.lookup(self.resolve(place))) is None:
            missing.append(place)
            place = dirname(place)
        if found.kind != "directory":
            raise _error(errno.ENOTDIR, place)
        return missing[::-1]

    def _new_place(self, path: str) -> str:
        if self.full:
            raise _error(errno.ENOSPC, path)
        place = self._place(path)
        above = self._inode(dirname(place))
        if above is None:
            raise _error(errno.ENOENT, path)
        if above.kind != "directory":
            raise _error(errno.ENOTDIR, path)
        return place

    def _place(self, path: str) -> str:
        """The path without links above its last part."""
        path, above = _parts(path)
        if above in ("", "/", path):
            return path
        found = self._inode(above)
        if found is not None and found.kind == "directory":
            return path
        real = self.resolve(above)
        return path if real == above else f"{real.rstrip('/')}/{path[len(above) :].lstrip('/')}"

    def _inode(self, place: str) -> Inode | None:
        found = self._state.get(place)
        return found if isinstance(found, Inode) else None

    def _with_content(self, inode: Inode, data: bytes) -> Inode:
        text = _short_text(data)
        return msgspec.structs.replace(
            inode,
            text=text or "",
            blob=self._blobs.add(data) if text is None else "",
            size=len(data),
        )


@lru_cache(maxsize=4096)
def _parts(path: str) -> tuple[str, str]:
    """The path made plain, and the directory it is in."""
    # Many hosts are asked for the same few paths.
    path = normpath(path)
    return path, dirname(path)


def _short_text(data: bytes) -> str | None:
    if len(data) > _SHORT:
        return None
    try:
        # Thousands of hosts get the same files.
        return sys.intern(data.decode())
    except UnicodeDecodeError:
        return None


def _changed(inode: Inode, **attributes: Any) -> Inode:
    given = {name: value for name, value in attributes.items() if value is not None}
    return msgspec.structs.replace(inode, **given) if given else inode


def _error(number: int, path: str) -> OSError:
    return OSError(number, os.strerror(number), path)
