"""What a lab is and how its hosts are: for people as a table, for tests as JSON."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from lab import cgroups, credentials, faultfile, power, processes, roster
from lab.roster import Host
from lab.site import Site

_COLUMNS = ("host", "address", "suite", "state", "uptime", "pid")


def table(site: Site) -> str:
    """A line for each host."""
    rows = [_COLUMNS, *(_row(site, host) for host in site.hosts())]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_COLUMNS))]
    return "\n".join(_line(row, widths) for row in rows)


def description(site: Site) -> dict[str, object]:
    """All that a test needs to reach the hosts."""
    return {
        "id": site.id,
        "path": str(site.path),
        "netns": str(site.netns),
        "control_address": roster.CONTROL,
        "known_hosts": str(site.known_hosts),
        "ssh_config": str(site.ssh_config),
        "keys": {name: str(site.keys / name) for name in credentials.KEYS},
        "certificate": str(credentials.certificate(site)),
        "passphrase_file": str(credentials.passphrase_file(site)),
        "password_files": {user: str(site.passwords / user) for user in ("admin", "ops")},
        "hosts": [_host(site, host) for host in site.hosts()],
    }


def state(site: Site, host: Host) -> str:
    """In words: `running`, `stopped`, `frozen`, and what else is wrong."""
    return ", ".join(_states(site, host))


def _states(site: Site, host: Host) -> Iterator[str]:
    group = site.groups.below(host.name).unified
    if cgroups.is_frozen(group):
        yield "frozen"
    else:
        yield "running" if cgroups.is_populated(group) else "stopped"
    faults = faultfile.read(site.home(host.name))
    if faults.cut:
        yield "cut"
    if faults.loss:
        yield f"loses {faults.loss:g} %"
    if faults.delay:
        yield f"{faults.delay} ms late"
    if faults.full:
        yield "full"
    if faults.skew:
        yield f"clock {faults.skew:+d} s"


def _host(site: Site, host: Host) -> dict[str, object]:
    init = power.init_of(site, host)
    return dataclasses.asdict(host) | {
        "users": credentials.users(host),
        "state": state(site, host),
        "pid": init.pid if init else None,
        "uptime": round(processes.age(init), 1) if init else None,
        "netns": str(site.home(host.name).netns),
        "root": str(site.home(host.name).root),
        "console": str(site.home(host.name).console),
    }


def _row(site: Site, host: Host) -> tuple[str, ...]:
    init = power.init_of(site, host)
    uptime = f"{processes.age(init):.0f} s" if init else "-"
    pid = str(init.pid) if init else "-"
    return (host.name, host.address, host.suite, state(site, host), uptime, pid)


def _line(row: tuple[str, ...], widths: list[int]) -> str:
    return "  ".join(word.ljust(width) for word, width in zip(row, widths, strict=True)).rstrip()
