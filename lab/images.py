"""The roots that hosts share: one Debian for each suite, built once and never changed after.

An image is built in a directory beside its place and renamed when it is whole. Of two that want
the same, one builds and the other waits.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from lab import mirror
from lab.commands import follow, run
from lab.roster import Suite

_PACKAGES = (
    *("systemd", "systemd-sysv", "dbus", "libpam-systemd", "openssh-server", "sudo"),
    *("iproute2", "iptables", "procps", "kmod", "curl", "ca-certificates", "conntrack"),
    *("socat", "ebtables", "ipset", "ethtool", "faketime", "python3"),
    *("ufw", "firewalld", "systemd-timesyncd", "tzdata", "nftables", "haproxy", "keepalived"),
)
# There for who wants to start them; a host of the lab is open, and has the time of the machine.
_ASLEEP = ("ufw", "firewalld", "systemd-timesyncd", "haproxy", "keepalived")
_USERS = ("admin", "ops")
# Counts up when the same packages are furnished in another way.
_RECIPE = 1
_SECONDS = 5.0
"""Between two lines of one that is being built."""


def ready(suite: Suite) -> Path:
    """The root of a suite, built if it is not there."""
    image = _place(suite)
    with _building(image):
        if not image.exists():
            print(f"building the image of {suite}: a minute or two, once ...", flush=True)
            _build(suite, image)
    return image


def discard_halves() -> None:
    """Remove what is left of images whose builder was killed."""
    for suite in Suite:
        half = _half(_place(suite))
        if half.exists():
            # Who holds the lock is another lab, and builds.
            with contextlib.suppress(BlockingIOError), _building(_place(suite), fcntl.LOCK_NB):
                shutil.rmtree(half, ignore_errors=True)


def _place(suite: Suite) -> Path:
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    recipe = f"{_RECIPE} {' '.join(_PACKAGES)} {' '.join(_USERS)}"
    digest = hashlib.sha256(recipe.encode()).hexdigest()[:12]
    return Path(cache) / "kubexm-lab" / f"{suite}-{digest}"


@contextmanager
def _building(image: Path, patience: int = 0) -> Iterator[None]:
    image.parent.mkdir(parents=True, exist_ok=True)
    with Path(f"{image}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX | patience)
        yield


def _half(image: Path) -> Path:
    return Path(f"{image}.half")


def _build(suite: Suite, image: Path) -> None:
    half = _half(image)
    # Of a builder that was killed: the lock is ours.
    shutil.rmtree(half, ignore_errors=True)
    # It ends with us, however we end, and all that it has started and mounted ends with it.
    follow(
        *("setpriv", "--pdeathsig", "KILL", "--"),
        *("unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child"),
        *("debootstrap", "--variant=minbase", f"--include={','.join(_PACKAGES)}"),
        *(suite, half, mirror.mirror()),
        heard=_telling(suite),
    )
    _furnish(half)
    half.rename(image)


def _telling(suite: Suite) -> Callable[[str], None]:
    """Say now and then how far debootstrap is: `I: Unpacking the base system...`."""
    begun = last = time.monotonic()

    def heard(line: str) -> None:
        nonlocal last
        now = time.monotonic()
        if line.startswith("I: ") and now - last >= _SECONDS:
            last = now
            print(f"{suite}: {line[3:].rstrip('.').lower()}, {now - begun:.0f} s", flush=True)

    return heard


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
    run("chroot", root, "systemctl", "disable", "--quiet", *_ASLEEP)
    _leave_the_kernel_alone(root)


def _leave_the_kernel_alone(root: Path) -> None:
    """Starting a host must not set what it shares with the machine, such as `kernel.pid_max`."""
    for vendor in (root / "usr/lib/sysctl.d").glob("*.conf"):
        mask = root / "etc/sysctl.d" / vendor.name
        mask.unlink(missing_ok=True)
        mask.symlink_to("/dev/null")
