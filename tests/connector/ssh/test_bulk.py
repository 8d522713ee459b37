"""Data that is sent past what asyncssh does with each packet, to a real server that counts it."""

from __future__ import annotations

import asyncio
from hashlib import sha256
from typing import Any

import asyncssh
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubexm.connector.ssh import bulk

SIZES = st.lists(st.one_of(st.integers(1, 300), st.integers(1, 300_000)), min_size=1, max_size=12)
"""Of pieces: some below and some beyond a packet, and what a host takes at once."""


async def _digest(process: asyncssh.SSHServerProcess[bytes]) -> None:
    digest, size = sha256(), 0
    while data := await process.stdin.read(1 << 16):
        digest.update(data)
        size += len(data)
    process.stdout.write(f"{size} {digest.hexdigest()}".encode())
    process.exit(0)


class Visitor(asyncssh.SSHClientSession[bytes]):
    """Writes pieces as fast as it may, and keeps what is answered."""

    def __init__(self) -> None:
        self.said = b""
        self.usual = 0
        """Bytes that went the usual way of asyncssh."""
        self._may_write = asyncio.Event()
        self._may_write.set()

    def connection_made(self, chan: asyncssh.SSHClientChannel[bytes]) -> None:
        self._channel = chan
        self._usually = chan.write
        setattr(chan, "write", self._noted)  # noqa: B010  # mypy knows it for a method

    def _noted(self, data: bytes, datatype: asyncssh.DataType = None) -> None:
        self.usual += len(data)
        self._usually(data, datatype)

    def data_received(self, data: bytes, datatype: asyncssh.DataType) -> None:
        self.said += data

    def pause_writing(self) -> None:
        self._may_write.clear()

    def resume_writing(self) -> None:
        self._may_write.set()

    async def write(self, pieces: list[bytes]) -> None:
        for piece in pieces:
            bulk.write(self._channel, piece)
            await self._may_write.wait()
        self._channel.write_eof()
        await self._channel.wait_closed()


def sent(pieces: list[bytes], *ciphers: str, **settings: Any) -> tuple[str, int]:
    """Size and digest of what a server was sent, and how many bytes went the usual way."""

    async def send() -> tuple[str, int]:
        key = asyncssh.generate_private_key("ssh-ed25519")
        own = asyncssh.import_authorized_keys(key.export_public_key().decode())
        visitor = Visitor()
        async with (
            asyncssh.listen(
                "127.0.0.1", 0, server_host_keys=[key], authorized_client_keys=own,
                process_factory=_digest, encoding=None,
            ) as server,
            asyncssh.connect(
                "127.0.0.1", server.get_port(), client_keys=[key], known_hosts=None, config=None,
                encryption_algs=ciphers, compression_algs=None, **settings,
            ) as connection,
        ):  # fmt: skip
            await connection.create_session(lambda: visitor, encoding=None)
            await visitor.write(pieces)
        return visitor.said.decode(), visitor.usual

    return asyncio.run(send())


def expected(pieces: list[bytes]) -> str:
    data = b"".join(pieces)
    return f"{len(data)} {sha256(data).hexdigest()}"


def pieces_of(sizes: list[int]) -> list[bytes]:
    return [bytes([number % 251]) * size for number, size in enumerate(sizes)]


@settings(max_examples=15)
@given(SIZES)
def test_what_is_sent_arrives(sizes: list[int]) -> None:
    pieces = pieces_of(sizes)

    assert sent(pieces, "aes128-gcm@openssh.com")[0] == expected(pieces)


def test_much_goes_past_the_usual_way() -> None:
    pieces = pieces_of([1 << 16] * 16)

    assert sent(pieces, "aes256-gcm@openssh.com") == (expected(pieces), 0)


def test_more_than_a_host_takes_at_once_waits_for_it() -> None:
    pieces = pieces_of([8 << 20])

    arrived, usual = sent(pieces, "aes128-gcm@openssh.com")

    assert arrived == expected(pieces)
    assert 0 < usual < 8 << 20


def test_keys_are_changed_when_they_are_due() -> None:
    pieces = pieces_of([1 << 16] * 64)

    arrived, usual = sent(pieces, "aes128-gcm@openssh.com", rekey_bytes=1 << 20)

    assert arrived == expected(pieces)
    assert 0 < usual < 4 << 20


@pytest.mark.parametrize("cipher", ["chacha20-poly1305@openssh.com", "aes128-ctr"])
def test_other_ciphers_go_the_usual_way(cipher: str) -> None:
    pieces = pieces_of([1 << 16] * 4)

    assert sent(pieces, cipher) == (expected(pieces), 4 << 16)


def test_a_channel_that_is_not_as_expected_goes_the_usual_way() -> None:
    class Other:
        said = b""

        def write(self, data: bytes) -> None:
            self.said += data

    other: Any = Other()
    bulk.write(other, b"all of it")

    assert other.said == b"all of it"
