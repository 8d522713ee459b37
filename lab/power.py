"""Switching hosts on and off, and seeing whether they answer."""

from __future__ import annotations

import contextlib
import signal
import socket
from pathlib import Path

from lab import cgroups, daemon, faultfile, mounts, network, processes, waiting
from lab.errors import LabError
from lab.processes import Process
from lab.roster import Host
from lab.site import Site

_SSH = 22
_REBOOT = signal.SIGRTMIN + 5
"""What systemd takes for `systemctl reboot`."""


def start(site: Site, host: Host) -> None:
    """Switch a host on; return at once."""
    if not is_on(site, host):
        daemon.launch("lab.keeper", site.path, host.name)


def stop(site: Site, host: Host) -> None:
    """Have a host shut down; return when it is off."""
    _require_awake(site, host)
    keeper = daemon.recorded(site.home(host.name).keeper)
    if keeper is None or not keeper.send(signal.SIGTERM):
        # Nobody is left to ask it.
        cgroups.kill(_group(site, host))
    _wait_until_off(site, host, 90)


def kill(site: Site, host: Host) -> None:
    """Cut a host's power; return when it is off."""
    cgroups.kill(_group(site, host))
    # Else it would be frozen again as soon as it is switched on.
    cgroups.thaw(_group(site, host))
    _wait_until_off(site, host, 30)


def reboot(site: Site, host: Host) -> None:
    """Have a host reboot; return when it answers again."""
    _require_awake(site, host)
    init = init_of(site, host)
    if init is None:
        raise LabError(f"`{host.name}` is off")
    init.send(_REBOOT)
    waiting.until(lambda: not init.runs, f"`{host.name}` to go down", 90)
    waiting.until(lambda: init_of(site, host) is not None, f"`{host.name}` to come back", 30)
    await_start(site, host)


def is_on(site: Site, host: Host) -> bool:
    keeper = daemon.recorded(site.home(host.name).keeper)
    return (keeper is not None and keeper.runs) or cgroups.is_populated(_group(site, host))


def init_of(site: Site, host: Host) -> Process | None:
    """A host's first process, as seen from outside; None if it does not run."""
    pids = cgroups.pids(_group(site, host))
    return next((found for pid in pids if _is_init(pid) and (found := processes.look(pid))), None)


def await_start(site: Site, host: Host) -> None:
    """Wait until sshd of a host that was switched on answers; a frozen one is not waited for."""
    netns = site.home(host.name).netns
    waiting.until(lambda: mounts.is_mounted(netns), f"the network of `{host.name}`", 30)
    if not cgroups.is_frozen(_group(site, host)):
        with network.entered(_vantage(site, host)):
            waiting.until(lambda: _greets(host.address), f"sshd of `{host.name}`", 60, step=0.05)


def _vantage(site: Site, host: Host) -> Path:
    """Where a host is seen from: the control side, or itself if nobody gets through to it."""
    home = site.home(host.name)
    faults = faultfile.read(home)
    hidden = host.behind or faults.cut or faults.loss == 100
    return home.netns if hidden else site.netns


def _greets(address: str) -> bool:
    # Often and short: a packet that nobody took is sent again only after a second.
    with contextlib.suppress(OSError), socket.create_connection((address, _SSH), 0.2) as line:
        line.settimeout(5)
        return line.recv(4) == b"SSH-"
    return False


def _is_init(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
    numbers = next(line for line in status.splitlines() if line.startswith("NSpid:")).split()[1:]
    # The first of one namespace below ours; nspawn is in ours, a container of the host deeper.
    return len(numbers) == 2 and numbers[1] == "1"


def _require_awake(site: Site, host: Host) -> None:
    if cgroups.is_frozen(_group(site, host)):
        raise LabError(f"`{host.name}` is frozen: it hears nothing; `thaw` or `kill` it")


def _wait_until_off(site: Site, host: Host, seconds: float) -> None:
    waiting.until(lambda: not is_on(site, host), f"`{host.name}` to go off", seconds)


def _group(site: Site, host: Host) -> Path:
    return site.groups.below(host.name).unified
