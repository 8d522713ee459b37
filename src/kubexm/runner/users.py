"""Users and groups of a host."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from kubexm.connector.base import C_LOCALE
from kubexm.errors import StepFailed
from kubexm.runner.host import Command, Completed, Host

_NOT_FOUND = 2


class User(msgspec.Struct, frozen=True):
    """A user as the host knows it."""

    name: str
    uid: int
    gid: int
    home: str
    shell: str
    groups: tuple[str, ...] = ()
    """All of its groups by name, that of its own included."""


def user_commands(host: Host, name: str, *, sudo: bool | None = None) -> tuple[Command, Command]:
    """Ask for a user; `user_of` reads the answers."""
    asked = (("getent", "passwd", "--", name), ("id", "-Gn", "--", name))
    entry, groups = (host.command(*argv, sudo=sudo, env=C_LOCALE) for argv in asked)
    return entry, groups


def user_of(answers: Sequence[Completed], name: str) -> User | None:
    """The user; None if there is none."""
    entry, groups = answers
    if entry.exit == _NOT_FOUND:
        return None
    Host.checked(("getent", "passwd", name), entry)
    _, _, uid, gid, _, home, shell = entry.text.split(":")
    return User(name, int(uid), int(gid), home, shell, tuple(groups.text.split()))


def group_command(host: Host, name: str, *, sudo: bool | None = None) -> Command:
    """Ask for a group; `group_of` reads the answer."""
    return host.command("getent", "group", "--", name, sudo=sudo, env=C_LOCALE)


def group_of(answer: Completed, name: str) -> int | None:
    """The number of a group; None if there is none."""
    if answer.exit == _NOT_FOUND:
        return None
    return int(Host.checked(("getent", "group", name), answer).text.split(":")[2])


async def find(host: Host, name: str, *, sudo: bool | None = None) -> User | None:
    """The user of this name."""
    return user_of(await host.batch(user_commands(host, name, sudo=sudo)), name)


async def find_group(host: Host, name: str, *, sudo: bool | None = None) -> int | None:
    """The number of the group of this name."""
    (answer,) = await host.batch((group_command(host, name, sudo=sudo),))
    return group_of(answer, name)


async def add(
    host: Host,
    name: str,
    *,
    uid: int | None = None,
    home: str | None = None,
    shell: str | None = None,
    group: str | None = None,
    groups: Sequence[str] = (),
    system: bool = False,
    sudo: bool | None = None,
) -> None:
    """Make a user with a group of its own, or in this one.

    One of the system has no home unless it is given.
    """
    options = _given(uid, home, shell)
    options += ["--user-group"] if group is None else ["--gid", group]
    options += ["--system"] if system else []
    options += ["--create-home"] if home is not None or not system else ["--no-create-home"]
    options += ["--groups", ",".join(groups)] if groups else []
    await host.run("useradd", *options, "--", name, sudo=sudo)


async def change(
    host: Host,
    name: str,
    *,
    uid: int | None = None,
    home: str | None = None,
    shell: str | None = None,
    groups: Sequence[str] | None = None,
    sudo: bool | None = None,
) -> None:
    """Change what is given; `groups` are all that it is in beside its own."""
    options = [*_given(uid, home, shell)]
    options += ["--groups", ",".join(groups)] if groups is not None else []
    if not options:
        return
    done = await host.execute(host.command("usermod", *options, "--", name, sudo=sudo))
    if "is currently used by process" in done.error_text:
        raise StepFailed(
            f"can't change the user `{name}`: {done.error_text}",
            hint="end the processes of this user first",
        )
    Host.checked(("usermod", *options, name), done)


async def remove(
    host: Host, name: str, *, with_home: bool = False, sudo: bool | None = None
) -> None:
    """Remove a user if there is one, and its group if nobody else is in it."""
    if await find(host, name, sudo=sudo) is not None:
        options = ("--remove",) if with_home else ()
        await host.run("userdel", *options, "--", name, sudo=sudo)


def _given(uid: int | None, home: str | None, shell: str | None) -> list[str]:
    options = {"--uid": uid, "-d": home, "--shell": shell}
    return [
        word for name, value in options.items() if value is not None for word in (name, str(value))
    ]
