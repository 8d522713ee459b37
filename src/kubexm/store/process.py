"""Which process holds something, and whether it is provably gone."""

from __future__ import annotations

import os
import pwd
import socket
from pathlib import Path

import msgspec


class Process(msgspec.Struct, frozen=True, rename="camel"):
    """A process, told apart from every other that ever had its pid."""

    machine: str
    boot: str
    """The boot and the pid namespace: where and while the pid means something."""
    pid: int
    pid_started: int
    user: str
    host: str

    @classmethod
    def current(cls) -> Process:
        """The process that calls this."""
        machine, boot = _place()
        return cls(
            machine=machine,
            boot=boot,
            pid=os.getpid(),
            pid_started=_stat(os.getpid())[1],
            user=_user(),
            host=socket.gethostname(),
        )

    @property
    def is_dead(self) -> bool:
        """Whether it is certain, from here and now, that this process has ended."""
        if not self.boot or (self.machine, self.boot) != _place():
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            pass  # it is there, and another user's
        state, started = _stat(self.pid)
        # A killed process stays as a zombie until its parent asks; a pid may be in new hands.
        return state in ("Z", "X") or started not in (0, self.pid_started)

    def __str__(self) -> str:
        return f"{self.user}@{self.host}, pid {self.pid}"


def _place() -> tuple[str, str]:
    return _read("/etc/machine-id") or _read("/var/lib/dbus/machine-id"), _boot()


def _boot() -> str:
    boot = _read("/proc/sys/kernel/random/boot_id")
    try:
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}" if boot else ""
    except OSError:
        return ""


def _stat(pid: int) -> tuple[str, int]:
    """State and start time (in clock ticks after boot) of a process; empty if not to be seen."""
    # The command's name comes first, in parentheses, and may hold anything.
    fields = _read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return (fields[0], int(fields[19])) if fields else ("", 0)


def _user() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid {os.getuid()}"


def _read(path: str) -> str:
    try:
        return Path(path).read_text(errors="replace").strip()
    except OSError:
        return ""
