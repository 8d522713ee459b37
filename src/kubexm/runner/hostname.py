"""What a host calls itself, now and after the next boot."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from kubexm.connector.base import C_LOCALE
from kubexm.runner import files
from kubexm.runner.host import Command, Completed, Host

PATH = "/etc/hostname"
_NOW = "/proc/sys/kernel/hostname"


class Names(msgspec.Struct, frozen=True):
    """Both of them; nothing where none is set."""

    now: str
    at_boot: str


def name_commands(host: Host, *, sudo: bool | None = None) -> tuple[Command, Command]:
    """Ask for both names; `names_of` reads the answers."""
    now, boot = (host.command("cat", path, sudo=sudo, env=C_LOCALE) for path in (_NOW, PATH))
    return now, boot


def names_of(answers: Sequence[Completed]) -> Names:
    """Both names."""
    now, boot = answers
    lines = (line.strip() for line in boot.text.splitlines())
    told = (line for line in lines if line and not line.startswith("#"))
    return Names(now.text.strip(), next(told, ""))


async def names(host: Host, *, sudo: bool | None = None) -> Names:
    """Both names."""
    return names_of(await host.batch(name_commands(host, sudo=sudo)))


async def set_now(host: Host, name: str, *, sudo: bool | None = None) -> None:
    """Change the name until the next boot."""
    await host.run("hostname", "--", name, sudo=sudo)


async def set_at_boot(host: Host, name: str, *, sudo: bool | None = None) -> None:
    """Change the name that it has after the next boot."""
    await files.write(host, PATH, f"{name}\n".encode(), sudo=sudo)
