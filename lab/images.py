"""The roots that hosts share: one Debian for each suite, built once and never changed after.

An image is built in a directory beside its place and renamed when it is whole. Of two that want
the same, one builds and the other waits.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lab import mirror
from lab.commands import run
from lab.roster import Suite
from lab.site import Site

_PACKAGES = (
    *("systemd", "systemd-sysv", "dbus", "libpam-systemd", "openssh-server", "sudo"),
    *("iproute2", "iptables", "procps", "kmod", "curl", "ca-certificates", "conntrack"),
    *("socat", "ebtables", "ipset", "ethtool", "faketime"),
)
_USERS = ("admin", "ops")
# Counts up when the same packages are furnished in another way.
_RECIPE = 1


def ready(site: Site, suite: Suite) -> Path:
    """The root of a suite, built if it is not there."""
    image = _place(suite)
    with _building(image):
        if not image.exists():
            print(f"building the image of {suite}: a minute or two, once ...", flush=True)
            _build(site, suite, image)
    return image


def discard_half(site: Site) -> None:
    """Remove what a lab that was killed has left of an image."""
    lines = site.half_images.read_text().splitlines() if site.half_images.exists() else []
    for half in lines:
        shutil.rmtree(half, ignore_errors=True)


def _place(suite: Suite) -> Path:
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    recipe = f"{_RECIPE} {' '.join(_PACKAGES)} {' '.join(_USERS)}"
    digest = hashlib.sha256(recipe.encode()).hexdigest()[:12]
    return Path(cache) / "kubexm-lab" / f"{suite}-{digest}"


@contextmanager
def _building(image: Path) -> Iterator[None]:
    image.parent.mkdir(parents=True, exist_ok=True)
    with Path(f"{image}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _build(site: Site, suite: Suite, image: Path) -> None:
    half = Path(f"{image}.{site.id}.half")
    with site.half_images.open("a") as file:
        file.write(f"{half}\n")
    # Its mounts are in a namespace that ends with it, however it ends.
    run(
        *("unshare", "--mount", "--propagation", "private", "--"),
        *("debootstrap", "--variant=minbase", f"--include={','.join(_PACKAGES)}"),
        *(suite, half, mirror.mirror()),
    )
    _furnish(half)
    half.rename(image)


def _furnish(root: Path) -> None:
    """What all hosts of the suite have in common."""
    for user in _USERS:
        run("chroot", root, "useradd", "--create-home", "--shell", "/bin/bash", user)
        rule = root / "etc/sudoers.d" / user
        rule.write_text(f"{user} ALL=(ALL:ALL) {'NOPASSWD: ' if user == 'admin' else ''}ALL\n")
        rule.chmod(0o440)
    # Each host has keys of its own, and apt has nowhere to go.
    for left in (*root.glob("etc/ssh/ssh_host_*"), *root.glob("var/cache/apt/archives/*.deb")):
        left.unlink()
    (root / "etc/apt/sources.list").write_text("")
    shutil.rmtree(root / "var/lib/apt/lists")
    (root / "var/lib/apt/lists/partial").mkdir(parents=True)
    _leave_the_kernel_alone(root)


def _leave_the_kernel_alone(root: Path) -> None:
    """Starting a host must not set what it shares with the machine, such as `kernel.pid_max`."""
    for vendor in (root / "usr/lib/sysctl.d").glob("*.conf"):
        mask = root / "etc/sysctl.d" / vendor.name
        mask.unlink(missing_ok=True)
        mask.symlink_to("/dev/null")
