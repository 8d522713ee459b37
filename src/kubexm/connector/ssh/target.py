"""How a host is reached by SSH: where it listens, as whom, by what proof, and through whom."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from kubexm.common.secrets import Discreet
from kubexm.connector.ssh.become import NO_PASSWORD, Become

SSH_PORT = 22
Trust = Literal["known", "first-use"]
"""Which host keys are believed: those in a file, or also the first that an unknown host shows."""


class Credentials(Discreet, frozen=True):
    """What proves who we are; tried in this order: agent, keys, password."""

    hidden = frozenset({"passphrase", "password"})

    keys: tuple[Path, ...] = ()
    """Private keys; a certificate beside a key (`KEY-cert.pub`) is used with it."""
    passphrase: str | None = None
    """Opens keys that are locked."""
    password: str | None = None
    agent: str | None = None
    """The socket of an agent."""

    @property
    def is_one_key(self) -> bool:
        """Whether there is no choice of keys."""
        return len(self.keys) == 1 and self.agent is None


class HostKeys(msgspec.Struct, frozen=True):
    """Whom we believe to be who they are."""

    files: tuple[Path, ...] = ()
    """Known hosts; a key that is trusted on first use is added to the first of them."""
    trust: Trust = "known"


class Target(msgspec.Struct, frozen=True):
    """One host."""

    address: str
    port: int | None = None
    """Where sshd listens; None leaves it to the client configuration, as `user` does."""
    user: str | None = None
    credentials: Credentials = Credentials()
    host_keys: HostKeys = HostKeys()
    jump: Target | None = None
    """The host through which it is reached, which may itself be reached through another."""
    become: Become = NO_PASSWORD
    config: Path | None = None
    """A client configuration that is honoured for what is not said here."""

    def __str__(self) -> str:
        where = f"[{self.address}]" if ":" in self.address else self.address
        return where if self.port in (None, SSH_PORT) else f"{where}:{self.port}"
