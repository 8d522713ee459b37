"""Units of systemd: their state, how to change it, and which files they were started with."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

import msgspec

from kubexm.connector.base import C_LOCALE
from kubexm.errors import CommandFailed
from kubexm.runner import files
from kubexm.runner.host import Command, Completed, Host

_PROPERTIES = ("LoadState", "ActiveState", "UnitFileState", "NeedDaemonReload")
_RUNNING = frozenset(("active", "reloading", "refreshing"))
_AT_REST = frozenset(("inactive", "failed"))
_STARTS_AT_BOOT = frozenset(("enabled", "enabled-runtime"))
_NEVER_ENABLED = frozenset(("static", "indirect", "generated", "alias", "transient"))
"""Units that are started by others: there is nothing to enable."""


class UnitState(msgspec.Struct, frozen=True):
    """What systemd says of a unit."""

    load: str
    active: str
    file: str
    stale: bool
    """Its file was changed since systemd read it."""

    @property
    def is_known(self) -> bool:
        return self.load != "not-found"

    @property
    def is_masked(self) -> bool:
        return self.load == "masked"

    @property
    def is_active(self) -> bool:
        return self.active in _RUNNING

    @property
    def is_stopped(self) -> bool:
        """Whether it does nothing: one that systemd is about to start again is neither."""
        return self.active in _AT_REST

    @property
    def has_failed(self) -> bool:
        return self.active == "failed"

    @property
    def is_enabled(self) -> bool:
        return self.file in _STARTS_AT_BOOT

    @property
    def can_be_enabled(self) -> bool:
        return self.file not in _NEVER_ENABLED


def state_command(host: Host, unit: str, *, sudo: bool | None = None) -> Command:
    """Ask systemd for a unit; `state_of` reads the answer."""
    wanted = f"--property={','.join(_PROPERTIES)}"
    return host.command("systemctl", "show", wanted, "--", unit, sudo=sudo, env=C_LOCALE)


def state_of(answer: Completed, unit: str) -> UnitState:
    """What systemd answered."""
    if not answer.ok:
        raise CommandFailed(
            ("systemctl", "show", unit),
            answer.exit,
            stderr=answer.error_text,
            hint="services need a host that runs systemd",
        )
    found = dict(line.partition("=")[::2] for line in answer.text.splitlines())
    load, active, file, stale = (found.get(name, "") for name in _PROPERTIES)
    return UnitState(load, active, file, stale == "yes")


def system_command(host: Host) -> Command:
    """Ask how systemd itself is; `system_of` reads the answer."""
    return host.command("systemctl", "is-system-running", sudo=False, env=C_LOCALE)


def system_of(answer: Completed) -> str:
    """`running`, `degraded` if some unit has failed, `starting`, …; `offline` without systemd."""
    return answer.text.strip() or "offline"


def record_path(host: Host, unit: str) -> str:
    """Where the host keeps the digest of the files a unit was last started with."""
    return f"{host.state_dir}/services/{unit}.sha256"


def digest_commands(
    host: Host, unit: str, paths: Sequence[str], *, sudo: bool | None = None
) -> tuple[Command, Command]:
    """Ask for the files as they are, and for the digest of them at the last start."""
    record = record_path(host, unit)
    return (
        files.checksum_command(host, *paths, sudo=sudo),
        files.content_command(host, record, 64, sudo=sudo),
    )


def digest_of(answer: Completed) -> str:
    """One digest for all files; one that is missing makes a difference too."""
    return sha256(answer.stdout).hexdigest()


async def state(host: Host, unit: str, *, sudo: bool | None = None) -> UnitState:
    """What systemd says of a unit."""
    (answer,) = await host.batch((state_command(host, unit, sudo=sudo),))
    return state_of(answer, unit)


async def system(host: Host) -> str:
    """How systemd itself is."""
    (answer,) = await host.batch((system_command(host),))
    return system_of(answer)


async def is_active(host: Host, unit: str, *, sudo: bool | None = None) -> bool:
    """Whether a unit runs."""
    return (await state(host, unit, sudo=sudo)).is_active


async def is_enabled(host: Host, unit: str, *, sudo: bool | None = None) -> bool:
    """Whether a unit starts with the host."""
    return (await state(host, unit, sudo=sudo)).is_enabled


async def start(host: Host, unit: str, *, sudo: bool | None = None) -> None:
    await host.run("systemctl", "start", "--", unit, sudo=sudo)


async def stop(host: Host, unit: str, *, sudo: bool | None = None) -> None:
    await host.run("systemctl", "stop", "--", unit, sudo=sudo)


async def reset_failed(host: Host, unit: str, *, sudo: bool | None = None) -> None:
    """Have systemd forget that a unit failed."""
    await host.run("systemctl", "reset-failed", "--", unit, sudo=sudo)


async def restart(host: Host, unit: str, *, sudo: bool | None = None) -> None:
    await host.run("systemctl", "restart", "--", unit, sudo=sudo)


async def enable(host: Host, unit: str, *, sudo: bool | None = None) -> None:
    await host.run("systemctl", "enable", "--", unit, sudo=sudo)


async def disable(host: Host, unit: str, *, sudo: bool | None = None) -> None:
    await host.run("systemctl", "disable", "--", unit, sudo=sudo)


async def reload(host: Host, unit: str, *, sudo: bool | None = None) -> None:
    """Have a unit read its files again; one that can't is started anew."""
    await host.run("systemctl", "reload-or-restart", "--", unit, sudo=sudo)


async def mask(host: Host, unit: str, *, sudo: bool | None = None) -> None:
    """Have nobody start a unit; one that runs goes on."""
    await host.run("systemctl", "mask", "--", unit, sudo=sudo)


async def unmask(host: Host, unit: str, *, sudo: bool | None = None) -> None:
    """Let a unit be started again."""
    await host.run("systemctl", "unmask", "--", unit, sudo=sudo)


async def daemon_reload(host: Host, *, sudo: bool | None = None) -> None:
    await host.run("systemctl", "daemon-reload", sudo=sudo)


async def record(host: Host, unit: str, digest: str, *, sudo: bool | None = None) -> None:
    """Keep on the host with which files a unit was started."""
    path = record_path(host, unit)
    await files.make_directory(host, path.rpartition("/")[0], sudo=sudo)
    await files.write(host, path, digest.encode(), mode=0o644, sudo=sudo)


async def forget(host: Host, unit: str, *, sudo: bool | None = None) -> None:
    """Drop the record, so that the next run starts the unit anew."""
    await files.remove(host, record_path(host, unit), sudo=sudo)
