"""Bringing a lab up: what is missing of it is made, what is there is left as it is."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from lab import cgroups, credentials, furnishing, images, mounts, network, power
from lab import site as sites
from lab.commands import run
from lab.roster import Host, Suite
from lab.site import Site

_DISK = 16 * 1024**3
_AT_ONCE = 8


def up(path: Path, wanted: Sequence[Host], told: Callable[[str], None]) -> Site:
    """A lab with at least these hosts, all of them running.

    Meanwhile this process is one of the lab's: if it is killed, those that it had just started
    are found and ended when the lab is taken down.
    """
    with sites.locked(path):
        site = sites.require(path) if sites.find(path) else sites.found_new(path)
        cgroups.make(site.groups)
        with cgroups.member(site.groups.unified):
            _make(site, wanted, told)
    return site


def _make(site: Site, wanted: Sequence[Host], told: Callable[[str], None]) -> None:
    for host in wanted:
        if not site.home(host.name).record.exists():
            site.add(host)
    suites = sorted({host.suite for host in site.hosts()})
    roots = {suite: images.ready(suite) for suite in suites}
    credentials.make(site)
    network.make(site)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(lambda host: _install(site, host, roots), site.hosts()))
        _acquaint(site)
        list(pool.map(lambda host: told(_switch_on(site, host)), site.hosts()))


def _install(site: Site, host: Host, roots: dict[Suite, Path]) -> None:
    """A host's groups, its disk and its root; done before is done."""
    home = site.home(host.name)
    cgroups.make(site.groups.below(host.name))
    if mounts.is_mounted(home.root) and (home.path / "furnished").exists():
        return
    for at in (home.root, home.disk):
        mounts.unmount(at)
    # What an up that was killed has begun is begun again.
    home.image.unlink(missing_ok=True)
    _make_disk(home.image)
    mounts.disk(home.image, home.disk)
    for name in furnishing.DATA:
        (home.disk / "data" / name).mkdir(parents=True)
    mounts.overlay(roots[host.suite], home.disk, home.root)
    furnishing.furnish(site, host)
    (home.path / "furnished").touch()


def _make_disk(image: Path) -> None:
    with image.open("wb") as file:
        file.truncate(_DISK)
    # No block is kept for root, so that a full disk is full for everybody.
    run("mkfs.ext4", "-q", "-m", "0", "-O", "^has_journal", image)


def _acquaint(site: Site) -> None:
    credentials.write_known_hosts(site)
    credentials.write_ssh_config(site)
    furnishing.introduce(site, site.hosts())


def _switch_on(site: Site, host: Host) -> str:
    begun = time.monotonic()
    power.start(site, host)
    power.await_start(site, host)
    return f"{host.name:12} {host.address:14} {host.suite:9} {time.monotonic() - begun:5.1f} s"
