"""Simulated clocks: the zone of a host, and who keeps its time right."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from kubexm.connector.base import Completed
from kubexm.sim.daemons import Daemon, Start
from kubexm.sim.shell import OK, Program, Shell, failed, said
from kubexm.sim.state import Socket

_CELL = "timezone"
_DELIVERED = "Etc/UTC"
_ZONE = re.compile(
    r"UTC|(?:Africa|America|Antarctica|Arctic|Asia|Atlantic|Australia|Etc|Europe|Indian|Pacific)"
    r"(?:/[A-Za-z0-9_+-]+){1,2}"
)
_KEEPERS = ("chrony.service", "chronyd.service", "systemd-timesyncd.service")
_CHRONY = ("/etc/chrony/chrony.conf", "/etc/chrony.conf")
_TRACKING = """Reference ID    : C0000235 (192.0.2.53)
Stratum         : 3
System time     : 0.000012 seconds fast of NTP time
Leap status     : Normal
"""


class Chronyd(Daemon):
    """chronyd: it needs its configuration, and nobody else who keeps the clock right."""

    def starts(self, start: Start) -> Sequence[Socket]:
        there = (path for path in _CHRONY if start.shell.files.lookup(path) is not None)
        start.read(start.option("-f") or next(there, _CHRONY[0]))
        return ()


def timedatectl(shell: Shell, args: Sequence[str]) -> Completed:
    match list(args):
        case ["show", *wanted]:
            told = _told(shell)
            names = [word.removeprefix("--property=") for word in wanted]
            if not told.keys() >= set(names):
                raise shell.unexpected()
            return said("".join(f"{name}={told[name]}\n" for name in names or told))
        case ["set-timezone", *rest] if len(zone := [word for word in rest if word != "--"]) == 1:
            return _set_zone(shell, zone[0])
        case ["set-ntp", "true" | "false" as word]:
            return _keep_right(shell, word == "true")
    raise shell.unexpected()


def _told(shell: Shell) -> dict[str, str]:
    zone = shell.state.get(_CELL)
    kept = "yes" if _keepers(shell, running=True) else "no"
    return {
        "Timezone": zone if isinstance(zone, str) else _DELIVERED,
        "NTP": kept,
        "NTPSynchronized": kept,
    }


def _set_zone(shell: Shell, zone: str) -> Completed:
    if _ZONE.fullmatch(zone) is None:
        return failed(f"Failed to set time zone: Invalid or not installed time zone '{zone}'")
    shell.state.set(_CELL, None if zone == _DELIVERED else zone)
    return OK


def _keep_right(shell: Shell, on: bool) -> Completed:
    units = _keepers(shell, running=False)
    if not units:
        return failed("Failed to set ntp: NTP not supported")
    return shell.run(("systemctl", "enable" if on else "disable", "--now", units[0]))


def _keepers(shell: Shell, *, running: bool) -> list[str]:
    question = "is-active" if running else "is-enabled"
    answers = {unit: shell.run(("systemctl", question, unit)).text for unit in _KEEPERS}
    unwanted = ("inactive", "failed", "activating", "not-found")
    return [unit for unit, answer in answers.items() if answer not in unwanted]


def chronyc(shell: Shell, args: Sequence[str]) -> Completed:
    if list(args) not in (["tracking"], ["-n", "tracking"]):
        raise shell.unexpected()
    units = _keepers(shell, running=True)
    if not any(unit.startswith("chrony") for unit in units):
        return failed("506 Cannot talk to daemon")
    return said(_TRACKING)


DAEMONS: Mapping[str, Daemon] = {"chronyd": Chronyd()}
PROGRAMS: Mapping[str, Program] = {"chronyc": chronyc, "timedatectl": timedatectl}
