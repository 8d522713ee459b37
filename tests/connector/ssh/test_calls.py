"""Hosts that were called before what speaks SSH was there: a login goes on with that connection."""

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import asyncssh
import pytest

from kubexm.connector.ssh.calls import AT_ONCE, Calls
from kubexm.connector.ssh.dial import Dialer
from kubexm.connector.ssh.target import Credentials, HostKeys, Target
from kubexm.errors import HostUnreachable

PASSWORD = "of the test"


class Doorman(asyncssh.SSHServer):
    """Lets in who has the password."""

    def password_auth_supported(self) -> bool:
        return True

    def validate_password(self, username: str, password: str) -> bool:
        return password == PASSWORD


@asynccontextmanager
async def door(place: Path) -> AsyncIterator[tuple[list[str], Target]]:
    """A server; where those came from that it was visited by, and how it is reached."""
    visits: list[str] = []

    class Noting(Doorman):
        def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
            visits.append(str(conn.get_extra_info("peername")[1]))

    own = asyncssh.generate_private_key("ssh-ed25519")
    async with asyncssh.listen(
        "127.0.0.1", 0, server_host_keys=[own], server_factory=Noting
    ) as server:
        port = server.get_port()
        file = place / "known_hosts"
        file.write_text(f"[127.0.0.1]:{port} {own.export_public_key().decode()}")
        yield (
            visits,
            Target("127.0.0.1", port, "root", Credentials(password=PASSWORD), HostKeys((file,))),
        )


def free_port() -> int:
    """A port at which nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


async def test_a_login_goes_over_the_connection_that_is_under_way(tmp_path: Path) -> None:
    async with door(tmp_path) as (visits, target):
        calls = Calls()
        with closing(Dialer(calls)) as dialer:
            calls.begin(target.address, target.port or 0)
            (called,) = calls._begun.values()
            ours = str(called.getsockname()[1])
            connections = [await dialer.connect(target) for _ in range(2)]
            for connection in connections:
                connection.close()
                await connection.wait_closed()

        assert visits[0] == ours
        assert len(visits) == 2


async def test_a_host_that_refuses_is_told_as_if_it_was_called_now(tmp_path: Path) -> None:
    target = Target("127.0.0.1", free_port(), "root", host_keys=HostKeys((tmp_path / "none",)))
    told = []
    for early in (True, False):
        calls = Calls()
        with closing(Dialer(calls)) as dialer:
            if early:
                calls.begin(target.address, target.port or 0)
            with pytest.raises(HostUnreachable) as refused:
                await dialer.connect(target)
            told.append((refused.value.message, refused.value.hint))

    assert told[0] == told[1]
    assert "refused the connection" in told[0][0]


async def test_a_host_key_that_is_not_known_is_told(tmp_path: Path) -> None:
    async with door(tmp_path) as (_, target):
        (tmp_path / "known_hosts").write_text("")
        calls = Calls()
        with closing(Dialer(calls)) as dialer:
            calls.begin(target.address, target.port or 0)
            with pytest.raises(HostUnreachable, match="is not known"):
                await dialer.connect(target)


def test_who_is_called_in_vain_is_let_go() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        calls = Calls()
        calls.begin(*server.getsockname())
        visitor, _ = server.accept()
        calls.close()

        with visitor:
            assert visitor.recv(1) == b""


def test_names_are_not_looked_up() -> None:
    with closing(Calls()) as calls:
        calls.begin("localhost", 22)

        assert not calls._begun


def test_no_more_are_called_than_may_log_in_at_once() -> None:
    with (
        socket.create_server(("127.0.0.1", 0), backlog=2 * AT_ONCE) as server,
        closing(Calls()) as calls,
    ):
        for last in range(1, AT_ONCE + 10):
            calls.begin(f"127.0.0.{last}", server.getsockname()[1])

        assert len(calls._begun) == AT_ONCE
