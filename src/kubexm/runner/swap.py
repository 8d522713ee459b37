"""Swap of a host: what is in use, off and on again, now and at each boot."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import msgspec

from kubexm.connector.base import C_LOCALE
from kubexm.errors import StepFailed
from kubexm.runner import files, services, text
from kubexm.runner.host import Command, Completed, Host

FSTAB = "/etc/fstab"
_MARK = "# off by kubexm: "
_OWN_UNITS = "/etc/systemd/system/"
"""Units here can't be masked: the mask would lie in their place."""
_PROPERTIES = ("Id", "LoadState", "ActiveState", "UnitFileState", "FragmentPath", "SourcePath")
_AT_BOOT = frozenset(("enabled", "enabled-runtime", "generated"))


class SwapUnit(msgspec.Struct, frozen=True):
    """A unit that turns swap on at boot, whatever the table of file systems says."""

    name: str
    is_active: bool
    is_own: bool
    """Whether it was written on the host, so that it is disabled and not masked."""


def areas_command(host: Host, *, sudo: bool | None = None) -> Command:
    """Ask which swap is in use; `areas_of` reads the answer."""
    return host.command("cat", "/proc/swaps", sudo=sudo, env=C_LOCALE)


def areas_of(answer: Completed) -> dict[str, int]:
    """The size of each swap in use in KiB, by its path."""
    rows = (line.split() for line in answer.text.splitlines()[1:])
    return {row[0]: int(row[2]) for row in rows if len(row) >= 5}


async def areas(host: Host, *, sudo: bool | None = None) -> dict[str, int]:
    """The size of each swap in use in KiB, by its path."""
    (answer,) = await host.batch((areas_command(host, sudo=sudo),))
    return areas_of(answer)


async def turn_off(host: Host, *, sudo: bool | None = None) -> None:
    """Use no swap until the next boot."""
    argv = ("swapoff", "-a")
    done = await host.execute(host.command(*argv, sudo=sudo, env=C_LOCALE))
    if "Cannot allocate memory" in done.error_text:
        raise StepFailed(
            "can't turn swap off: what lies there does not fit into memory",
            hint="end something that uses much memory, or give the host more",
        )
    Host.checked(argv, done)


async def turn_on(host: Host, path: str, *, sudo: bool | None = None) -> None:
    """Use this swap until the next boot."""
    await host.run("swapon", "--", path, sudo=sudo, env=C_LOCALE)


async def turn_off_at_boot(host: Host, *, sudo: bool | None = None) -> None:
    """Have no swap turned on by the table of file systems; `turn_on_at_boot` takes that back."""
    await _edit(host, sudo, commented)


async def turn_on_at_boot(
    host: Host, lines: Sequence[str] | None = None, *, sudo: bool | None = None
) -> None:
    """Have the swap turned on again that `turn_off_at_boot` has turned off; of these lines."""
    await _edit(host, sudo, partial(uncommented, lines=lines))


def units_command(host: Host, *, sudo: bool | None = None) -> Command:
    """Ask for the units of swap that systemd knows; `units_of` reads the answer."""
    wanted = f"--property={','.join(_PROPERTIES)}"
    return host.command("systemctl", "show", wanted, "--", "*.swap", sudo=sudo, env=C_LOCALE)


def units_of(answer: Completed) -> list[SwapUnit]:
    """Those that turn swap on at boot, and are not made of the table of file systems.

    Of generators such as that of zram, and of people; none where systemd does not run.
    """
    blocks = answer.text.split("\n\n") if answer.ok else []
    told = [dict(line.partition("=")[::2] for line in block.splitlines()) for block in blocks]
    return [unit for unit in map(_unit, told) if unit is not None]


def _unit(told: Mapping[str, str]) -> SwapUnit | None:
    name, load, active, file, fragment, source = (told.get(key, "") for key in _PROPERTIES)
    # What has no file is the kernel's swap itself, in the words of systemd.
    if load != "loaded" or not fragment or source == FSTAB:
        return None
    unit = SwapUnit(name, active == "active", fragment.startswith(_OWN_UNITS))
    is_on = file in _AT_BOOT or (unit.is_active and not unit.is_own)
    return unit if is_on else None


async def keep_off(host: Host, unit: SwapUnit, *, sudo: bool | None = None) -> None:
    """Have a unit turn on no swap at the next boot; `let_on` takes that back."""
    await (services.disable if unit.is_own else services.mask)(host, unit.name, sudo=sudo)


async def let_on(host: Host, unit: SwapUnit, *, sudo: bool | None = None) -> None:
    """Have a unit turn swap on as before."""
    await (services.enable if unit.is_own else services.unmask)(host, unit.name, sudo=sudo)
    if unit.is_active:
        await services.start(host, unit.name, sudo=sudo)


def lines_of(table: str) -> list[str]:
    """The lines of a table of file systems that turn swap on."""
    return [line for line in text.split(table) if _is_swap(line)]


def commented(table: str) -> str:
    """A table of file systems with its swap commented out."""
    lines = [_MARK + line if _is_swap(line) else line for line in text.split(table)]
    return text.joined(lines, text.ends_its_last_line(table))


def uncommented(table: str, lines: Sequence[str] | None = None) -> str:
    """The same table before that, as far as it is about these lines."""

    def back(line: str) -> str:
        plain = line.removeprefix(_MARK)
        return plain if lines is None or plain in lines else line

    return text.joined([back(line) for line in text.split(table)], text.ends_its_last_line(table))


def _is_swap(line: str) -> bool:
    fields = line.split()
    return len(fields) > 2 and not fields[0].startswith("#") and fields[2] == "swap"


async def _edit(host: Host, sudo: bool | None, edit: Callable[[str], str]) -> None:
    found = await files.read(host, FSTAB, sudo=sudo)
    if found is not None and (new := text.encoded(edit(text.decoded(found)))) != found:
        await files.write(host, FSTAB, new, sudo=sudo)
