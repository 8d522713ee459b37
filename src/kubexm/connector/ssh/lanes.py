"""The shells of one connection: taken by whoever has a command, started as they are needed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncssh

from kubexm import logger
from kubexm.connector.ssh import single
from kubexm.connector.ssh.become import Become
from kubexm.connector.ssh.ender import Ender
from kubexm.connector.ssh.lane import Lane
from kubexm.connector.ssh.shell import Shell
from kubexm.connector.ssh.single import Sessions, Single
from kubexm.errors import ConnectionLost, Refused

MOST = 8
"""Shells side by side; sshd allows ten sessions for each connection unless it is told otherwise."""


class Lanes:
    """Shells of the user that logged in, and of root; where none stays, what stands for them."""

    def __init__(
        self,
        connection: asyncssh.SSHClientConnection,
        become: Become | None,
        grace: float,
        host: str,
    ) -> None:
        """Without `become`, who logged in is root already; `host` is its name for people."""
        self._connection = connection
        self._become = become
        self._host = host
        self._most = MOST
        self._starting = 0
        self._deciding = asyncio.Lock()
        self._holds = False
        self._sessions: Sessions | None = None
        self._shells: dict[Lane, bool] = {}
        self._idle: list[Lane] = []
        self._freed = asyncio.Event()
        self._enders = {root: Ender(self, root, grace) for root in (False, True)}

    @asynccontextmanager
    async def taken(self, *, root: bool) -> AsyncIterator[Lane]:
        """A shell for one request; whoever leaves amid one has it ended, with all that it runs."""
        shell = await self._shell(root and self._become is not None)
        try:
            yield shell
        except (asyncio.CancelledError, TimeoutError):
            shell.is_spent = True
            if not shell.is_over:
                await self._enders[self._shells[shell]].end(shell)
            raise
        finally:
            self._give_back(shell)

    @property
    def holds(self) -> bool:
        """Whether a shell is known to stay."""
        return self._holds

    async def close(self) -> None:
        """Let go of all shells."""
        for ender in self._enders.values():
            await ender.close()
        for shell in self._shells:
            shell.close()

    async def _shell(self, root: bool) -> Lane:
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

    async def start(self, root: bool, *, waits: bool = False) -> Lane:
        """One more shell, whatever others there are; `ChannelOpenError` if that is too many."""
        become = self._become if root else None
        try:
            if self._sessions is None and (shell := await self._held(become)) is not None:
                return shell
        except asyncssh.ChannelOpenError as error:
            if self._connection.is_closed():
                raise ConnectionLost("the connection was closed") from error
            raise
        except (asyncssh.Error, OSError) as error:
            raise ConnectionLost(f"the connection was lost: {error}") from error
        assert self._sessions is not None, "where no shell is held"
        return Single(self._sessions, become, waits=waits)

    async def _held(self, become: Become | None) -> Shell | None:
        """A shell that stays; None if the host holds none."""
        try:
            shell = await Shell.start(self._connection, become)
        except Refused as error:
            async with self._deciding:
                await self._do_without(become, error)
            return None
        self._holds = True
        return shell

    async def _do_without(self, become: Become | None, error: Refused) -> None:
        """Find out, once, how to run commands where no shell stays; the error if one does."""
        if self._sessions is not None:
            return
        if become is not None and not self._holds:
            try:
                (await Shell.start(self._connection)).close()
                self._holds = True
            except Refused as refused:
                error = refused
        if self._holds:
            raise error
        form = await single.form_of(self._connection, error)
        self._sessions = Sessions(self._connection, form)
        logger.get(hostname=self._host).warning(
            "no shell stays on the host, so each command takes longer",
            reason=error.message,
            input=form.has_input,
        )

    def give_up(self) -> None:
        """Close the connection: whoever opens the next one ends what is left of this one."""
        self._connection.close()

    async def _started(self, root: bool) -> Lane | None:
        """A new shell; none if the host opens no more of them."""
        self._starting += 1
        try:
            shell = await self.start(root, waits=True)
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

    def _give_back(self, shell: Lane) -> None:
        if shell.is_spent or shell.is_over:
            self._shells.pop(shell, None)
        else:
            self._idle.append(shell)
        self._freed.set()

    def _forget_what_is_over(self) -> None:
        for shell in [shell for shell in self._idle if shell.is_over]:
            self._idle.remove(shell)
            del self._shells[shell]
