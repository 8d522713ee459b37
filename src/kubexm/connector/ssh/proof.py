"""A login that begins with the proof of the key.

asyncssh asks which ways to log in there are, then whether a key would do, and only then proves
that it has it. Whoever has a single key knows what to say: two round trips less for each host, and
two answers less that sshd delays. There is no public name for that, so parts of asyncssh are used
that it keeps for itself; where they are not as expected, it goes its usual way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import asyncssh

if TYPE_CHECKING:
    from asyncssh.auth import _ClientPublicKeyAuth as _Usual
else:
    _Usual = getattr(asyncssh.auth, "_ClientPublicKeyAuth", object)

_WAY = b"publickey"
_PARTS = ("_start", "_send_signed_request")
_PARTS_OF_CONNECTION = ("try_next_auth", "public_key_auth_requested")


class _Proof(_Usual):
    """Proves the key that would have been asked about."""

    async def _start(self) -> None:
        connection = self._conn
        self._keypair = await connection.public_key_auth_requested()
        if self._keypair is None:  # the host knows no such kind of key
            connection._auth_methods = [b"none"]
            connection.try_next_auth()
        else:
            await self._send_signed_request()


def begin_with(connection: asyncssh.SSHClientConnection) -> None:
    """Let the login that is about to begin do so with the proof; if it fails, all else follows."""
    if not is_possible(connection):
        return
    parts: Any = connection

    def once() -> None:
        del parts.try_next_auth  # from now on it is the usual one again
        parts._auth_methods = [_WAY]
        parts._auth = _Proof(parts, _WAY)

    parts.try_next_auth = once


def is_possible(connection: asyncssh.SSHClientConnection) -> bool:
    """Whether asyncssh has the parts that this needs."""
    return (
        all(hasattr(_Usual, name) for name in _PARTS)
        and all(hasattr(type(connection), name) for name in _PARTS_OF_CONNECTION)
        and all(hasattr(connection, name) for name in ("_auth", "_auth_methods"))
    )
