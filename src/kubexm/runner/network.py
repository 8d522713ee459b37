"""Who answers on the network, as seen from a host, and who listens on it."""

from __future__ import annotations

import re

import msgspec

from kubexm.connector.base import C_LOCALE
from kubexm.errors import CommandFailed
from kubexm.runner.causes import NO_SUCH_TOOL
from kubexm.runner.host import Command, Completed, Host

_PATIENCE = 5
_KNOCK = 'exec 3<>"/dev/tcp/$0/$1"'
_OWNER = re.compile(r'users:\(\("((?:[^"\\]|\\.)*)",pid=(\d+)')


class Listener(msgspec.Struct, frozen=True):
    """Somebody who listens at a port."""

    protocol: str
    address: str
    port: int
    process: str = ""
    """The name of the program; nothing unless root asks."""
    pid: int | None = None


def port_command(host: Host, address: str, port: int, seconds: float = _PATIENCE) -> Command:
    """Knock at a port; success means that it is open."""
    knock = ("bash", "-c", _KNOCK, address, str(port))
    return host.command("timeout", f"{seconds:g}", *knock, sudo=False, env=C_LOCALE)


def url_command(host: Host, url: str) -> Command:
    """Ask for a URL; `status_of` reads the answer."""
    options = ("-s", "-S", "-o", "/dev/null", "-m", str(_PATIENCE), "-w", "%{http_code}")
    return host.command("curl", *options, "--", url, sudo=False, env=C_LOCALE)


def status_of(answer: Completed) -> int | None:
    """The status of the HTTP answer; None if there was none."""
    _require_tool("curl", answer)
    return int(answer.text) if answer.ok else None


def listeners_command(host: Host, *, sudo: bool | None = None) -> Command:
    """Ask who listens; `listeners_of` reads the answer."""
    return host.command("ss", "-Hltunp", sudo=sudo, env=C_LOCALE)


def listeners_of(answer: Completed) -> tuple[Listener, ...]:
    """Everybody who listens, at TCP and UDP ports."""
    _require_tool("ss", answer)
    lines = Host.checked(("ss", "-Hltunp"), answer).text.splitlines()
    return tuple(_listener(line) for line in lines if len(line.split()) > 5)


async def listeners(host: Host, *, sudo: bool | None = None) -> tuple[Listener, ...]:
    """Everybody who listens on a host."""
    (answer,) = await host.batch((listeners_command(host, sudo=sudo),))
    return listeners_of(answer)


async def reaches(host: Host, address: str, port: int, seconds: float = _PATIENCE) -> bool:
    """Whether somebody answers there, asked from this host, within so many seconds."""
    (answer,) = await host.batch((port_command(host, address, port, seconds),))
    _require_tool("bash", answer)
    return answer.ok


def _listener(line: str) -> Listener:
    protocol, _, _, _, local, *_ = line.split()
    address, _, port = local.rpartition(":")
    owner = _OWNER.search(line)
    if owner is None:
        return Listener(protocol, address.strip("[]"), int(port))
    return Listener(protocol, address.strip("[]"), int(port), owner[1], int(owner[2]))


def _require_tool(name: str, answer: Completed) -> None:
    if answer.exit == NO_SUCH_TOOL:
        raise CommandFailed(
            (name,), answer.exit, stderr=answer.error_text, hint=f"install {name} on the host"
        )
