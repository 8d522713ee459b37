"""Which process holds something, and whether it is provably gone."""

from __future__ import annotations

import os
import pwd
import socket

import msgspec

from kubexm.common import processes


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
            pid_started=found.started if (found := processes.look(os.getpid())) else 0,
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
        found = processes.look(self.pid)
        # A killed process stays as a zombie until its parent asks; a pid may be in new hands.
        return found is not None and (found.is_over or found.started != self.pid_started)

    def __str__(self) -> str:
        return f"{self.user}@{self.host}, pid {self.pid}"


def _place() -> tuple[str, str]:
    machine = processes.read("/etc/machine-id") or processes.read("/var/lib/dbus/machine-id")
    return machine, processes.boot()


def _user() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid {os.getuid()}"
