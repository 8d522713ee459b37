"""What files say of the way to hosts by ssh."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from kubexm.document.fields import (
    FilePath,
    Name,
    OneAddress,
    PathOrFalse,
    Port,
    SecretText,
    UserName,
)
from kubexm.document.forms import BadValue, Filled, Form, called

# No file can hold a zero byte, so this key is ours alone.
DIRECT_KEY = "\0direct"


class ConnectionFields(Form):
    """How a machine is reached by ssh; a path may begin with `~`, or beside the pipeline file."""

    user: UserName | None = None
    """Who logs in; if nothing is said, whom the client configuration names, or who runs kubexm."""
    port: Port | None = None
    """The port; if nothing is said, that of the client configuration, or 22."""
    keys: tuple[FilePath, ...] | None = None
    """Files with private keys."""
    passphrase: SecretText | None = None
    """What opens the keys that are locked."""
    password: SecretText | None = None
    """The password of the user."""
    agent: bool | None = None
    """Whether to ask the agent for keys; if nothing is said, where `SSH_AUTH_SOCK` is set."""
    known_hosts: Annotated[tuple[FilePath, ...], Filled()] | None = None
    """Files with the keys of machines; `~/.ssh/known_hosts` and `/etc/ssh/ssh_known_hosts` if
    nothing is said."""
    trust: Literal["known", "first-use"] | None = None
    """Which machines are trusted: `known`, the default, those whose key is known; `first-use`, also
    those of which no key is known yet, which is kept."""
    config: PathOrFalse | None = None
    """The client configuration; `false` for none; `~/.ssh/config`, if it is there, if nothing is
    said."""


class JumpSpec(ConnectionFields):
    """A machine on the way to others; a bare name is short for `{host: …}`, and `false` for none.

    Settings that it does not have are those of `spec.ssh`, without `jump` and `become`.
    """

    direct: bool = called(DIRECT_KEY, False)
    """Whether there is none on the way."""
    host: Name | None = None
    """A host of the inventory, which is reached by its own settings."""
    address: OneAddress | None = None
    """Where any other machine is reached."""
    jump: JumpSpec | None = None
    """The machine that this one is reached through."""

    @classmethod
    def short(cls, data: Any) -> Any:
        if data is False:
            return {DIRECT_KEY: True}
        return {"host": data} if isinstance(data, str) else data

    def judged(self) -> JumpSpec:
        others = self.given - {"host", "direct"}
        if self.host is not None and any(getattr(self, name) is not None for name in others):
            raise BadValue(
                "`host` beside other keys", "write them at that host, or an `address` here"
            )
        if self.host is None and self.address is None and not self.direct:
            raise BadValue(
                "neither `host` nor `address`", "add one of them, or write `jump: false`"
            )
        return self

    def as_written(self) -> Any:
        return False if self.direct else super().as_written()


class BecomeSpec(Form):
    """How commands come to run as root, where `sudo` says that they do."""

    way: Literal["sudo", "su"] = "sudo"
    """By which program."""
    password: SecretText | None = None
    """The password that it asks for: that of the user for `sudo`, that of root for `su`."""


class SshSpec(ConnectionFields):
    """How hosts are reached by ssh; a path may begin with `~`, or beside the pipeline file.

    Every key is settled for itself: a host wins over its groups, and these over the pipeline.
    """

    jump: JumpSpec | None = None
    """The machine that they are reached through; if all hosts are, that one itself is not."""
    become: BecomeSpec | None = None
    """How commands come to run as root."""
