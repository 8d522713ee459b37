"""The shells of one connection: taken by whoever has a command, started as they are needed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncssh

from kubexm.connector.ssh.become import Become
from kubexm.connector.ssh.ender import Ender
from kubexm.connector.ssh.shell import Shell
from kubexm.errors import ConnectionLost, Refused

MOST = 8
"""Shells side by side; sshd allows ten sessions for each connection unless it is told otherwise."""


class Lanes:
    """Shells of the user that logged in, and of root."""

    def __init__(
        self, connection: asyncssh.SSHClientConnection, become: Become | None, grace: float
    ) -> None:
        """Without `become`, who logged in is root already."""
        self._connection = connection
        self._become = become
        self._grace = grace
        self._most = MOST
        self._starting = 0
        self._shells: dict[Shell, bool] = {}
        self._idle: list[Shell] = []
        self._freed = asyncio.Event()
        self._enders = {root: Ender(self, root, grace) for root in (False, True)}

    @asynccontextmanager
    async def taken(self, *, root: bool) -> AsyncIterator[Shell]:
        """A shell for one request; whoever leaves amid one has it ended, with all that it runs."""
        shell = await self._shell(root and self._become is not None)
        try:
            yield shell
        except (asyncio.CancelledError, TimeoutError):
            shell.is_spent = True
            await self._enders[self._shells[shell]].end(shell)
            raise
        finally:
            self._give_back(shell)

    async def close(self) -> None:
        """Let go of all shells."""
        for ender in self._enders.values():
            await ender.close()
        for shell in self._shells:
            shell.close()

    async def _shell(self, root: bool) -> Shell:
        while True:
            self._forget_what_is_over()
            for shell in reversed(self._idle):
                if self._shells[shell] is root:
                    self._idle.remove(shell)
                    return shell
            if self._has_room() and (new := await self._started(root)) is not None:
                return new
            self._freed.clear()
            await self._freed.wait()

    def _has_room(self) -> bool:
        """Whether one more may be started; if need be, one that nobody has makes room."""
        if len(self._shells) + self._starting < self._most:
            return True
        if self._idle:
            shell = self._idle.pop()
            shell.close()
            del self._shells[shell]
            return True
        return False

    async def start(self, root: bool) -> Shell:
        """One more shell, whatever others there are; `ChannelOpenError` if that is too many."""
        try:
            return await Shell.start(self._connection, self._become if root else None)
        except asyncssh.ChannelOpenError as error:
            if self._connection.is_closed():
                raise ConnectionLost("the connection was closed") from error
            raise
        except (asyncssh.Error, OSError) as error:
            raise ConnectionLost(f"the connection was lost: {error}") from error

    def give_up(self) -> None:
        """Close the connection: whoever opens the next one ends what is left of this one."""
        self._connection.close()

    async def _started(self, root: bool) -> Shell | None:
        """A new shell; none if the host opens no more of them."""
        self._starting += 1
        try:
            shell = await self.start(root)
        except asyncssh.ChannelOpenError as error:
            others = len(self._shells) + self._starting - 1
            if not others:
                raise Refused(f"the host opens no session: {error.reason}") from error
            self._most = others
            return None
        finally:
            self._starting -= 1
        self._shells[shell] = root
        return shell

    def _give_back(self, shell: Shell) -> None:
        if shell.is_spent or shell.is_over:
            self._shells.pop(shell, None)
        else:
            self._idle.append(shell)
        self._freed.set()

    def _forget_what_is_over(self) -> None:
        for shell in [shell for shell in self._idle if shell.is_over]:
            self._idle.remove(shell)
            del self._shells[shell]
