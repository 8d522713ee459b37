"""What makes one host differ from another: the files written into its root before it starts."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterable
from pathlib import Path

from lab import credentials
from lab.commands import run
from lab.roster import CONTROL, Entry, Host
from lab.site import Site

DATA = ("containerd", "etcd", "kubelet")
"""Directories below /var/lib that lie on the host's disk itself: no overlay stands on another."""

_SETUP = """\
[Unit]
Description=What a host of the lab needs that a container has not
DefaultDependencies=no
Before=sysinit.target

[Service]
Type=oneshot
RemainAfterExit=yes
# nspawn mounts the groups read-only, and those who run containers make some of their own.
{remounts}
ExecStart=-/usr/bin/mknod /dev/kmsg c 1 11
ExecStart=/usr/bin/mount --make-rshared /
"""
# Nothing of this is Debian's default: sshd takes the first value it reads.
_SSHD = """\
TrustedUserCAKeys /etc/ssh/lab_authority.pub
PasswordAuthentication {password}
PubkeyAuthentication {key}
"""


def furnish(site: Site, host: Host) -> None:
    """Write everything a host has of its own."""
    root = site.home(host.name).root
    _write(root / "etc/hostname", f"{host.name}\n")
    _write(root / "etc/machine-id", f"{secrets.token_hex(16)}\n")
    # Names are in /etc/hosts; there is nobody to ask for others.
    _write(root / "etc/resolv.conf", "")
    _write(root / "etc/hosts", "127.0.0.1 localhost\n::1 localhost ip6-localhost\n")
    # Every machine with a kernel of its own has it, and who mounts it would make it.
    (root / "usr/lib/modules").mkdir(exist_ok=True)
    _mask_timers(root)
    _write_setup(root, site)
    _write_sshd(root, site, host)
    _let_in(root, site, host)


def introduce(site: Site, hosts: Iterable[Host]) -> None:
    """Let every host know the name of every other; what else is in the file stays."""
    lines = [f"{CONTROL} control", *(f"{host.address} {host.name}" for host in hosts)]
    for host in hosts:
        file = site.home(host.name).root / "etc/hosts"
        known = file.read_text().splitlines()
        missing = "".join(f"{line}\n" for line in lines if line not in known)
        if missing:
            with file.open("a") as names:
                names.write(missing)


def _mask_timers(root: Path) -> None:
    """Nothing happens on a host by its clock.

    Debian's timers hold apt's locks while lists of packages are read, write copies of what dpkg
    knows at midnight, and clear away files a quarter of an hour after the start: tests that compare
    what a host had before and after would see that, and now and then an installation would fail.
    """
    for timer in (root / "usr/lib/systemd/system").glob("*.timer"):
        mask = root / "etc/systemd/system" / timer.name
        mask.unlink(missing_ok=True)
        mask.symlink_to("/dev/null")


def _write_setup(root: Path, site: Site) -> None:
    controllers = ["", *sorted({_mount_name(path) for path in site.groups.controllers})]
    remounts = "\n".join(
        f"ExecStart=-/usr/bin/mount -o remount,bind,rw /sys/fs/cgroup/{name}"
        for name in controllers
    )
    unit = root / "etc/systemd/system/lab-setup.service"
    _write(unit, _SETUP.format(remounts=remounts))
    wants = unit.parent / "sysinit.target.wants"
    wants.mkdir(exist_ok=True)
    (wants / unit.name).symlink_to(f"../{unit.name}")


def _mount_name(group: Path) -> str:
    """`memory` of `/sys/fs/cgroup/memory/...`."""
    return group.relative_to("/sys/fs/cgroup").parts[0]


def _write_sshd(root: Path, site: Site, host: Host) -> None:
    by_password = host.entry is Entry.PASSWORD
    words = {"password": _yes(by_password), "key": _yes(not by_password)}
    _write(root / "etc/ssh/sshd_config.d/lab.conf", _SSHD.format(**words))
    _write(root / "etc/ssh/lab_authority.pub", credentials.authority(site))
    key = credentials.host_key(site, host)
    shutil.copy(key, root / "etc/ssh" / key.name)
    shutil.copy(key.with_suffix(".pub"), root / "etc/ssh")


def _let_in(root: Path, site: Site, host: Host) -> None:
    # On a host with keys `admin` has no password at all, and `ops` has one for sudo only.
    users = ("admin", "ops") if host.entry is Entry.PASSWORD else ("ops",)
    pairs = "".join(f"{user}:{credentials.password(site, user)}\n" for user in users)
    run("chroot", root, "chpasswd", stdin=pairs)
    if host.entry is Entry.KEY:
        for home in (root / "root", root / "home/admin", root / "home/ops"):
            _authorize(home, credentials.authorized(site))


def _authorize(home: Path, keys: str) -> None:
    owner = home.stat()
    folder = home / ".ssh"
    folder.mkdir(mode=0o700, exist_ok=True)
    _write(folder / "authorized_keys", keys, mode=0o600)
    for path in (folder, folder / "authorized_keys"):
        os.chown(path, owner.st_uid, owner.st_gid)


def _write(path: Path, text: str, mode: int = 0o644) -> None:
    # A link would lead out of the root, to a file of the machine.
    path.unlink(missing_ok=True)
    path.write_text(text)
    path.chmod(mode)


def _yes(true: bool) -> str:
    return "yes" if true else "no"
