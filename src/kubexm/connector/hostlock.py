"""The lock of this machine as a host: taken before a run's first change, asked for at each.

Every new holder has a greater token. It lays the token down, ends or awaits what earlier ones
run, and from then on is the only one that is obeyed. So a kubexm that was killed, or frozen for
longer than its lease, can do no harm to what another has gone on with.
"""

from __future__ import annotations

import asyncio
from contextlib import AbstractContextManager
from pathlib import Path, PurePath

from msgspec.structs import replace

from kubexm.common import processes
from kubexm.connector import groups, takeover
from kubexm.connector.base import Claim, Command
from kubexm.connector.groups import Group, RecordedGroups
from kubexm.connector.holder import HolderFile
from kubexm.connector.takeover import Patience
from kubexm.connector.thismachine import ThisMachine
from kubexm.errors import StepFailed


class HostLock:
    """One run's right to change one host."""

    def __init__(self, state_dir: Path, claim: Claim, patience: Patience | None = None) -> None:
        self._claim = claim
        self._patience = patience or Patience()
        self._holder = HolderFile(state_dir / "locks", claim)
        self._groups = RecordedGroups(self._holder.directory, claim.token)
        self._boot = processes.boot()
        self._taking = asyncio.Lock()
        self._settled = False
        self._waits_until: float | None = None

    async def ready(self) -> None:
        """Return when the host is ours and nothing of an earlier holder runs on it any more.

        `Refused` if it obeys a later one.
        """
        if self._settled and self._holder.stands:
            return
        async with self._taking:
            if not (self._settled and self._holder.stands):
                self._settled = False
                await self._take()

    def enter(self, pid: int, command: Command, *, sudo: bool) -> None:
        """Record a command that has not begun; `Refused` if it may not any more."""
        found = processes.look(pid)
        group = Group(
            pid=pid,
            started=found.started if found is not None else 0,
            boot=self._boot,
            awaited=command.uninterruptible,
            sudo=sudo,
            task=self._claim.task,
            program=PurePath(command.argv[0]).name,
        )
        try:
            self._groups.add(group)
        except OSError as error:
            raise self._cant("record a command", error) from error
        self._holder.require()

    def leave(self, pid: int) -> None:
        """A command has ended."""
        self._groups.remove(pid)

    def writing(self) -> AbstractContextManager[None]:
        """A moment of writing; blocks while another becomes the holder, `Refused` after that."""
        return self._holder.required()

    def release(self) -> None:
        """Nothing of ours runs any more; the token stays as the last one seen."""
        self._settled = False
        self._groups.close()

    async def _take(self) -> None:
        await asyncio.to_thread(self._holder.lay)
        try:
            self._groups.open()
        except OSError as error:
            raise self._cant("record commands", error) from error
        # Only now: who has not seen our token by this time has its group recorded.
        files = groups.earlier(self._holder.directory, self._claim.token)
        found = [group for file in files for group in groups.recorded(file)]
        await takeover.settle(found, self._remaining_patience(), ThisMachine())
        for file in files:
            file.unlink(missing_ok=True)
        self._settled = True

    def _remaining_patience(self) -> Patience:
        """Many units may come to wait for the same; all together they wait once."""
        now = asyncio.get_running_loop().time()
        if self._waits_until is None:
            self._waits_until = now + self._patience.awaited
        return replace(self._patience, awaited=max(0.0, self._waits_until - now))

    def _cant(self, what: str, error: OSError) -> StepFailed:
        return StepFailed(f"can't {what} in `{self._holder.directory}`: {error.strerror}")
