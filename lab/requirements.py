"""What the lab needs of the machine; all that is missing is told at once."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from lab.errors import LabError

PACKAGES = {
    "debootstrap": "debootstrap",
    "systemd-nspawn": "systemd-container",
    "ip": "iproute2",
    "iptables": "iptables",
    "ssh": "openssh-client",
    "ssh-keygen": "openssh-client",
    "nsenter": "util-linux",
    "unshare": "util-linux",
    "setpriv": "util-linux",
    "mount": "mount",
    "mkfs.ext4": "e2fsprogs",
}
"""The programs, and the Debian package that each is in."""


class Missing(LabError):
    """The machine lacks something."""

    def __init__(self, lacks: list[str], hints: list[str]) -> None:
        lines = [f"  {lack}" for lack in lacks] + [f"hint: {hint}" for hint in hints]
        super().__init__("\n".join(["the lab can't run here:", *lines]))
        self.lacks = lacks


@dataclass(frozen=True, slots=True)
class Machine:
    """What matters of a machine."""

    uid: int
    programs: frozenset[str]
    filesystems: frozenset[str]
    files: frozenset[str]
    mounted: frozenset[str]
    """The kinds of file systems that are mounted somewhere."""

    watchers: int
    """How many more may watch files at the same time, of what root runs."""

    may_mount: bool = True
    """Whether root is a whole one; in many containers it is not."""


WATCHERS = 11
"""What a host takes of them: its systemd, the journal, dbus and others watch files."""
KERNEL_FILES = {
    "/proc/self/ns/net": "network namespaces",
    "/proc/self/ns/cgroup": "cgroup namespaces",
    "/dev/loop-control": "loop devices",
}


def check(machine: Machine, hosts: int = 0) -> None:
    """`Missing` unless a lab of so many hosts can run on this machine."""
    without = [name for name in PACKAGES if name not in machine.programs]
    lacks = [
        *(["root: only root makes namespaces and mounts"] if machine.uid != 0 else []),
        *(["`CAP_SYS_ADMIN`: this root may not mount"] if _is_half(machine) else []),
        *(f"the program `{name}`" for name in without),
        *(f"the file system `{name}` in the kernel" for name in _filesystems(machine)),
        *(["a mounted `cgroup2`"] if "cgroup2" not in machine.mounted else []),
        *(f"{what} (`{path}`)" for path, what in KERNEL_FILES.items() if path not in machine.files),
        *_watchers(machine, hosts),
    ]
    if lacks:
        raise Missing(lacks, [*_hints(machine, without), *_more_watchers(machine, hosts)])


def this_machine() -> Machine:
    """The machine this runs on."""
    mounts = Path("/proc/self/mounts").read_text().splitlines()
    return Machine(
        uid=os.geteuid(),
        programs=frozenset(name for name in PACKAGES if shutil.which(name)),
        filesystems=frozenset(Path("/proc/filesystems").read_text().split()),
        files=frozenset(path for path in KERNEL_FILES if Path(path).exists()),
        mounted=frozenset(line.split()[2] for line in mounts),
        watchers=int(_MOST_WATCHERS.read_text()) - _watching(),
        may_mount=_may_mount(Path("/proc/self/status").read_text()),
    )


def _may_mount(status: str) -> bool:
    """By the effective capabilities of a process."""
    (held,) = (line.split()[1] for line in status.splitlines() if line.startswith("CapEff:"))
    return bool(int(held, 16) >> _CAP_SYS_ADMIN & 1)


def _is_half(machine: Machine) -> bool:
    return machine.uid == 0 and not machine.may_mount


_CAP_SYS_ADMIN = 21
_MOST_WATCHERS = Path("/proc/sys/fs/inotify/max_user_instances")


def _watching() -> int:
    """How many watch files now; those that end meanwhile don't count."""
    found = 0
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        with contextlib.suppress(OSError):
            found += link.readlink().name == "anon_inode:inotify"
    return found


def _watchers(machine: Machine, hosts: int) -> Iterable[str]:
    needed = hosts * WATCHERS
    if machine.watchers < needed:
        yield (
            f"watchers of files: {hosts} hosts take {needed} instances of inotify,"
            f" {max(0, machine.watchers)} are free"
        )


def _more_watchers(machine: Machine, hosts: int) -> Iterable[str]:
    if machine.watchers < hosts * WATCHERS:
        yield "take another lab down, or `sysctl fs.inotify.max_user_instances=1024`"


def _filesystems(machine: Machine) -> Iterable[str]:
    return [name for name in ("overlay", "ext4", "cgroup2") if name not in machine.filesystems]


def _hints(machine: Machine, without: list[str]) -> Iterable[str]:
    if machine.uid != 0:
        yield "run it as root, for example with `sudo`"
    if _is_half(machine):
        yield "run it outside of the container, or in one with all rights of root"
    if without:
        packages = sorted({PACKAGES[name] for name in without})
        yield f"on Debian: `apt-get install {' '.join(packages)}`"
    for name in _filesystems(machine):
        yield f"if it is a module: `modprobe {name}`"
    if "cgroup2" not in machine.mounted:
        yield "`mount -t cgroup2 none DIRECTORY`, for example in /sys/fs/cgroup/unified"
