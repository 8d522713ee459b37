"""A long-lived shell on a connection: commands one after the other, each in one round trip."""

from __future__ import annotations

import asyncio
import secrets
import socket
from collections import deque
from collections.abc import AsyncIterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import asyncssh

from kubexm.connector.base import Completed, LineSink
from kubexm.connector.output import Output
from kubexm.connector.ssh import frames
from kubexm.connector.ssh.become import Become, Entry
from kubexm.errors import ConnectionLost, Refused

STDOUT, STDERR = 1, 2


class NotObeyed(Exception):
    """The host obeys another holder, or nobody: nothing was done."""


class Shell(asyncssh.SSHClientSession[bytes]):
    """One shell; whoever asks it waits for the answer before anybody asks again."""

    def __init__(self, entry: Entry) -> None:
        loop = asyncio.get_running_loop()
        self._entry = entry
        self._channel: asyncssh.SSHClientChannel[bytes]
        self._streams: dict[int, _Stream] = {}
        self._entered: asyncio.Future[None] = loop.create_future()
        self._over: asyncio.Future[None] = loop.create_future()
        self._last: _Answer | None = None
        self._writable = asyncio.Event()
        self._writable.set()
        self.group: tuple[str, ...] = ()
        """Of all that it runs the process group, when that began, in which boot."""
        self.is_spent = False
        """Whether nobody may ask it any more."""
        self.is_enrolled = False
        """Whether it is recorded on the host, and may change it."""

    @classmethod
    async def start(
        cls, connection: asyncssh.SSHClientConnection, become: Become | None = None
    ) -> Shell:
        """A shell of the user that logged in, or of root; `Refused` says why there is none."""
        entry = Entry(become)
        shell = cls(entry)
        asyncio.get_running_loop().call_soon(_acknowledge, connection)
        await connection.create_session(lambda: shell, entry.command, encoding=None)
        try:
            await shell._begin()
        except BaseException:
            shell.close()
            raise
        return shell

    async def ask(
        self, requests: Sequence[str], sink: LineSink | None = None, limit: int | None = None
    ) -> list[Completed]:
        """The answers to these requests; `ConnectionLost` if it is gone before it has answered."""
        loop = asyncio.get_running_loop()
        answers = [_Answer(sink, limit, loop.create_future()) for _ in requests]
        for stream in self._streams.values():
            stream.expect(answers)
        self._channel.write(frames.joined(requests))
        for answer in answers:
            await answer.done
            if answer.is_refused:
                raise NotObeyed
        return [answer.completed() for answer in answers]

    async def pour(
        self,
        request: str,
        data: AsyncIterable[bytes],
        sink: LineSink | None = None,
        limit: int | None = None,
    ) -> Completed:
        """The end of a command that takes the place of the shell and reads all of this data.

        The request tells when it is about to do so: until then, the shell may read ahead.
        """
        self.is_spent = True
        loop = asyncio.get_running_loop()
        ready = _Answer(None, None, loop.create_future())
        last = self._last = _Answer(sink, limit, loop.create_future())
        for stream in self._streams.values():
            # Both at once: what fails at once may say so together with the answer before it.
            stream.expect((ready, last))
        self._channel.write(frames.joined((request,)))
        await ready.done
        if ready.is_refused:
            raise NotObeyed
        with suppress(OSError):  # it does not want the rest
            async for piece in data:
                self._channel.write(piece)
                await self._writable.wait()
            self._channel.write_eof()
        await last.done
        return last.completed()

    @property
    def is_over(self) -> bool:
        return self._over.done()

    def kill(self) -> None:
        """Have the host kill it, if it lets us."""
        with suppress(OSError):
            self._channel.send_signal("KILL")

    async def gone(self) -> None:
        """Return when it is over."""
        await asyncio.shield(self._over)

    def close(self) -> None:
        """Let it go; a command that still runs is not ended by that."""
        self._channel.close()

    async def _begin(self) -> None:
        if not self._entry.is_open:
            await self._entered
        mark = secrets.token_hex(16)
        self._streams = {number: _Stream(number, mark.encode()) for number in (STDOUT, STDERR)}
        _, group = await self.ask((frames.started(mark), frames.GROUP))
        number, start, boot = group.text.split(" ", 2)
        self.group = number, start, boot

    # What asyncssh tells.

    def connection_made(self, chan: asyncssh.SSHClientChannel[bytes]) -> None:
        self._channel = chan

    def data_received(self, data: bytes, datatype: asyncssh.DataType) -> None:
        if self._streams:
            number = STDERR if datatype == asyncssh.EXTENDED_DATA_STDERR else STDOUT
            self._streams[number].feed(data)
        if not self._has_spoken:
            self._hear(data)

    def _hear(self, data: bytes) -> None:
        """What is said before the shell is there."""
        try:
            if answer := self._entry.hear(data):
                self._channel.write(answer)
        except Refused as error:
            self._enter(error)
        if self._entry.is_open:
            self._enter()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._last is not None and exc is None:
            self._last.over(self._channel.get_exit_status(), self._channel.get_exit_signal())
        self._writable.set()
        self._enter(self._lost(exc))
        for stream in self._streams.values():
            stream.fail(self._lost(exc))
        self._over.set_result(None)

    @property
    def _has_spoken(self) -> bool:
        return any(stream.has_spoken for stream in self._streams.values())

    def _enter(self, error: Exception | None = None) -> None:
        if self._entered.done():
            return
        if error is None:
            self._entered.set_result(None)
        else:
            self._entered.set_exception(error)
            self._entered.exception()  # whoever started it may be gone

    def _lost(self, exc: Exception | None) -> Exception:
        if exc is not None:
            return ConnectionLost(f"the connection was lost: {exc}")
        if not self._has_spoken:
            return self._entry.refusal(self._channel.get_exit_status())
        return ConnectionLost("the shell on the host has ended")


def _acknowledge(connection: asyncssh.SSHClientConnection) -> None:
    """Tell the host at once what has arrived.

    sshd greets a new connection with something that asks for no answer, and writes nothing small
    before that has been acknowledged. The kernel would take its time: 40 ms of each host.
    """
    wire = connection.get_extra_info("socket")
    if wire is not None and hasattr(socket, "TCP_QUICKACK"):
        wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)


@dataclass(slots=True, eq=False)
class _Answer:
    """What comes of one command, from both streams."""

    sink: LineSink | None
    limit: int | None
    done: asyncio.Future[None]
    exit: int = -1
    is_refused: bool = False
    ends: int = 0
    stdout: Output | None = None
    stderr: Output | None = None

    def output(self, number: int) -> Output:
        return Output("stdout" if number == STDOUT else "stderr", self.limit, self.sink)

    def end(self, code: bytes) -> None:
        if code == frames.REFUSED:
            self.is_refused = True
        elif code:
            self.exit = int(code)
        self.ends += 1
        if self.ends == 2 and not self.done.done():
            self.done.set_result(None)

    def over(self, status: int | None, ended_by: object) -> None:
        """The command that took the place of the shell has ended."""
        self.exit = status if status is not None and ended_by is None else 255
        if not self.done.done():
            self.done.set_result(None)

    def completed(self) -> Completed:
        return Completed(self.exit, self._all(self.stdout), self._all(self.stderr))

    @staticmethod
    def _all(output: Output | None) -> bytes:
        return output.finish() if output is not None else b""


class _Stream:
    """One of the two streams: whose answer it is in, and where that ends."""

    def __init__(self, number: int, mark: bytes) -> None:
        self._number = number
        self._splitter = frames.Splitter(mark, self._take, self._end)
        self._answers: deque[_Answer] = deque()
        self.feed = self._splitter.feed
        self.has_spoken = False

    def expect(self, answers: Sequence[_Answer]) -> None:
        self._answers.extend(answers)

    def fail(self, error: Exception) -> None:
        for answer in self._answers:
            if not answer.done.done():
                answer.done.set_exception(error)
                answer.done.exception()  # of several only the first is awaited

    def _take(self, data: bytes) -> None:
        if not self._answers:
            return  # somebody writes in the background, after its command has ended
        answer = self._answers[0]
        if self._number == STDOUT:
            answer.stdout = answer.stdout or answer.output(STDOUT)
            answer.stdout.feed(data)
        else:
            answer.stderr = answer.stderr or answer.output(STDERR)
            answer.stderr.feed(data)

    def _end(self, code: bytes) -> None:
        self.has_spoken = True
        self._answers.popleft().end(code)
