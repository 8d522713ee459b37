"""What the client configuration (`~/.ssh/config`) says of the way to a host."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import asyncssh
import msgspec

from kubexm.connector.ssh.target import Credentials, Target


class Detour(msgspec.Struct, frozen=True):
    """A host is not called directly: it is reached through another, or by a program."""

    jump: Target | None = None
    program: str | None = None
    """A line for a shell, as it stands in the configuration; it speaks to the host for us."""


def detour(target: Target) -> Detour:
    """The way to a host, by what is said of it, and else by its client configuration."""
    if target.jump is not None or target.config is None:
        return Detour(jump=target.jump)
    # Nothing is loaded for this but the configuration itself.
    nothing: dict[str, Any] = dict.fromkeys(("client_keys", "known_hosts", "agent_path"))
    given = {"port": target.port, "username": target.user}
    known = {name: value for name, value in given.items() if value is not None}
    said = asyncssh.SSHClientConnectionOptions(
        host=target.address, config=[target.config], **nothing, **known
    ).config
    if jumps := _given(said.get("ProxyJump")):
        return Detour(jump=_jump(target, jumps.split(",")))
    return Detour(program=_given(said.get("ProxyCommand")))


def _given(value: object) -> str | None:
    return value if isinstance(value, str) and value.lower() != "none" else None


def _jump(target: Target, words: list[str]) -> Target | None:
    """The last of several jump hosts, each reached through the one before it."""
    jump: Target | None = None
    for word in words:
        place = urlsplit(f"ssh://{word.strip().removeprefix('ssh://')}")
        if not place.hostname or place.hostname == target.address.lower():
            return None  # what is said of all hosts is said of this one, too
        jump = Target(
            place.hostname,
            place.port,
            place.username,
            # Neither keys nor password of the host itself are meant for those on the way.
            Credentials(agent=target.credentials.agent),
            target.host_keys,
            jump,
            config=target.config,
        )
    return jump
