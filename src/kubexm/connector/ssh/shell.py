"""A long-lived shell on a connection: commands one after the other, each in one round trip."""

from __future__ import annotations

import asyncio
import secrets
import socket
from collections import deque
from collections.abc import AsyncIterable, Sequence
from contextlib import suppress

import asyncssh
import msgspec

from kubexm.connector.base import Completed, LineSink
from kubexm.connector.output import Output
from kubexm.connector.ssh import bulk, frames
from kubexm.connector.ssh.become import Become, Entry
from kubexm.connector.ssh.lane import NotObeyed
from kubexm.errors import ConnectionLost, Refused, StepFailed

STDOUT, STDERR = 1, 2
START_SECONDS = 30.0
"""For a shell to answer first; before that, a host that is gone is found out in other ways."""


class Shell(asyncssh.SSHClientSession[bytes]):
    """One shell; whoever asks it waits for the answer before anybody asks again."""

    def __init__(self, entry: Entry) -> None:
        loop = asyncio.get_running_loop()
        self._entry = entry
        self._channel: asyncssh.SSHClientChannel[bytes]
        self._streams: dict[int, _Stream] = {}
        self._entered: asyncio.Future[None] = loop.create_future()
        self._over: asyncio.Future[None] = loop.create_future()
        self._hears = True
        self._loss: Exception
        self._mark = b""
        self._enrolment = ""
        self._writable = asyncio.Event()
        self._writable.set()
        self.group: tuple[str, ...] = ()
        self.is_spent = False
        self.is_enrolled = False

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
            async with asyncio.timeout(START_SECONDS):
                await shell._begin()
        except TimeoutError:
            shell.close()
            raise entry.refusal(f"no answer within {START_SECONDS:g} s") from None
        except BaseException:
            shell.close()
            raise
        return shell

    async def ask(
        self, requests: Sequence[str], sink: LineSink | None = None, limit: int | None = None
    ) -> list[Completed]:
        """The answers to these requests; `ConnectionLost` if it is gone before it has answered."""
        answers = [Answer(sink, limit) for _ in requests]
        await self._told(requests, answers)
        if answers:  # they come in their order: to wait for the last one is to wake up once
            await answers[-1].done
        return [await answer.given() for answer in answers]

    async def hand(
        self,
        request: str,
        data: AsyncIterable[bytes],
        sink: LineSink | None = None,
        limit: int | None = None,
    ) -> Completed:
        """The end of a command that reads as many bytes as these; the shell stays if it is good.

        The request tells when it is about to begin: until then, the shell may read ahead.
        """
        self.is_spent = True
        begun, last = Answer(), Answer(sink, limit)
        await self._told((request,), (begun, last))
        done = await self.fed(begun, last, data)
        if done.ok:
            self.is_spent = False
        else:
            self.close()  # nobody knows how much of it was read
        return done

    def enroll(self, request: str) -> None:
        """Have it recorded on the host before anything else that it is told."""
        self._enrolment = request
        self.is_enrolled = True

    @property
    def has_input(self) -> bool:
        return True

    @property
    def is_over(self) -> bool:
        return self._over.done()

    async def located(self) -> str | None:
        """The process group; None if it is over."""
        return None if self.is_over else self.group[0]

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
        self._listen(mark)
        _, group = await self.ask((frames.started(mark), frames.GROUP))
        self.group = frames.read_group(group.text)

    async def _told(self, requests: Sequence[str], answers: Sequence[Answer]) -> None:
        recorded = self._recorded_first()
        self.expect((*recorded, *answers))
        try:
            self._channel.write(frames.joined((self._enrolment, *requests)))
        except OSError:
            await self.gone()
            raise self._loss from None
        self._enrolment = ""
        for answer in recorded:
            if not (done := await answer.given()).ok:
                self.is_spent = True
                raise not_recorded(done)

    def _recorded_first(self) -> Sequence[Answer]:
        return (Answer(),) if self._enrolment else ()

    def _listen(self, mark: str) -> None:
        self._mark = mark.encode()
        said, complained = _Stream(STDOUT, self._mark), _Stream(STDERR, self._mark)
        said.other = complained
        self._streams = {STDOUT: said, STDERR: complained}

    def expect(self, answers: Sequence[Answer]) -> None:
        """What it was told is answered here, in this order."""
        for stream in self._streams.values():
            stream.expect(answers)

    async def fed(self, begun: Answer, last: Answer, data: AsyncIterable[bytes]) -> Completed:
        """Hand data to a command from when it has begun, until its end."""
        try:
            await begun.given()
        except NotObeyed:
            for stream in self._streams.values():
                stream.forget(last)
            raise
        try:
            await self._write(data)
        except Exception:
            self.close()  # it would wait for the rest
            raise
        return await last.given()

    async def _write(self, data: AsyncIterable[bytes]) -> None:
        async for piece in data:
            if not self._takes(piece):
                return
            await self._writable.wait()
        self._takes(frames.sealed(self._mark))

    def _takes(self, piece: bytes) -> bool:
        """Write to it; False if it does not want the rest."""
        try:
            bulk.write(self._channel, piece)
        except OSError:
            return False
        return True

    # What asyncssh tells.

    def connection_made(self, chan: asyncssh.SSHClientChannel[bytes]) -> None:
        self._channel = chan

    def data_received(self, data: bytes, datatype: asyncssh.DataType) -> None:
        if self._streams:
            number = STDERR if datatype == asyncssh.EXTENDED_DATA_STDERR else STDOUT
            self._streams[number].feed(data)
        if self._hears:
            self._hears = not self._has_spoken
            if self._hears:
                self._hear(data)

    def _hear(self, data: bytes) -> None:
        """What is said before the shell is there."""
        try:
            if answer := self._entry.hear(data):
                with suppress(OSError):  # it may have been let go of
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
        self._writable.set()
        self._loss = self._lost(exc)
        self._enter(self._loss)
        for stream in self._streams.values():
            stream.fail(self._loss)
        self._end()

    def _end(self) -> None:
        if not self._over.done():
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
            return self._entry.refusal(f"exit code {self._channel.get_exit_status()}")
        return ConnectionLost("the shell on the host has ended")


def not_recorded(answer: Completed) -> StepFailed:
    """Why nothing may be changed by a shell that could not be enrolled."""
    return StepFailed(
        f"can't record a command on the host: {answer.error_text}",
        hint="see that its disk is neither full nor read-only, and that the user may write there",
    )


def _acknowledge(connection: asyncssh.SSHClientConnection) -> None:
    """Tell the host at once what has arrived.

    sshd greets a new connection with something that asks for no answer, and writes nothing small
    before that has been acknowledged. The kernel would take its time: 40 ms of each host.
    """
    wire = connection.get_extra_info("socket")
    if wire is not None and hasattr(socket, "TCP_QUICKACK"):
        wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)


def _future() -> asyncio.Future[None]:
    return asyncio.get_running_loop().create_future()


class Answer(msgspec.Struct, eq=False):
    """What comes of one command, from both streams."""

    sink: LineSink | None = None
    limit: int | None = None
    done: asyncio.Future[None] = msgspec.field(default_factory=_future)
    exit: int = -1
    is_refused: bool = False
    ends: int = 0
    stdout: Output | None = None
    stderr: Output | None = None

    async def given(self) -> Completed:
        """The answer when it is complete; `NotObeyed` if nothing was done."""
        await self.done
        if self.is_refused:
            raise NotObeyed
        return Completed(self.exit, self._all(self.stdout), self._all(self.stderr))

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

    @staticmethod
    def _all(output: Output | None) -> bytes:
        return output.finish() if output is not None else b""


class _Stream:
    """One of the two streams: whose answer it is in, and where that ends."""

    def __init__(self, number: int, mark: bytes) -> None:
        self._number = number
        self._splitter = frames.Splitter(mark, self._take, self._end)
        self._answers: deque[Answer] = deque()
        self.feed = self._splitter.feed
        self.has_spoken = False
        self.other: _Stream | None = None

    def expect(self, answers: Sequence[Answer]) -> None:
        self._answers.extend(answers)

    def forget(self, answer: Answer) -> None:
        self._answers.remove(answer)

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
        answer = self._answers.popleft()
        if self.other is not None and code.endswith(frames.ALONE):
            self.other.forget(answer)
            answer.end(b"")
        answer.end(code.removesuffix(frames.ALONE))
