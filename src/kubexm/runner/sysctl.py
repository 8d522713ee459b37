"""Settings of the kernel: as they are now, and as a file sets them at each boot."""

from __future__ import annotations

from collections.abc import Mapping

from kubexm.connector.base import C_LOCALE, is_missing
from kubexm.errors import StepFailed
from kubexm.runner.host import Command, Completed, Host

_DIRECTORY = "/etc/sysctl.d"


def value_command(host: Host, key: str, *, sudo: bool | None = None) -> Command:
    """Ask for a setting; `value_of` reads the answer."""
    return host.command("cat", "--", place_of(key), sudo=sudo, env=C_LOCALE)


def value_of(answer: Completed, key: str) -> str | None:
    """The setting, its parts with one blank in between; None if the kernel has none like it."""
    if is_missing(answer):
        return None
    return normal(Host.checked(("cat", place_of(key)), answer).text)


def normal(value: str) -> str:
    """A value as it is compared: the kernel puts tabs between its parts."""
    return " ".join(value.split())


def place_of(key: str) -> str:
    """Where the kernel shows a setting; a name with slashes may have dots in its parts."""
    return f"/proc/sys/{key if '/' in key else key.replace('.', '/')}"


def drop_in(name: str) -> str:
    """The file that sets some at each boot."""
    return f"{_DIRECTORY}/{name}.conf"


def drop_in_text(settings: Mapping[str, str]) -> str:
    """What that file holds."""
    return "".join(f"{key} = {normal(value)}\n" for key, value in sorted(settings.items()))


def names_in(text: str) -> tuple[str, ...]:
    """The settings that such a file sets."""
    lines = (line.strip().lstrip("-") for line in text.splitlines())
    given = (line.partition("=") for line in lines if line and line[0] not in "#;")
    return tuple(dict.fromkeys(name.strip() for name, sign, _ in given if sign))


async def value(host: Host, key: str, *, sudo: bool | None = None) -> str | None:
    """A setting as it is now."""
    (answer,) = await host.batch((value_command(host, key, sudo=sudo),))
    return value_of(answer, key)


async def set_now(host: Host, key: str, value: str, *, sudo: bool | None = None) -> None:
    """Change a setting until the next boot."""
    argv = ("sysctl", "-q", "-w", f"{key}={value}")
    done = await host.execute(host.command(*argv, sudo=sudo, env=C_LOCALE))
    if "cannot stat" in done.error_text:
        raise StepFailed(
            f"the kernel of the host has no setting `{key}`",
            hint="check its spelling, or load the module that brings it with a step before",
        )
    if "Invalid argument" in done.error_text:
        raise StepFailed(
            f"the kernel does not take `{value}` for `{key}`", hint="give a value that it takes"
        )
    Host.checked(argv, done)
