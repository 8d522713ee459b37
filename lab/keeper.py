"""The process that keeps one host: starts it, starts it again when it reboots, stops it.

`python -m lab.keeper SITE HOST`, run by `lab.power`. Without a systemd outside, nspawn ends when
its host reboots, and somebody has to be there for what comes next.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from types import FrameType

from lab import cgroups, daemon, faultfile, furnishing, losing, network
from lab.roster import Host
from lab.site import Site

_REBOOT = 133
# What a host may do to itself, without what would reach the machine: its clock, its kernel's
# modules, its memory.
_FORBIDDEN = "CAP_SYS_TIME,CAP_SYS_MODULE,CAP_SYS_RAWIO"
# Those who run containers write below /proc and /sys. And a lock that nspawn leaves behind when
# it is killed would stay for ever; the keeper already sees to it that a host runs once.
_ENVIRONMENT = {"SYSTEMD_NSPAWN_API_VFS_WRITABLE": "1", "SYSTEMD_NSPAWN_LOCK": "0"}
_CALLS = "@keyring bpf @mount perf_event_open"


class Keeper:
    """One host, from its start until it is off."""

    def __init__(self, site: Site, host: Host) -> None:
        self._site = site
        self._host = host
        self._nspawn: subprocess.Popen[bytes] | None = None
        self._stopping = False

    def keep(self) -> None:
        """Return when the host is off."""
        signal.signal(signal.SIGTERM, self._stop)
        try:
            while self._boot() == _REBOOT and not self._stopping:
                pass
        finally:
            network.unplug(self._site, self._host)

    def _boot(self) -> int:
        faults = faultfile.read(self._site.home(self._host.name))
        network.plug(self._site, self._host, cut=faults.cut)
        losing.begin(self._site, self._host, faults.loss)
        groups = self._site.groups.below(self._host.name)
        self._nspawn = subprocess.Popen(
            command(self._site, self._host),
            env=os.environ | _ENVIRONMENT,
            # Safe here: there is one thread.
            preexec_fn=lambda: cgroups.join(groups),  # noqa: PLW1509
        )
        if self._stopping:
            self._nspawn.terminate()
        return self._nspawn.wait()

    def _stop(self, _number: int, _frame: FrameType | None) -> None:
        self._stopping = True
        if self._nspawn is not None and self._nspawn.poll() is None:
            # nspawn asks the systemd inside to power off.
            self._nspawn.terminate()


def command(site: Site, host: Host) -> tuple[str, ...]:
    """How nspawn boots a host."""
    home = site.home(host.name)
    data = (f"--bind={home.disk}/data/{name}:/var/lib/{name}" for name in furnishing.DATA)
    return (
        *("systemd-nspawn", "--quiet", "--boot", "--register=no", "--keep-unit"),
        *(f"--machine={site.machine(host.name)}", f"--hostname={host.name}"),
        *(f"--directory={home.root}", f"--network-namespace-path={home.netns}"),
        *("--resolv-conf=off", "--timezone=off", "--link-journal=no"),
        *("--capability=all", f"--drop-capability={_FORBIDDEN}"),
        f"--system-call-filter={_CALLS}",
        # Where a full disk costs nothing else: one mebibyte.
        "--tmpfs=/var/lib/small:size=1M,mode=1777",
        *data,
    )


def main(place: str, name: str) -> None:
    site = daemon.join(Path(place))
    home = site.home(name)
    daemon.detach(home.keeper, home.console)
    Keeper(site, site.host(name)).keep()


if __name__ == "__main__":
    main(*sys.argv[1:])
