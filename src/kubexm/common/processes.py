"""What the kernel says of processes: enough to tell one from all that ever had its pid."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

_OVER = ("Z", "X")


class Seen(msgspec.Struct, frozen=True):
    """A process as /proc shows it."""

    pid: int
    state: str
    group: int
    session: int
    started: int
    """In clock ticks after boot."""

    @property
    def is_over(self) -> bool:
        """Whether it has ended, and only waits for its parent to ask how."""
        return self.state in _OVER


def look(pid: int) -> Seen | None:
    """A process; None if there is none, or it is not to be seen."""
    # The command's name comes first, in parentheses, and may hold anything.
    fields = read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    if not fields:
        return None
    return Seen(pid, fields[0], int(fields[2]), int(fields[3]), int(fields[19]))


def everyone() -> Iterator[Seen]:
    """Every process that can be seen."""
    for place in Path("/proc").iterdir():
        if place.name.isdecimal() and (found := look(int(place.name))) is not None:
            yield found


def boot() -> str:
    """The boot and the pid namespace: where and while a pid means something."""
    found = read("/proc/sys/kernel/random/boot_id")
    try:
        return f"{found} {Path('/proc/self/ns/pid').readlink()}" if found else ""
    except OSError:
        return ""


def read(path: str) -> str:
    """A small file of the system as text; empty if there is none."""
    try:
        return Path(path).read_text(errors="replace").strip()
    except OSError:
        return ""
