"""Packages of a host behind one face: apt, dnf, yum and zypper."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from urllib.parse import quote

from msgspec.structs import replace

from kubexm.connector.base import C_LOCALE
from kubexm.errors import StepFailed
from kubexm.runner import files, packagetools
from kubexm.runner.causes import NO_SUCH_TOOL
from kubexm.runner.host import Command, Completed, Host
from kubexm.runner.packagetools import TOOLS, PackageTool

LOCK_SECONDS = 300.0
"""How long to wait for another program that is at work on the packages of the host."""
_ASK_AGAIN = 2.0
_NOT_KNOWN = " is not installed"
_REPOSITORY = re.compile(r"\w[\w.-]*", re.ASCII)
_URL = re.compile(r"[a-z+]+:[!-Z^-~]+")


def versions_command(host: Host, names: Sequence[str], *, sudo: bool | None = None) -> Command:
    """Ask which of some packages are installed; `versions_of` reads the answer."""
    return host.command(*tool_of(host).query, "--", *names, sudo=sudo, env=C_LOCALE)


def versions_of(answer: Completed) -> dict[str, str]:
    """Versions of the installed ones, by name."""
    lines = answer.text.splitlines()
    # dpkg-query says 1 if some are not known, rpm how many are not.
    unknown = sum(line.endswith(_NOT_KNOWN) for line in lines)
    if answer.exit == NO_SUCH_TOOL or answer.exit not in (0, 1, unknown):
        raise StepFailed(
            f"can't ask which packages are installed: {answer.error_text}",
            hint="packages need a host with apt, dnf, yum or zypper",
        )
    rows = (line.split("\t") for line in lines)
    return {row[0]: row[1] for row in rows if row[2:] == ["installed"]}


async def versions(
    host: Host, names: Sequence[str], *, sudo: bool | None = None
) -> Mapping[str, str]:
    """Versions of the installed ones, by name."""
    (answer,) = await host.batch((versions_command(host, names, sudo=sudo),))
    return versions_of(answer)


async def install(
    host: Host, wanted: Sequence[str], *, only: str | None = None, sudo: bool | None = None
) -> None:
    """Install packages, each `name` or `name=version`; with `only`, from this repository alone."""
    tool = tool_of(host)
    await _finish_interrupted(host, tool, sudo)
    argv = (*tool.install, *tool.restricted(only), "--", *map(tool.wanted, wanted))
    done = await _changed(host, tool, argv, sudo)
    if not done.ok:
        # Lists that are old, or were never fetched, are the usual reason.
        await refresh(host, only=only, sudo=sudo)
        Host.checked(argv, await _changed(host, tool, argv, sudo))


async def remove(host: Host, names: Sequence[str], *, sudo: bool | None = None) -> None:
    """Remove packages; apt takes their configuration away with them."""
    tool = tool_of(host)
    await _finish_interrupted(host, tool, sudo)
    argv = (*tool.remove, "--", *names)
    Host.checked(argv, await _changed(host, tool, argv, sudo))


async def refresh(host: Host, *, only: str | None = None, sudo: bool | None = None) -> None:
    """Fetch the lists of packages anew; with `only`, those of this repository alone."""
    tool = tool_of(host)
    argv = (*tool.refresh, *tool.refreshed(only))
    Host.checked(argv, await _changed(host, tool, argv, sudo))


async def add_repository(host: Host, name: str, url: str, *, sudo: bool | None = None) -> None:
    """Let packages be had from a URL, or a directory of the host; `install(only=name)` uses it.

    For apt it is a flat repository, one with `Packages` beside its packages; for the others one
    with `repodata`. Nothing in it has to be signed: whoever adds it has checked what is there.
    """
    tool = tool_of(host)
    where = f"file://{quote(url)}" if url.startswith("/") else url
    if not _REPOSITORY.fullmatch(name) or not _URL.fullmatch(where):
        raise StepFailed(
            f"`{name}` at `{url}` is no repository",
            hint="name it by letters, digits, `.`, `_` and `-`, and give a URL or a directory",
        )
    text = tool.repository.format(name=name, url=where)
    await files.write(host, tool.repository_path(name), text.encode(), mode=0o644, sudo=sudo)


async def remove_repository(host: Host, name: str, *, sudo: bool | None = None) -> None:
    """Forget a repository of this name."""
    await files.remove(host, tool_of(host).repository_path(name), sudo=sudo)


def tool_of(host: Host) -> PackageTool:
    """What handles the packages of a host; apt if nothing is known of it."""
    system = host.facts.get("os") or {}
    named = host.facts.get("package_manager") or _usual(system)
    if named in TOOLS:
        return TOOLS[named]
    raise StepFailed(
        f"can't handle packages of `{system.get('name') or system.get('id')}`",
        hint="packages need a host with apt, dnf, yum or zypper; use a `command` step",
    )


def _usual(system: Mapping[str, object]) -> str:
    if not system:
        return "apt"
    like = system.get("like", ())
    names = {system.get("id"), system.get("family"), *(like if isinstance(like, list) else ())}
    return next((tool for tool, family in _OF_FAMILY.items() if names & family), "")


_OF_FAMILY: Mapping[str, frozenset[object]] = {
    "apt": frozenset(("debian", "ubuntu")),
    "dnf": frozenset(("rhel", "fedora", "centos")),
    "zypper": frozenset(("suse", "opensuse")),
}


async def _finish_interrupted(host: Host, tool: PackageTool, sudo: bool | None) -> None:
    if tool.repair:
        Host.checked(tool.repair, await _changed(host, tool, tool.repair, sudo))


async def _changed(
    host: Host, tool: PackageTool, argv: Sequence[str], sudo: bool | None
) -> Completed:
    """Run a command as soon as nobody else is at work; every tool gives up on that at once."""
    # A later run that takes over the host waits for these: one that is cut off leaves a mess.
    command = host.command(*argv, sudo=sudo, env=tool.env, uninterruptible=True)
    loop = asyncio.get_running_loop()
    deadline = loop.time() + LOCK_SECONDS
    while (holder := packagetools.lock_holder(done := await host.execute(command))) is not None:
        if loop.time() >= deadline:
            raise _locked(argv, done, holder)
        await asyncio.sleep(_ASK_AGAIN)
    return replace(done, exit=0) if done.exit in tool.also_done else done


def _locked(argv: Sequence[str], done: Completed, holder: str) -> StepFailed:
    return StepFailed(
        f"`{argv[0]}` can't work: {holder} has held the lock on packages of the host for "
        f"{LOCK_SECONDS:g} s; it said: {done.error_text.strip() or done.text.strip()}",
        hint="wait until that has ended, or end it there, and try again",
    )
