"""The processes of this machine, as a run sees them that takes over from another."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Collection, Sequence
from contextlib import suppress

from kubexm.common import processes
from kubexm.connector.groups import Group


class ThisMachine:
    """Where kubexm itself runs."""

    async def boot(self) -> str:
        return processes.boot()

    async def everyone(self) -> Sequence[processes.Seen]:
        return tuple(processes.everyone())

    def hides(self, group: Group) -> bool:
        try:
            os.killpg(group.pid, 0)
        except PermissionError:
            return True
        except ProcessLookupError:
            pass
        return False

    async def signal(self, groups: Collection[Group], number: signal.Signals) -> None:
        for group in groups:
            if group.sudo and os.geteuid():
                _signal_through_sudo(group, number)
                continue
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(group.pid, number)


def _signal_through_sudo(group: Group, number: signal.Signals) -> None:
    name = number.name.removeprefix("SIG")
    kill = ("sudo", "-n", "kill", "-s", name, "--", f"-{group.pid}")
    with suppress(FileNotFoundError):
        subprocess.run(kill, check=False, capture_output=True)
