"""Packages of a host behind one face; apt for now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kubexm.connector.base import C_LOCALE
from kubexm.errors import CommandFailed, StepFailed
from kubexm.runner.host import Command, Completed, Host

_ENV = {**C_LOCALE, "DEBIAN_FRONTEND": "noninteractive"}
# A later run that takes over the host waits for these: one that is cut off leaves a mess.
_TO_ITS_END: Mapping[str, Any] = {"env": _ENV, "uninterruptible": True}
_FORMAT = "${Package}\\t${Version}\\t${db:Status-Status}\\n"
# Another apt may be at work: wait for it rather than fail.
_APT = ("apt-get", "-y", "-q", "-o", "DPkg::Lock::Timeout=300")
# Files of a configuration that somebody changed stay as they are.
_KEEP_CONFIG = ("-o", "Dpkg::Options::=--force-confdef", "-o", "Dpkg::Options::=--force-confold")
_APT_FAMILY = frozenset(("debian", "ubuntu"))


def versions_command(host: Host, names: Sequence[str], *, sudo: bool | None = None) -> Command:
    """Ask which of some packages are installed; `versions_of` reads the answer."""
    return host.command("dpkg-query", "-W", "-f", _FORMAT, "--", *names, sudo=sudo, env=C_LOCALE)


def versions_of(answer: Completed) -> dict[str, str]:
    """Versions of the installed ones, by name."""
    if answer.exit not in (0, 1):  # 1: some are not known
        raise CommandFailed(
            ("dpkg-query", "-W"),
            answer.exit,
            stderr=answer.error_text,
            hint="packages need a host with apt for now",
        )
    rows = (line.split("\t") for line in answer.text.splitlines())
    return {row[0]: row[1] for row in rows if row[2:] == ["installed"]}


async def versions(
    host: Host, names: Sequence[str], *, sudo: bool | None = None
) -> Mapping[str, str]:
    """Versions of the installed ones, by name."""
    (answer,) = await host.batch((versions_command(host, names, sudo=sudo),))
    return versions_of(answer)


async def install(host: Host, wanted: Sequence[str], *, sudo: bool | None = None) -> None:
    """Install packages, each `name` or `name=version`."""
    _require_apt(host)
    await _finish_interrupted(host, sudo)
    command = (*_APT, *_KEEP_CONFIG, "--no-install-recommends", "--allow-downgrades", "install")
    done = await host.execute(host.command(*command, "--", *wanted, sudo=sudo, **_TO_ITS_END))
    if not done.ok:
        # Lists that are old, or were never fetched, are the usual reason.
        await host.run(*_APT, "update", sudo=sudo, **_TO_ITS_END)
        await host.run(*command, "--", *wanted, sudo=sudo, **_TO_ITS_END)


async def remove(host: Host, names: Sequence[str], *, sudo: bool | None = None) -> None:
    """Remove packages with their configuration."""
    _require_apt(host)
    await _finish_interrupted(host, sudo)
    await host.run(*_APT, "purge", "--", *names, sudo=sudo, **_TO_ITS_END)


async def _finish_interrupted(host: Host, sudo: bool | None) -> None:
    # A dpkg that was killed refuses everything until this was done; else it does nothing.
    await host.run("dpkg", "--configure", "-a", sudo=sudo, **_TO_ITS_END)


def _require_apt(host: Host) -> None:
    system = host.facts.get("os")
    if not system:
        return
    family = {system.get("id"), *system.get("like", ())}
    if not family & _APT_FAMILY:
        raise StepFailed(
            f"can't handle packages of `{system.get('name') or system.get('id')}`",
            hint="packages need a host with apt for now; use a `command` step",
        )
