"""Logins at a real server whose door is sometimes stuck, or whose visitors have to be asked."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import asyncssh
import pytest
from msgspec.structs import replace

from kubexm.connector.ssh.dial import Dialer
from kubexm.connector.ssh.racing import PATIENCE_SECONDS
from kubexm.connector.ssh.target import Credentials, HostKeys, Target


class Street:
    """The way to a server, on which some who come get no farther; it counts all of them."""

    def __init__(self, port: int, stuck: int) -> None:
        self._port = port
        self._stuck = stuck
        self._under_way = list[asyncio.Task[None]]()

    @property
    def came(self) -> int:
        return len(self._under_way)

    def meet(self, near: asyncio.StreamReader, answer: asyncio.StreamWriter) -> None:
        self._under_way.append(asyncio.create_task(self._serve(near, answer)))

    async def emptied(self) -> None:
        await asyncio.gather(*self._under_way)

    async def _serve(self, near: asyncio.StreamReader, answer: asyncio.StreamWriter) -> None:
        if self.came <= self._stuck:
            await near.read()
        else:
            far, onward = await asyncio.open_connection("127.0.0.1", self._port)
            await asyncio.gather(_pass_on(near, onward), _pass_on(far, answer))
        answer.close()
        await answer.wait_closed()


async def _pass_on(source: asyncio.StreamReader, to: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await source.read(1 << 16):
            to.write(data)
            await to.drain()
    to.close()


@pytest.fixture
def key(tmp_path: Path) -> Path:
    path = tmp_path / "key"
    asyncssh.generate_private_key("ssh-ed25519").write_private_key(path)
    asyncssh.read_private_key(path).write_public_key(path.with_suffix(".pub"))
    return path


@asynccontextmanager
async def street(
    key: Path, credentials: Credentials, stuck: int
) -> AsyncIterator[tuple[Street, Target]]:
    """A way to a server that lets the key in, and the server as the one who dials sees it."""
    own = asyncssh.generate_private_key("ssh-ed25519")
    allowed = asyncssh.import_authorized_keys(key.with_suffix(".pub").read_text())
    async with asyncssh.listen(
        "127.0.0.1", 0, server_host_keys=[own], authorized_client_keys=allowed
    ) as server:
        way = Street(server.get_port(), stuck)
        async with await asyncio.start_server(way.meet, "127.0.0.1", 0) as door:
            port = door.sockets[0].getsockname()[1]
            known = key.with_name("known_hosts")
            known.write_text(f"[127.0.0.1]:{port} {own.export_public_key().decode()}")
            yield way, Target("127.0.0.1", port, "root", credentials, HostKeys((known,)))
            await way.emptied()


@pytest.mark.slow
def test_a_login_that_stands_still_is_overtaken_by_the_next(key: Path) -> None:
    async def visit() -> tuple[int, str]:
        async with street(key, Credentials(keys=(key,)), stuck=1) as (way, target):
            connection = await Dialer().connect(target)
            user = str(connection.get_extra_info("username"))
            connection.close()
            await connection.wait_closed()
            return way.came, user

    assert asyncio.run(visit()) == (2, "root")


@pytest.mark.slow
def test_who_may_have_to_ask_a_person_has_no_rival(key: Path) -> None:
    asked = asyncio.Event()

    async def ponder(question: asyncio.StreamReader, answer: asyncio.StreamWriter) -> None:
        asked.set()
        await question.read()
        answer.close()

    async def visit() -> int:
        agent = str(key.with_name("agent"))
        async with (
            await asyncio.start_unix_server(ponder, agent),
            street(key, Credentials(agent=agent), stuck=0) as (way, target),
        ):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(PATIENCE_SECONDS + 1):
                    await Dialer().connect(target)
            return way.came

    assert asyncio.run(visit()) == 1
    assert asked.is_set()


def test_a_key_that_is_trusted_on_first_use_is_noted_once(key: Path) -> None:
    noted = key.with_name("noted")

    async def visit() -> int:
        async with street(key, Credentials(keys=(key,)), stuck=0) as (way, target):
            dialer, trusting = Dialer(), HostKeys((noted,), trust="first-use")
            for _ in range(2):
                connection = await dialer.connect(replace(target, host_keys=trusting))
                connection.close()
                await connection.wait_closed()
            return way.came

    assert asyncio.run(visit()) == 2
    assert len(noted.read_text().splitlines()) == 1
