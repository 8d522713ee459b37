"""Logins that begin with the proof of the only key, at a real server that counts what is asked."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import asyncssh
import pytest

from kubexm.connector.ssh import proof
from kubexm.connector.ssh.dial import Dialer
from kubexm.connector.ssh.target import Credentials, HostKeys, Target
from kubexm.errors import HostUnreachable

PASSWORD = "of the test"


class Doorman(asyncssh.SSHServer):
    """Lets in who has the key or the password, and counts the requests that name a key."""

    def __init__(self, key: asyncssh.SSHKey) -> None:
        self._key = key
        self.named = 0

    def public_key_auth_supported(self) -> bool:
        return True

    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        self.named += 1
        return key.public_data == self._key.public_data

    def password_auth_supported(self) -> bool:
        return True

    def validate_password(self, username: str, password: str) -> bool:
        return password == PASSWORD


@pytest.fixture
def keys(tmp_path: Path) -> tuple[Path, Path]:
    """A key that is known, and one that is not."""
    paths = tmp_path / "known", tmp_path / "other"
    for path in paths:
        asyncssh.generate_private_key("ssh-ed25519").write_private_key(path)
    return paths


@asynccontextmanager
async def door(known: Path, place: Path) -> AsyncIterator[tuple[Doorman, int, HostKeys]]:
    doorman = Doorman(asyncssh.read_private_key(known))
    own = asyncssh.generate_private_key("ssh-ed25519")
    async with asyncssh.listen(
        "127.0.0.1", 0, server_host_keys=[own], server_factory=lambda: doorman
    ) as server:
        port = server.get_port()
        file = place / "known_hosts"
        file.write_text(f"[127.0.0.1]:{port} {own.export_public_key().decode()}")
        yield doorman, port, HostKeys((file,))


def log_in(place: Path, known: Path, credentials: Credentials) -> int:
    """How many requests named a key until we were in."""

    async def visit() -> int:
        async with door(known, place) as (doorman, port, host_keys):
            dialer = Dialer()
            target = Target("127.0.0.1", port, "root", credentials, host_keys)
            connection = await dialer.connect(target)
            connection.close()
            await connection.wait_closed()
            return doorman.named

    return asyncio.run(visit())


def test_a_single_key_is_proved_at_once(tmp_path: Path, keys: tuple[Path, Path]) -> None:
    known, _ = keys

    assert log_in(tmp_path, known, Credentials(keys=(known,))) == 1


def test_of_several_keys_the_host_is_asked_first(tmp_path: Path, keys: tuple[Path, Path]) -> None:
    known, other = keys

    # The other one is asked for, the known one is asked for and then proved.
    assert log_in(tmp_path, known, Credentials(keys=(other, known))) == 3


def test_a_key_that_is_not_known_gives_way_to_the_password(
    tmp_path: Path, keys: tuple[Path, Path]
) -> None:
    known, other = keys

    assert log_in(tmp_path, known, Credentials(keys=(other,), password=PASSWORD)) == 1


def test_a_key_that_is_not_known_is_told(tmp_path: Path, keys: tuple[Path, Path]) -> None:
    known, other = keys

    with pytest.raises(HostUnreachable, match="does not let `root` in; tried: the key"):
        log_in(tmp_path, known, Credentials(keys=(other,)))


def test_without_the_parts_of_asyncssh_its_usual_way_is_gone(
    tmp_path: Path, keys: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    known, _ = keys
    monkeypatch.setattr(proof, "_PARTS", ("what_no_version_has",))

    assert log_in(tmp_path, known, Credentials(keys=(known,))) == 2
