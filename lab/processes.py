"""Which process is which: a pid alone is not enough, since the kernel gives it out again."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Process:
    """A process, told from all others that ever had its pid since the machine started."""

    pid: int
    started: int
    """In clock ticks after the start of the machine."""

    @property
    def runs(self) -> bool:
        return look(self.pid) == self

    def send(self, what: int) -> bool:
        """Send a signal; False if the process is over, whoever has its pid now."""
        try:
            handle = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return False
        try:
            # Asked for after the handle is held, so that the answer is about this very process.
            if not self.runs:
                return False
            signal.pidfd_send_signal(handle, what)
        finally:
            os.close(handle)
        return True


def look(pid: int) -> Process | None:
    """The process that has this pid now; None if it is over or only waits to be reaped."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return None
    # The name comes first, in parentheses, and may hold anything.
    fields = text.rpartition(")")[2].split()
    return None if fields[0] in {"Z", "X"} else Process(pid, int(fields[19]))


def age(process: Process) -> float:
    """Seconds since the process began."""
    since_boot = float(Path("/proc/uptime").read_text().split()[0])
    return max(0.0, since_boot - process.started / os.sysconf("SC_CLK_TCK"))


def boot() -> str:
    """The start of the machine: pids, mounts and cgroups mean something only until the next."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
