"""Hosts that hold no shell, behind a server that writes down each command that it is told."""

from __future__ import annotations

import asyncio
import re
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path
from typing import Any

import asyncssh
import pytest

from kubexm.connector.base import Command
from kubexm.connector.source import Source
from kubexm.connector.ssh.connector import SshConnector
from kubexm.connector.ssh.dial import Dialer
from kubexm.connector.ssh.target import Credentials, HostKeys, Target
from kubexm.connector.ssh.transfer import SMALL
from kubexm.errors import Refused

SECRET = "correct horse battery staple"
_WORD = re.compile(r"[A-Za-z0-9+/=]{16,}")


class Door:
    """What stands in front of commands: it starts no shell that stays, and notes what it starts."""

    def __init__(self, *, has_input: bool, is_parsed: bool) -> None:
        self.commands: list[str] = []
        self._stdin = asyncio.subprocess.PIPE if has_input else asyncio.subprocess.DEVNULL
        self._is_parsed = is_parsed
        self._running: list[asyncio.Task[None]] = []

    def serve(self, process: asyncssh.SSHServerProcess[bytes]) -> None:
        self._running.append(asyncio.create_task(self._serve(process)))

    async def left(self) -> None:
        """Return when nothing runs any more."""
        await asyncio.gather(*self._running)

    async def _serve(self, process: asyncssh.SSHServerProcess[bytes]) -> None:
        command = process.command or ""
        self.commands.append(command)
        if command.startswith("exec"):
            process.exit(127)
            return
        argv = ["sh", "-c", command] if self._is_parsed else command.split()
        pipe = asyncio.subprocess.PIPE
        started = await asyncio.create_subprocess_exec(
            *argv, stdin=self._stdin, stdout=pipe, stderr=pipe, start_new_session=True
        )
        handing = asyncio.create_task(_handed(process.stdin, started.stdin))
        await asyncio.gather(
            _handed(started.stdout, process.stdout), _handed(started.stderr, process.stderr)
        )
        handing.cancel()
        code = await started.wait()
        with suppress(OSError):  # who asked may be gone
            process.exit(code)

    def seen(self) -> str:
        """All that was in command lines, with what is encoded there."""
        hidden = [word for text in self.commands for word in _WORD.findall(text)]
        for _ in range(2):  # a script has its input in base64 too
            decoded = [_decoded(word) for word in hidden]
            self.commands += decoded
            hidden = [word for text in decoded for word in _WORD.findall(text)]
        return "\n".join(self.commands)


async def _handed(source: Any, target: Any) -> None:
    """Everything from one stream to another, as far as both want it."""
    with suppress(OSError, asyncssh.Error, asyncssh.BreakReceived, asyncssh.SignalReceived):
        while source is not None and (data := await source.read(1 << 16)):
            if target is not None:
                target.write(data)
                await target.drain()


def _decoded(word: str) -> str:
    try:
        return b64decode(word).decode(errors="replace")
    except ValueError:
        return ""


@asynccontextmanager
async def visited(door: Door, folder: Path) -> AsyncIterator[SshConnector]:
    own, ours = (asyncssh.generate_private_key("ssh-ed25519") for _ in range(2))
    key, known = folder / "key", folder / "known_hosts"
    ours.write_private_key(key)
    ours.write_public_key(key.with_suffix(".pub"))
    allowed = asyncssh.import_authorized_keys(key.with_suffix(".pub").read_text())
    async with asyncssh.listen(
        "127.0.0.1",
        0,
        server_host_keys=[own],
        authorized_client_keys=allowed,
        process_factory=door.serve,
        encoding=None,
    ) as server:
        port = server.get_port()
        known.write_text(f"[127.0.0.1]:{port} {own.export_public_key().decode()}")
        target = Target("127.0.0.1", port, "root", Credentials(keys=(key,)), HostKeys((known,)))
        state = str(folder / "state")
        host = SshConnector(target, Dialer(), state_dir=state, holds_secret=lambda t: SECRET in t)
        await host.open()
        try:
            yield host
        finally:
            await host.close()
            await door.left()


def visit(door: Door, folder: Path, work: Callable[[SshConnector], Awaitable[None]]) -> str:
    """Do something on such a host; all that was seen of it in command lines."""

    async def main() -> None:
        async with visited(door, folder) as host:
            await work(host)

    asyncio.run(main())
    return door.seen()


@pytest.mark.parametrize("is_parsed", [True, False])
@pytest.mark.parametrize("size", [1, 10_000])
def test_content_is_in_no_command_line_where_commands_get_input(
    tmp_path: Path, size: int, is_parsed: bool
) -> None:
    data = SECRET.encode() * size

    async def work(host: SshConnector) -> None:
        await host.put(str(tmp_path / "there"), data, mode=0o600)
        done = await host.exec(Command(("cat",), stdin=SECRET.encode()))
        assert done.text == SECRET

    seen = visit(Door(has_input=True, is_parsed=is_parsed), tmp_path, work)

    assert (tmp_path / "there").read_bytes() == data
    assert SECRET not in seen
    assert b64encode(data).decode()[:16] not in seen


@pytest.mark.parametrize("is_parsed", [True, False])
def test_content_that_is_private_is_refused_where_commands_get_no_input(
    tmp_path: Path, is_parsed: bool
) -> None:
    there = str(tmp_path / "there")

    async def work(host: SshConnector) -> None:
        for refused in (
            lambda: host.put(there, b"anything", mode=0o600),
            lambda: host.put(there, SECRET.encode()),
            lambda: host.put(there, b"x" * 100_000 + SECRET.encode()),
            lambda: host.exec(Command(("cat",), stdin=SECRET.encode())),
            lambda: host.batch([Command(("cat",), stdin=SECRET.encode())]),
        ):
            with pytest.raises(Refused, match="the host hands on no input") as error:
                await refused()
            assert "ForceCommand" in error.value.hint

    seen = visit(Door(has_input=False, is_parsed=is_parsed), tmp_path, work)

    assert SECRET not in seen
    assert not (tmp_path / "there").exists()


def test_a_large_file_that_is_private_is_refused_too(tmp_path: Path) -> None:
    large = tmp_path / "large"
    large.write_bytes(bytes(SMALL + 1))

    async def work(host: SshConnector) -> None:
        refused = pytest.raises(Refused, match="the host hands on no input")
        with closing(Source(large)) as source, refused:
            await host.upload(source, str(tmp_path / "there"), mode=0o600)

    visit(Door(has_input=False, is_parsed=True), tmp_path, work)


def test_what_everyone_may_read_is_written_where_commands_get_no_input(tmp_path: Path) -> None:
    there, kept = tmp_path / "there", tmp_path / "state" / "kept"
    kept.parent.mkdir()

    async def work(host: SshConnector) -> None:
        await host.put(str(there), b"x" * 100_000, mode=0o644)
        await host.put(str(kept), b"ours", mode=0o600)

    visit(Door(has_input=False, is_parsed=True), tmp_path, work)

    assert there.read_bytes() == b"x" * 100_000
    assert kept.read_bytes() == b"ours"
