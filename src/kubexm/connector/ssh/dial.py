"""Connections to hosts: opened with what was loaded once, a few at a time, through bastions."""

from __future__ import annotations

import asyncio
import errno
import random
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncssh

from kubexm.connector.ssh import clientconfig, prepared, proof, racing, silence
from kubexm.connector.ssh.calls import AT_ONCE, Calls
from kubexm.connector.ssh.hostkeys import KeyBook
from kubexm.connector.ssh.hush import hush
from kubexm.connector.ssh.target import SSH_PORT, Credentials, HostKeys, Target
from kubexm.errors import HostUnreachable, Refused

AT_ONCE_PER_BASTION = 8
BULK_AT_ONCE = 6
TRIES = 5
"""Of a login that the host drops before it has begun, as sshd does when too many come at once."""
ALIVE_SECONDS = 5.0
ALIVE_TIMES = 3
_KEX = (
    "mlkem768x25519-sha256",
    "curve25519-sha256",
    "curve25519-sha256@libssh.org",
    "ecdh-sha2-nistp256",
    "ecdh-sha2-nistp384",
    "diffie-hellman-group16-sha512",
    "diffie-hellman-group14-sha256",
)
"""Without group exchange, which costs half a second of reckoning."""
_CIPHERS = (
    "aes128-gcm@openssh.com",
    "aes256-gcm@openssh.com",
    "chacha20-poly1305@openssh.com",
    "aes128-ctr",
    "aes256-ctr",
)


class Dialer:
    """Opens the connections of a run; bastions are shared."""

    def __init__(self, calls: Calls | None = None) -> None:
        """`calls`: connections that are under way already."""
        self._calls = calls or Calls()
        self._gate = asyncio.Semaphore(AT_ONCE)
        self.bulk = asyncio.Semaphore(BULK_AT_ONCE)
        """For whoever sends much, so that the loop keeps serving the others."""
        self._bastions: dict[Target, _Bastion] = {}
        self._books: dict[HostKeys, KeyBook] = {}
        self._keys: dict[Credentials, asyncio.Task[list[Any]]] = {}
        self._options: dict[object, asyncssh.SSHClientConnectionOptions] = {}
        hush()
        silence.note_only()

    async def connect(self, target: Target) -> asyncssh.SSHClientConnection:
        """A connection to a host; `HostUnreachable` says why there is none."""
        way = clientconfig.detour(target)
        if way.jump is None:
            async with self._gate:
                return await self._race(target, None, way.program)
        jump = way.jump
        bastion = self._bastions.setdefault(jump, _Bastion(jump))
        async with bastion.opened(lambda: self.connect(jump)) as tunnel, self._gate:
            return await self._race(target, tunnel)

    def close(self) -> None:
        """Let go of the bastions, and of calls that nobody asked for."""
        self._calls.close()
        for bastion in self._bastions.values():
            bastion.close()

    async def _race(
        self,
        target: Target,
        tunnel: asyncssh.SSHClientConnection | None,
        program: str | None = None,
    ) -> asyncssh.SSHClientConnection:
        visitors: list[_Visitor] = []

        def meet() -> _Visitor:
            visitors.append(_Visitor(target, self._book(target), program))
            return visitors[-1]

        def has_room() -> bool:
            # An agent may ask a person, who is not to be asked again and again.
            asks = target.credentials.agent and any(visitor.has_begun for visitor in visitors)
            return not asks and not self._gate.locked()

        return await racing.first(
            lambda: self._login(target, tunnel, meet), lambda other: other.abort(), has_room
        )

    async def _login(
        self,
        target: Target,
        tunnel: asyncssh.SSHClientConnection | None,
        meet: Callable[[], _Visitor],
    ) -> asyncssh.SSHClientConnection:
        for left in reversed(range(TRIES)):
            visitor = meet()
            try:
                return await self._try(target, tunnel, visitor)
            except _DROPPED as error:
                if not left or visitor.has_begun:
                    raise _unreachable(target, error, visitor) from error
            except (OSError, asyncssh.Error) as error:
                raise _unreachable(target, error, visitor) from error
            # Those that were dropped together must not come back together.
            await asyncio.sleep(random.uniform(0.1, 0.5) * (TRIES - left))
        raise AssertionError("the last try ends above")

    async def _try(
        self, target: Target, tunnel: asyncssh.SSHClientConnection | None, visitor: _Visitor
    ) -> asyncssh.SSHClientConnection:
        keys = await self._loaded(target.credentials)
        async with self._answered(target, tunnel) as called:
            if called is not None:
                options = self._prepared(target, visitor.book, keys)
                if prepared.is_possible(options):
                    address = target.address, target.port or SSH_PORT
                    return await prepared.connect(options, visitor, address, called)
            connection, _ = await asyncssh.create_connection(
                lambda: visitor,
                target.address,
                **_said(port=target.port),
                **_settings(target, visitor.book, keys),
                sock=called,
                tunnel=tunnel,
                proxy_command=visitor.proxy_command,
                config=[target.config] if target.config is not None else None,
            )
        return connection

    def _prepared(
        self, target: Target, book: KeyBook, keys: list[Any] | None
    ) -> asyncssh.SSHClientConnectionOptions:
        """The settings of all whom we visit as the same user, in the same way."""
        kind = target.user, target.credentials, target.host_keys
        if (options := self._options.get(kind)) is None:
            options = self._options[kind] = asyncssh.SSHClientConnectionOptions(
                config=None, **_settings(target, book, keys)
            )
        return options

    @asynccontextmanager
    async def _answered(
        self, target: Target, tunnel: asyncssh.SSHClientConnection | None
    ) -> AsyncIterator[socket.socket | None]:
        """The connection to a host that was called already, if it was."""
        if tunnel is not None or target.config is not None:
            yield None
            return
        called = await self._calls.answered(target.address, target.port or SSH_PORT)
        try:
            yield called
        except BaseException:
            if called is not None:
                called.close()
            raise

    def _book(self, target: Target) -> KeyBook:
        if (book := self._books.get(target.host_keys)) is None:
            book = self._books[target.host_keys] = KeyBook(target.host_keys)
        return book

    async def _loaded(self, credentials: Credentials) -> list[Any] | None:
        """The private keys, read once; unlocking one takes a while, so it is done elsewhere."""
        if not credentials.keys:
            return None
        if (loading := self._keys.get(credentials)) is None:
            loading = asyncio.create_task(asyncio.to_thread(_load, credentials))
            self._keys[credentials] = loading
        return await asyncio.shield(loading)


def _settings(target: Target, book: KeyBook, keys: list[Any] | None) -> dict[str, Any]:
    """All that has nothing to do with the way to the host."""
    return {
        **_said(username=target.user, client_keys=keys),
        "password": target.credentials.password,
        "agent_path": target.credentials.agent,
        "known_hosts": book.known,
        "kex_algs": _KEX,
        "encryption_algs": _CIPHERS,
        "compression_algs": None,
        "keepalive_interval": ALIVE_SECONDS,
        "keepalive_count_max": ALIVE_TIMES,
    }


def _said(**settings: Any) -> dict[str, Any]:
    """Settings that are given; for the others asyncssh looks into the client configuration."""
    return {name: value for name, value in settings.items() if value is not None}


class _Bastion:
    """A host on the way to others: one connection for all of them, opened when it is needed."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._gate = asyncio.Semaphore(AT_ONCE_PER_BASTION)
        self._opening = asyncio.Lock()
        self._connection: asyncssh.SSHClientConnection | None = None

    @asynccontextmanager
    async def opened(
        self, connect: Callable[[], Awaitable[asyncssh.SSHClientConnection]]
    ) -> AsyncIterator[asyncssh.SSHClientConnection]:
        async with self._gate:
            yield await self._open(connect)

    async def _open(
        self, connect: Callable[[], Awaitable[asyncssh.SSHClientConnection]]
    ) -> asyncssh.SSHClientConnection:
        async with self._opening:
            if self._connection is None or self._connection.is_closed():
                try:
                    self._connection = await connect()
                except HostUnreachable as error:
                    raise HostUnreachable(
                        f"its bastion can't be reached: {error.message}", hint=error.hint
                    ) from error
            return self._connection

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()


class _Visitor(asyncssh.SSHClient):
    """One login as asyncssh sees it: believes in keys, and notes how far it came."""

    def __init__(self, target: Target, book: KeyBook, program: str | None) -> None:
        self._target = target
        self.book = book
        self.program = program
        """What speaks to the host for us."""
        self.shown: asyncssh.SSHKey | None = None
        """The host key that was not believed."""
        self.has_begun = False
        """Whether the host answered at all before it hung up."""
        self._connection: asyncssh.SSHClientConnection

    def connection_made(self, conn: asyncssh.SSHClientConnection) -> None:
        self._connection = conn

    @property
    def proxy_command(self) -> tuple[str, ...] | None:
        """The program in a shell, as for `ssh`."""
        if self.program is None:
            return None
        # asyncssh takes what is complained of for a part of the talk, and the end of complaints
        # for that of the talk: the outer shell keeps them open, and empty.
        return ("/bin/sh", "-c", f"(exec {self.program}) 2>/dev/null; exit $?")

    def validate_host_public_key(
        self, host: str, addr: str, port: int, key: asyncssh.SSHKey
    ) -> bool:
        if self.book.accepts(self._target, key):
            return True
        self.shown = key
        return False

    def begin_auth(self, username: str) -> None:
        self.has_begun = True
        if self._target.credentials.is_one_key:
            proof.begin_with(self._connection)


def _load(credentials: Credentials) -> list[Any]:
    return [_loaded(path, credentials.passphrase) for path in credentials.keys]


def _loaded(path: Path, passphrase: str | None) -> Any:
    try:
        key = asyncssh.read_private_key(path, passphrase)
    except FileNotFoundError:
        raise Refused(f"there is no key `{path}`", hint="name a private key under `keys`") from None
    except (asyncssh.KeyImportError, asyncssh.KeyEncryptionError, OSError) as error:
        raise _not_opened(path, passphrase, error) from error
    certificate = path.with_name(f"{path.name}-cert.pub")
    if certificate.exists():
        return key, asyncssh.read_certificate(certificate)
    return key


def _not_opened(path: Path, passphrase: str | None, error: Exception) -> Refused:
    hint = "give it as a reference under `passphrase`, or let an agent hold the key"
    if isinstance(error, asyncssh.KeyEncryptionError):
        return Refused(f"can't open the key `{path}`: the passphrase is wrong", hint=hint)
    if passphrase is None and "assphrase" in str(error):
        return Refused(f"can't open the key `{path}`: it has a passphrase", hint=hint)
    return Refused(f"can't read the key `{path}`: {error}", hint="name a private key under `keys`")


_DROPPED = (asyncssh.ConnectionLost, ConnectionResetError)
_REASONS = {
    errno.ECONNREFUSED: ("refused the connection", "see that sshd runs there, on this port"),
    errno.EHOSTUNREACH: ("can't be reached", "see that it is up, and on the same network"),
    errno.ENETUNREACH: ("can't be reached", "there is no way to its network from here"),
    errno.ETIMEDOUT: ("did not answer", "see that it is up, and that no firewall is in between"),
}


def _unreachable(target: Target, error: Exception, visitor: _Visitor) -> HostUnreachable:
    """What went wrong, in words that say what to do."""
    if isinstance(error, asyncssh.HostKeyNotVerifiable):
        return visitor.book.refusal(target, visitor.shown)
    if isinstance(error, asyncssh.PermissionDenied):
        return _not_let_in(target)
    if isinstance(error, socket.gaierror):
        return HostUnreachable(
            f"`{target.address}` is no name that is known here",
            hint="give its `address` as a number, or add the name to `/etc/hosts`",
        )
    if isinstance(error, OSError) and error.errno in _REASONS:
        what, hint = _REASONS[error.errno]
        return HostUnreachable(f"{target} {what}", hint=hint)
    if isinstance(error, _DROPPED):
        return _hung_up(target, visitor)
    return HostUnreachable(f"{target}: {error}")


def _hung_up(target: Target, visitor: _Visitor) -> HostUnreachable:
    if visitor.program is not None:
        return HostUnreachable(
            f"{target} can't be reached by `{visitor.program}`",
            hint="run this `ProxyCommand` of the client configuration yourself to see what it says",
        )
    return HostUnreachable(
        f"{target} hung up {TRIES} times before the login",
        hint="sshd may have too many logins at once, or refuse this address: see its log",
    )


def _not_let_in(target: Target) -> HostUnreachable:
    credentials, who = target.credentials, f"`{target.user}`" if target.user else "us"
    tried = [f"the key `{path}`" for path in credentials.keys] or ["the usual keys in `~/.ssh`"]
    tried += ["the keys of the agent"] * (credentials.agent is not None)
    tried += ["a password"] * (credentials.password is not None)
    return HostUnreachable(
        f"{target} does not let {who} in; tried: {', '.join(tried)}",
        hint="add the public key to `~/.ssh/authorized_keys` of this user there, or give other"
        " credentials under `ssh`",
    )
