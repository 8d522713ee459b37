"""Making things go wrong on a host, and right again.

Each function returns when the fault is there, or gone. What stays until it is mended is written
down first, so that `status` shows it and no reboot mends it by chance.
"""

from __future__ import annotations

from pathlib import Path

from lab import cgroups, clock, delaying, faultfile, filling, losing, network, power
from lab.errors import LabError
from lab.site import Home, Site


def stop(site: Site, name: str) -> None:
    """Shut a host down in order."""
    power.stop(site, site.host(name))


def start(site: Site, name: str) -> None:
    """Switch a host on; return when its sshd answers."""
    power.start(site, site.host(name))
    power.await_start(site, site.host(name))


def kill(site: Site, name: str) -> None:
    """Cut the power: all processes end at once."""
    power.kill(site, site.host(name))


def reboot(site: Site, name: str) -> None:
    """Reboot in order; return when sshd answers again."""
    power.reboot(site, site.host(name))


def freeze(site: Site, name: str) -> None:
    """Let no process of a host run any more; its kernel goes on answering at the network."""
    if not power.is_on(site, site.host(name)):
        raise LabError(f"`{name}` is off")
    cgroups.freeze(_group(site, name))


def thaw(site: Site, name: str) -> None:
    """Let a frozen host go on."""
    cgroups.thaw(_group(site, name))


def cut(site: Site, name: str) -> None:
    """Pull a host's network cables."""
    host = site.host(name)
    faultfile.change(site.home(name), cut=True)
    if power.is_on(site, host):
        network.set_link(site, host, up=False)


def mend(site: Site, name: str) -> None:
    """Make the network of a host whole: no cut, no loss, no delay."""
    host = site.host(name)
    faultfile.change(site.home(name), cut=False)
    if power.is_on(site, host):
        network.set_link(site, host, up=True)
    loss(site, name, 0)
    delay(site, name, 0)


def loss(site: Site, name: str, percent: float) -> None:
    """Lose so many of a host's packets, in each direction; none if 0, all if 100."""
    host = site.host(name)
    if not 0 <= percent <= 100:
        raise LabError(f"a loss is 0 to 100 percent, not {percent:g}")
    before = faultfile.read(site.home(name)).loss
    faultfile.change(site.home(name), loss=percent)
    if power.is_on(site, host):
        losing.end(site, host, before)
        losing.begin(site, host, percent)


def delay(site: Site, name: str, milliseconds: int) -> None:
    """Bring bytes late, in each direction, on new connections from the control side; 0 ends it."""
    host = site.host(name)
    if milliseconds < 0:
        raise LabError(f"a delay is 0 milliseconds or more, not {milliseconds}")
    if host.behind and milliseconds:
        raise LabError(f"`{name}` is reached through `{host.behind}`: delay that")
    if faultfile.read(site.home(name)).delay:
        delaying.end(site, host)
    faultfile.change(site.home(name), delay=milliseconds)
    if milliseconds:
        delaying.begin(site, host, milliseconds)


def fill(site: Site, name: str) -> None:
    """Leave no free block on a host's disk."""
    faultfile.change(_home(site, name), full=True)
    filling.fill(_home(site, name))


def unfill(site: Site, name: str) -> None:
    """Give a host its free blocks back."""
    filling.unfill(_home(site, name))
    faultfile.change(_home(site, name), full=False)


def skew(site: Site, name: str, seconds: int) -> None:
    """Show a wrong time to all that is started over ssh and sudo from now on; 0 ends it."""
    home = _home(site, name)
    faultfile.change(home, skew=seconds)
    # On a full disk there is no room for the files that do it.
    filling.unfill(home)
    clock.skew(home, seconds)
    if faultfile.read(home).full:
        filling.fill(home)


def heal(site: Site, name: str) -> None:
    """End all faults of a host, and have it running."""
    thaw(site, name)
    mend(site, name)
    unfill(site, name)
    skew(site, name, 0)
    start(site, name)


def _group(site: Site, name: str) -> Path:
    return site.groups.below(site.host(name).name).unified


def _home(site: Site, name: str) -> Home:
    return site.home(site.host(name).name)
