"""The time of a host: its zone, and who keeps its clock right."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from kubexm.connector.base import C_LOCALE
from kubexm.errors import StepFailed
from kubexm.runner.host import Command, Completed, Host

_PROPERTIES = ("Timezone", "NTP", "NTPSynchronized")
_KEEPERS = ("chronyd", "chrony", "systemd-timesyncd", "ntpd", "ntpsec")


class ClockState(msgspec.Struct, frozen=True):
    """What a host says of its clock."""

    zone: str
    """Such as `Europe/Berlin`."""
    synchronised: bool
    """Whether somebody has set it by another clock, and keeps doing so."""
    keeper: str
    """The unit that does; nothing if none runs."""


def state_commands(host: Host, *, sudo: bool | None = None) -> tuple[Command, Command]:
    """Ask for the zone, and for who keeps the clock right; `state_of` reads the answers."""
    wanted = (f"--property={name}" for name in _PROPERTIES)
    return (
        host.command("timedatectl", "show", *wanted, sudo=sudo, env=C_LOCALE),
        host.command("systemctl", "is-active", *_KEEPERS, sudo=sudo, env=C_LOCALE),
    )


def state_of(answers: Sequence[Completed]) -> ClockState:
    """What the host says."""
    told, keepers = answers
    Host.checked(("timedatectl", "show"), told)
    found = dict(line.partition("=")[::2] for line in told.text.splitlines())
    states = zip(_KEEPERS, keepers.text.splitlines(), strict=False)
    keeper = next((unit for unit, state in states if state == "active"), "")
    zone, _, synchronised = (found.get(name, "") for name in _PROPERTIES)
    return ClockState(zone, synchronised == "yes", keeper)


async def state(host: Host, *, sudo: bool | None = None) -> ClockState:
    """The zone of a host, and who keeps its clock right."""
    return state_of(await host.batch(state_commands(host, sudo=sudo)))


async def set_zone(host: Host, zone: str, *, sudo: bool | None = None) -> None:
    """Change the time zone."""
    argv = ("timedatectl", "set-timezone", "--", zone)
    done = await host.execute(host.command(*argv, sudo=sudo, env=C_LOCALE))
    if not done.ok and "nvalid" in done.error_text and "zone" in done.error_text:
        raise StepFailed(
            f"the host knows no time zone `{zone}`",
            hint="`timedatectl list-timezones` has all of them; some systems need tzdata",
        )
    Host.checked(argv, done)
