"""Where no shell can be held: each request is a command of its own, on a channel of its own.

Some hosts hand no input to what they run, or have a login shell that starts no other. The requests
are the same as those to a shell that stays, and so are the answers; they only travel as input of
a command of their own, or where none is handed to it as its text.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterable, AsyncIterator, Callable, Sequence
from contextlib import suppress

import asyncssh
from msgspec.structs import replace

from kubexm.connector.base import Completed, LineSink
from kubexm.connector.ssh import frames
from kubexm.connector.ssh.become import LOGIN_HINT, Become, Form, ScriptEntry
from kubexm.connector.ssh.shell import START_SECONDS, Answer, Shell, not_recorded
from kubexm.errors import ConnectionLost, KubexmError, Refused, StepFailed

LONGEST = 90 << 10
"""Bytes of requests in one command: encoded it must be less than 128 KiB, Linux's limit."""
PIECE = 48 << 10
"""Bytes of input in one command."""
_END_SECONDS = 1.0
_MOMENT = 0.5
_TRIES = 5
_FORMS = Form(), Form(is_parsed=False)
_GREETING = b"yes"
_GREETED = f'printf %s "$(timeout 5 head -c {len(_GREETING)})"; k 0\n'
_MAKE_FILE = 'umask 077 && mktemp -- "${TMPDIR:-/tmp}/kubexm.XXXXXXXXXX"'


class Script(Shell):
    """A shell that runs one script and ends."""

    def __init__(
        self,
        become: Become | None,
        form: Form,
        requests: Sequence[str],
        mark: str | None = None,
        *,
        told: bool = False,
    ) -> None:
        """`told`: the host gets the script as input, and not as the text of a command."""
        mark = mark or secrets.token_hex(16)
        text = frames.joined((frames.started(mark), frames.GROUP, *requests))
        entry = ScriptEntry(become, form, text, told=told)
        super().__init__(entry)
        self._command = entry.command
        self._started, self._group = Answer(), Answer()
        self._listen(mark)
        self.expect((self._started, self._group))
        self._is_open = False

    async def open(self, connection: asyncssh.SSHClientConnection) -> None:
        """Have the host run it; `ChannelOpenError` if it opens no channel."""
        opening = asyncio.create_task(self._opened(connection))
        # Whoever opens it may be gone.
        opening.add_done_callback(lambda task: task.cancelled() or task.exception())
        # Who is cancelled meanwhile could not tell whether it runs, and would not end it.
        await asyncio.shield(opening)

    async def _opened(self, connection: asyncssh.SSHClientConnection) -> None:
        try:
            await connection.create_session(lambda: self, self._command, encoding=None)
        except (asyncssh.Error, OSError) as error:
            self._end()
            if isinstance(error, asyncssh.ChannelOpenError):
                raise
            raise ConnectionLost(f"the connection was lost: {error}") from error
        self._is_open = True

    async def located(self) -> str | None:
        """The process group, as soon as it is known; None if it is over."""
        waits = (self._group.done, self._over)
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        return None if self.is_over else (await self.found())[0]

    async def found(self) -> tuple[str, ...]:
        """Its process group, when that began, in which boot."""
        return frames.read_group((await self._group.given()).text)

    async def ended(self) -> None:
        """Return when it is over, or when only what it has left in the background holds it."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_END_SECONDS):
                await self.gone()
        self.close()

    def _enter(self, error: Exception | None = None) -> None:
        super()._enter(error)
        if error is not None:
            for stream in self._streams.values():
                stream.fail(error)
            self.close()

    def when_over(self, told: Callable[[], None]) -> None:
        """Have somebody told when it is over."""
        self._over.add_done_callback(lambda _: told())

    def kill(self) -> None:
        """Have the host kill it, if it lets us."""
        if self._is_open:
            super().kill()

    def close(self) -> None:
        """Let it go."""
        if self._is_open:
            super().close()

    @property
    def last_words(self) -> str:
        """What it said before anything was answered, or how it ended."""
        code = self._channel.get_exit_status() if self.is_over else None
        return self._entry.said("no answer" if code is None else f"exit code {code}")

    def greet(self) -> None:
        """Write to it what it may not get."""
        with suppress(OSError):
            self._channel.write(_GREETING)
            self._channel.write_eof()


class Sessions:
    """Channels of one connection, as many as the host opens."""

    def __init__(self, connection: asyncssh.SSHClientConnection, form: Form) -> None:
        self.form = form
        self._connection = connection
        self._running = 0
        self._freed = asyncio.Event()

    async def open(self, script: Script) -> None:
        """Have the host run a script; `ChannelOpenError` if there is no room for it."""
        self._running += 1
        script.when_over(self._free)
        try:
            await script.open(self._connection)
        except asyncssh.ChannelOpenError as error:
            if self._connection.is_closed():
                raise ConnectionLost("the connection was closed") from error
            raise

    async def room(self) -> bool:
        """Wait until one that runs is over, or for a moment; whether any runs."""
        self._freed.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(_MOMENT):
                await self._freed.wait()
        return self._running > 0

    def _free(self) -> None:
        self._running -= 1
        self._freed.set()


class Single:
    """Stands for a shell: each request, or a few together, as a script of its own."""

    def __init__(self, sessions: Sessions, become: Become | None, *, waits: bool = True) -> None:
        """`waits`: if the host opens no more channels, until it does."""
        self._sessions = sessions
        self._become = become
        self._waits = waits
        self._enrolment: tuple[str, ...] = ()
        self._script: Script | None = None
        self.group: tuple[str, ...] = ()
        self.is_spent = True  # after whoever has it now; the next one costs nothing
        self.is_enrolled = False

    async def ask(
        self, requests: Sequence[str], sink: LineSink | None = None, limit: int | None = None
    ) -> list[Completed]:
        """The answers to these requests."""
        found: list[Completed] = []
        for some in frames.portions(requests, LONGEST):
            answers = [Answer(sink, limit) for _ in some]
            script = await self._begun(some, answers)
            found += [await answer.given() for answer in answers]
            await script.ended()
        return found

    async def hand(
        self,
        request: str,
        data: AsyncIterable[bytes],
        sink: LineSink | None = None,
        limit: int | None = None,
    ) -> Completed:
        """The end of a command that reads as many bytes as these: from us, or from a file there."""
        begun, last, mark = Answer(), Answer(sink, limit), secrets.token_hex(16)
        if self._sessions.form.has_input:
            script = await self._begun((request,), (begun, last), mark)
            return await script.fed(begun, last, data)
        file = (await self._did(_MAKE_FILE)).text
        try:
            async for piece in _small(data):
                await self._did(frames.laid(file, piece))
            await self._did(frames.laid(file, frames.sealed(mark.encode())))
            script = await self._begun((frames.reading(file, request),), (begun, last), mark)
            return await script.fed(begun, last, _nothing())
        except BaseException:
            await asyncio.shield(self._removed(file))
            raise

    def enroll(self, request: str) -> None:
        """Have each script recorded from now on, before anything else in it."""
        self._enrolment = (request,)
        self.is_enrolled = True

    @property
    def has_input(self) -> bool:
        return self._sessions.form.has_input

    @property
    def is_over(self) -> bool:
        return self._script is None or self._script.is_over

    async def located(self) -> str | None:
        """The process group of the script that runs."""
        return None if self._script is None else await self._script.located()

    def kill(self) -> None:
        """Have the host kill what runs."""
        if self._script is not None:
            self._script.kill()

    async def gone(self) -> None:
        """Return when nothing runs."""
        if self._script is not None:
            await self._script.gone()

    def close(self) -> None:
        """Let go of what runs."""
        if self._script is not None:
            self._script.close()

    async def _begun(
        self, requests: Sequence[str], answers: Sequence[Answer], mark: str | None = None
    ) -> Script:
        """A script of these requests that has begun, and is recorded if it must be."""
        _require_short(requests)
        last = (frames.DISMISSED,) if self._enrolment else ()
        recorded = [Answer() for _ in self._enrolment]
        whole = (*self._enrolment, *requests, *last)
        script = await self._opened(whole, [*recorded, *answers], mark)
        self.group = await script.found()
        for answer in recorded:
            done = await answer.given()
            if not done.ok:
                raise not_recorded(done)
        return script

    async def _opened(
        self, requests: Sequence[str], answers: Sequence[Answer], mark: str | None
    ) -> Script:
        tries = _TRIES
        while True:
            form = self._sessions.form
            script = Script(self._become, form, requests, mark, told=form.has_input)
            self._script = script
            script.expect(answers)
            try:
                await self._sessions.open(script)
                return script
            except asyncssh.ChannelOpenError as error:
                if not self._waits:
                    raise
                if not tries:
                    raise Refused(f"the host opens no session: {error.reason}") from error
            # A session may be one for the host for a while after it has ended for us.
            tries = _TRIES if await self._sessions.room() else tries - 1

    async def _did(self, work: str) -> Completed:
        """Work on a file of input, which is a change if the command is one."""
        request = frames.change(work) if self.is_enrolled else frames.plain(work)
        (done,) = await self.ask((request,))
        if not done.ok:
            raise StepFailed(f"can't lay down input on the host: {done.error_text}")
        return done

    async def _removed(self, file: str) -> None:
        other = Single(self._sessions, self._become)
        with suppress(KubexmError):
            await other.ask((frames.request(("rm", "-f", "--", file)),))


async def form_of(connection: asyncssh.SSHClientConnection, held: Refused) -> Form:
    """How a host that holds no shell takes scripts; `Refused` with all that was tried."""
    tried = [held.message]
    for form in _FORMS:
        script = Script(None, form, (_GREETED,))
        greeted = Answer()
        script.expect((greeted,))
        try:
            async with asyncio.timeout(START_SECONDS):
                await script.open(connection)
                script.greet()
                answer = await greeted.given()
            return replace(form, has_input=answer.stdout == _GREETING)
        except (Refused, TimeoutError):
            tried.append(f"{_NAMES[form]}: {script.last_words}")
        finally:
            script.close()
    raise Refused("; ".join(tried), hint=LOGIN_HINT)


_NAMES = dict(zip(_FORMS, ("by `sh -c`", "by `sh -c` without quotes"), strict=True))


def _require_short(requests: Sequence[str]) -> None:
    size = len(frames.joined(requests))
    if size > LONGEST:
        raise StepFailed(
            f"a command of {size} bytes is too long for a host without a shell that stays:"
            f" at most {LONGEST}",
            hint="write what is long to a file on the host, in a step before this one",
        )


async def _small(data: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    async for piece in data:
        for start in range(0, len(piece), PIECE):
            yield piece[start : start + PIECE]


async def _nothing() -> AsyncIterator[bytes]:
    nothing: tuple[bytes, ...] = ()
    for piece in nothing:
        yield piece
