"""One running command: its group, its output as it comes, and how it is brought to an end."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol, cast

from kubexm.connector.base import Completed, LineSink
from kubexm.connector.output import Output

_PIPE_CAPACITY = 1 << 20
"""A pipe never holds more than this, so that what a dead process wrote is read to its end."""


class Oversight(Protocol):
    """Whoever has to know which groups there are."""

    def begins(self, group: int) -> None:
        """A command is about to begin; an exception keeps it from that."""

    def ends(self, group: int) -> None:
        """It has ended, or what is left of it may stay."""


class Process(asyncio.SubprocessProtocol):
    """A command in a session of its own; its process id is its group's."""

    def __init__(
        self, limit: int | None, sink: LineSink | None, oversight: Oversight, sudo: bool
    ) -> None:
        loop = asyncio.get_running_loop()
        self._loop = loop
        self._output = {1: Output("stdout", limit, sink), 2: Output("stderr", limit, sink)}
        self._oversight = oversight
        self._sudo = sudo
        self._exited: asyncio.Future[int] = loop.create_future()
        self._transport: asyncio.SubprocessTransport
        self._input = memoryview(b"")
        self._input_pipe = -1

    @classmethod
    async def start(
        cls,
        argv: Sequence[str],
        *,
        stdin: bytes,
        env: Mapping[str, str],
        sink: LineSink | None,
        limit: int | None,
        oversight: Oversight,
        sudo: bool,
        identity: Mapping[str, Any],
    ) -> Process:
        """Start a command whose first line of input lets it go, once who oversees it agrees."""
        process = cls(limit, sink, oversight, sudo)
        # A pipe of our own: asyncio gives a socket, and /dev/stdin can't be opened on that.
        source, feed = os.pipe()
        try:
            await process._loop.subprocess_exec(
                lambda: process, *argv, stdin=source, env=env, start_new_session=True, **identity
            )
            process._admit()
        except BaseException:
            # Without its line of input the command never begins.
            os.close(feed)
            raise
        finally:
            os.close(source)
        process._feed(feed, stdin)
        return process

    @property
    def group(self) -> int:
        return self._transport.get_pid()

    async def completed(self) -> Completed:
        """How the command ended, when it has.

        A process it left in the background may hold the streams open: that one is not awaited.
        """
        status = await asyncio.shield(self._exited)
        for number in self._output:
            self._drain(number)
        # Ended by a signal: what a shell would say.
        code = status if status >= 0 else 128 - status
        return Completed(code, self._output[1].finish(), self._output[2].finish())

    async def end(self, grace: float) -> None:
        """End the group unless the command has ended by itself, and let go of everything."""
        try:
            if not self._exited.done():
                await self._end_group(grace)
        finally:
            self._oversight.ends(self.group)
            self._close_input()
            self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.SubprocessTransport", transport)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self._output[fd].feed(data)

    def process_exited(self) -> None:
        if not self._exited.done():
            self._exited.set_result(self._transport.get_returncode() or 0)

    def _admit(self) -> None:
        try:
            self._oversight.begins(self.group)
        except BaseException:
            self._oversight.ends(self.group)
            self._transport.close()
            raise

    def _feed(self, pipe: int, data: bytes) -> None:
        os.set_blocking(pipe, False)
        self._input, self._input_pipe = memoryview(data), pipe
        self._pump()
        if self._input_pipe >= 0:
            self._loop.add_writer(pipe, self._pump)

    def _pump(self) -> None:
        try:
            sent = os.write(self._input_pipe, self._input)
        except BlockingIOError:
            return
        except BrokenPipeError:  # it does not want to read the rest
            self._close_input()
            return
        self._input = self._input[sent:]
        if not self._input:
            self._close_input()

    def _close_input(self) -> None:
        if self._input_pipe >= 0:
            self._loop.remove_writer(self._input_pipe)
            os.close(self._input_pipe)
            self._input_pipe = -1

    def _drain(self, number: int) -> None:
        pipe = self._transport.get_pipe_transport(number)
        if pipe is None or pipe.is_closing():
            return
        descriptor = pipe.get_extra_info("pipe").fileno()
        taken = 0
        with suppress(BlockingIOError):
            while taken < _PIPE_CAPACITY and (data := os.read(descriptor, 1 << 16)):
                taken += len(data)
                self._output[number].feed(data)

    async def _end_group(self, grace: float) -> None:
        self._signal(signal.SIGTERM)
        try:
            await self._gone_within(grace)
        finally:  # cancelled once more: no more patience
            self._signal(signal.SIGKILL)
        await self._gone_within(grace)

    async def _gone_within(self, seconds: float) -> None:
        # There is no event for the end of a group, only for that of its first process.
        for _ in range(round(seconds / 0.01)):
            if not self._is_alive():
                return
            await asyncio.sleep(0.01)

    def _is_alive(self) -> bool:
        if not self._exited.done():
            return True
        try:
            os.killpg(self.group, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return True

    def _signal(self, number: signal.Signals) -> None:
        if self._sudo:
            name = number.name.removeprefix("SIG")
            kill = ("sudo", "-n", "kill", "-s", name, "--", f"-{self.group}")
            subprocess.run(kill, check=False, capture_output=True)
            return
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.group, number)
