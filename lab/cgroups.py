"""The control groups of a lab: how its processes are held together, frozen and ended.

In the hierarchy of version 2 the lab has one group with all its processes in it, and below it
one for each host. A process in there is the lab's, whoever started it and however, so ending
them needs no list of pids. The groups of version 1 are there for what runs in the hosts.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lab import waiting
from lab.errors import LabError

_UNIFIED = "cgroup2"


@dataclass(frozen=True, slots=True)
class Groups:
    """The same group in each hierarchy."""

    unified: Path
    controllers: tuple[Path, ...]

    def below(self, name: str) -> Groups:
        return Groups(self.unified / name, tuple(path / name for path in self.controllers))


@dataclass(frozen=True, slots=True)
class _Mount:
    at: Path
    root: str
    kind: str
    options: frozenset[str]


def own(memberships: str, mounts: str) -> Groups:
    """The groups of a process, from its /proc/PID/cgroup and /proc/PID/mountinfo."""
    found = [_mount(line) for line in mounts.splitlines()]
    unified: Path | None = None
    controllers = []
    for line in memberships.splitlines():
        _, names, path = line.split(":", 2)
        place = _place(found, names, path)
        if place is not None and names == "":
            unified = place
        elif place is not None:
            controllers.append(place)
    if unified is None:
        raise LabError("there is no cgroup2 file system: mount one with `mount -t cgroup2`")
    return Groups(unified, tuple(sorted(controllers)))


def own_now() -> Groups:
    """The groups that this process is in."""
    me = Path("/proc/self")
    return own((me / "cgroup").read_text(), (me / "mountinfo").read_text())


def make(groups: Groups) -> None:
    """Make the groups that are not there yet."""
    groups.unified.mkdir(exist_ok=True)
    for path in groups.controllers:
        path.mkdir(exist_ok=True)
        _inherit_cpuset(path)


def join(groups: Groups) -> None:
    """Put this process, and so all that it starts from now on, into the groups."""
    for path in (groups.unified, *groups.controllers):
        enter(path)


@contextmanager
def member(group: Path) -> Iterator[None]:
    """This process in a group for a while, and then where it was."""
    before = own_now().unified
    enter(group)
    try:
        yield
    finally:
        enter(before)


def enter(group: Path) -> None:
    """Put this process into one group."""
    (group / "cgroup.procs").write_text("0")


def is_populated(group: Path) -> bool:
    """Whether a process is in the group or in one below it."""
    return _event(group, "populated")


def pids(group: Path) -> list[int]:
    """The processes of the group and of those below it."""
    texts = (_read(path / "cgroup.procs") for path in _deepest_first(group))
    return [int(pid) for text in texts for pid in text.split()]


def freeze(group: Path) -> None:
    (group / "cgroup.freeze").write_text("1")
    waiting.until(lambda: is_frozen(group), f"`{group.name}` to freeze", 10)


def thaw(group: Path) -> None:
    (group / "cgroup.freeze").write_text("0")
    waiting.until(lambda: not is_frozen(group), f"`{group.name}` to thaw", 10)


def is_frozen(group: Path) -> bool:
    return _event(group, "frozen")


def kill(group: Path) -> None:
    """End all processes of the group and below it at once; return when they are gone."""
    if group.exists():
        (group / "cgroup.kill").write_text("1")
        waiting.until(lambda: not is_populated(group), f"the end of all in `{group.name}`", 30)


def remove(groups: Groups) -> None:
    """Remove the empty groups and all that was made below them."""
    for top in (groups.unified, *groups.controllers):
        for path in _deepest_first(top):
            _remove_empty(path)


def _mount(line: str) -> _Mount:
    before, _, after = line.partition(" - ")
    fields, (kind, _, options) = before.split(), after.split(" ", 2)
    return _Mount(Path(fields[4]), fields[3], kind, frozenset(options.split(",")))


def _place(mounts: list[_Mount], names: str, path: str) -> Path | None:
    wanted = frozenset(names.split(",")) if names else frozenset()
    kind = "cgroup" if names else _UNIFIED
    for mount in mounts:
        inside = os.path.relpath(path, mount.root)
        if mount.kind == kind and wanted <= mount.options and not inside.startswith(".."):
            return mount.at / inside
    return None


def _inherit_cpuset(path: Path) -> None:
    # A new group of this controller has no processor and no memory, and takes no process.
    for name in ("cpuset.cpus", "cpuset.mems"):
        above = path.parent / name
        if above.exists() and not (path / name).read_text().strip():
            (path / name).write_text(above.read_text())


def _event(group: Path, name: str) -> bool:
    return f"{name} 1" in _read(group / "cgroup.events").splitlines()


def _read(path: Path) -> str:
    # A host makes and removes groups of its own all the time.
    try:
        return path.read_text()
    except OSError:
        return ""


def _deepest_first(top: Path) -> list[Path]:
    return [Path(where) for where, _, _ in os.walk(top, topdown=False)]


def _remove_empty(path: Path) -> None:
    end = time.monotonic() + 10
    while True:
        try:
            path.rmdir()
        except FileNotFoundError:
            return
        except OSError:
            # A process that was just killed holds its groups for a moment longer.
            if time.monotonic() > end:
                raise
            time.sleep(0.02)
