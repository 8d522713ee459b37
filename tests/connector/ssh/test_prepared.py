"""Logins of many hosts by the same settings, at a real server."""

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any

import asyncssh
import pytest
from asyncssh.constants import MSG_IGNORE, MSG_USERAUTH_REQUEST
from tests.connector.ssh.test_proof import door

from kubexm.connector.ssh import hush, prepared
from kubexm.connector.ssh.dial import Dialer
from kubexm.connector.ssh.target import Credentials, Target


def log_in(place: Path, times: int = 2) -> list[Any]:
    """The settings of so many connections, each of which has run a command."""
    key = place / "key"
    asyncssh.generate_private_key("ssh-rsa").write_private_key(key)

    async def visit() -> list[Any]:
        async with door(key, place) as (_, port, host_keys):
            dialer = Dialer()
            target = Target("127.0.0.1", port, "root", Credentials(keys=(key,)), host_keys)
            found = await asyncio.gather(*(dialer.connect(target) for _ in range(times)))
            for connection in found:
                assert connection.get_extra_info("username") == "root"
                assert connection.get_extra_info("host") == "127.0.0.1"
                connection.close()
                await connection.wait_closed()
            return [connection._options for connection in found]

    return asyncio.run(visit())


def test_settings_are_shared_and_keys_that_note_something_are_not(tmp_path: Path) -> None:
    first, second = log_in(tmp_path)

    assert first.known_hosts is second.known_hosts
    assert first.kwargs is second.kwargs
    assert first.client_keys[0] is not second.client_keys[0]


def test_without_the_parts_of_asyncssh_its_usual_way_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prepared, "_PARTS", ("what_no_version_has",))

    first, second = log_in(tmp_path)

    assert first.kwargs is not second.kwargs


def test_packets_pass_without_a_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    said: list[str] = []
    monkeypatch.setattr(
        "asyncssh.logging.SSHLogger.packet", lambda *words, **_: said.append(words[3])
    )

    log_in(tmp_path)

    assert said == []


@pytest.mark.parametrize(("cipher", "ahead"), [("aes128-gcm@openssh.com", 0), ("aes256-cbc", 1)])
def test_an_empty_packet_goes_ahead_only_where_blocks_are_chained(
    monkeypatch: pytest.MonkeyPatch, cipher: str, ahead: int
) -> None:
    sent: list[int] = []
    send: Any = hush._send

    def noted(self: Any, number: int, *parts: bytes, **named: Any) -> None:
        sent.append(number)
        send(self, number, *parts, **named)

    async def visit() -> None:
        key = asyncssh.generate_private_key("ssh-ed25519")
        async with asyncssh.listen(
            "127.0.0.1", 0, server_host_keys=[key], encryption_algs=[cipher]
        ) as server:
            with suppress(asyncssh.PermissionDenied):
                await asyncssh.connect(
                    "127.0.0.1",
                    server.get_port(),
                    known_hosts=None,
                    config=None,
                    client_keys=None,
                    agent_path=None,
                    encryption_algs=[cipher],
                )

    hush.hush()
    monkeypatch.setattr(hush, "_send", noted)
    asyncio.run(visit())

    assert sent.count(MSG_USERAUTH_REQUEST) > 0
    assert min(sent.count(MSG_IGNORE), 1) == ahead


def test_an_asyncssh_without_those_parts_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("asyncssh.packet.SSHPacketLogger")
    monkeypatch.setattr(hush, "_send", None)
    before = asyncssh.connection.SSHConnection.send_packet

    hush.hush()

    assert asyncssh.connection.SSHConnection.send_packet is before
