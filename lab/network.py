"""The network of a lab: two bridges in a namespace that has no link to anywhere else.

Nothing that runs in there can reach past it, whatever it tries, and nothing in it clashes with
the machine's own networks.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lab import mounts, roster
from lab.commands import run
from lab.roster import Host
from lab.site import Site

_CLONE_NEWNET = 0x40000000
PROXY = f"{roster.LAN}.2"
"""Where connections come from that the lab's own proxies make."""
_LAN = "lan"
_CELLAR = "cellar"


def make(site: Site) -> None:
    """The namespace and its bridges, if they are not there yet."""
    if mounts.is_mounted(site.netns):
        return
    # Under another name until it is whole: half a network would never be made whole.
    half = site.path / "netns.half"
    mounts.unmount(half)
    _new_namespace(half)
    _ip(
        half,
        "link set lo up",
        f"link add {_LAN} type bridge",
        f"addr add {roster.CONTROL}/{roster.PREFIX} dev {_LAN}",
        f"addr add {PROXY}/{roster.PREFIX} dev {_LAN}",
        f"link set {_LAN} up",
        f"link add {_CELLAR} type bridge",
        # No address of either version there: who is hidden is hidden from the control side too.
        f"link set {_CELLAR} addrgenmode none",
        f"link set {_CELLAR} up",
    )
    _forbid_forwarding(half)
    mounts.move(half, site.netns)


def plug(site: Site, host: Host, *, cut: bool) -> None:
    """A new namespace for a host that is about to start, wired to the lab's."""
    netns = site.home(host.name).netns
    unplug(site, host)
    _new_namespace(netns)
    _ip(site.netns, *_outer_lines(host, netns, "down" if cut else "up"))
    _ip(netns, *_inner_lines(host))
    _forbid_forwarding(netns)


def unplug(site: Site, host: Host) -> None:
    """Take a host's namespace away; its links end with it."""
    mounts.unmount(site.home(host.name).netns)
    for link in _links(host):
        # The kernel removes an ended namespace and its links when it finds the time.
        if _has_link(site.netns, link):
            run(*inside(site.netns), "ip", "link", "delete", link)


def set_link(site: Site, host: Host, *, up: bool) -> None:
    """Pull a host's cables out of the bridges, or put them back."""
    _ip(site.netns, *(f"link set {link} {'up' if up else 'down'}" for link in _links(host)))


def inside(netns: Path) -> tuple[str, ...]:
    """What to put before a command that shall run in a network namespace."""
    return ("nsenter", f"--net={netns}", "--")


def enter(netns: Path) -> None:
    """Move this thread into a network namespace, and with it all that it starts from now on."""
    handle = os.open(netns, os.O_RDONLY | os.O_CLOEXEC)
    try:
        # `os.setns` came with Python 3.12.
        if ctypes.CDLL(None, use_errno=True).setns(handle, _CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(netns))
    finally:
        os.close(handle)


@contextmanager
def entered(netns: Path) -> Iterator[None]:
    """This thread in a network namespace for a while."""
    before = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        enter(netns)
        yield
    finally:
        enter(Path(f"/proc/self/fd/{before}"))
        os.close(before)


def _outer_lines(host: Host, netns: Path, state: str) -> Iterator[str]:
    bridges = [_CELLAR if host.behind else _LAN, _CELLAR]
    for number, link in enumerate(_links(host)):
        yield f"link add {link} type veth peer name eth{number} netns {netns}"
        yield f"link set {link} master {bridges[number]} addrgenmode none"
        yield f"link set {link} {state}"


def _inner_lines(host: Host) -> Iterator[str]:
    yield "link set lo up"
    for number, address in enumerate(filter(None, (host.address, host.inner_address))):
        yield f"link set eth{number} address {_hardware_address(address)}"
        yield f"addr add {address}/{roster.PREFIX} dev eth{number}"
        yield f"link set eth{number} up"
    if not host.behind:
        # It leads nowhere, since nothing is forwarded there. Kubernetes asks for one.
        yield f"route add default via {roster.CONTROL}"


def _hardware_address(address: str) -> str:
    """The same at every start: others remember it, and would talk to nobody for half a minute."""
    return "02:00:" + ":".join(f"{int(number):02x}" for number in address.split("."))


def _links(host: Host) -> tuple[str, ...]:
    """The lab's ends of a host's cables."""
    return (host.name, f"{host.name}-in") if host.inner_address else (host.name,)


def _new_namespace(file: Path) -> None:
    file.touch()
    run("unshare", f"--net={file}", "true")


def _ip(netns: Path, *lines: str) -> None:
    run(*inside(netns), "ip", "-batch", "-", stdin="".join(f"{line}\n" for line in lines))


def _has_link(netns: Path, link: str) -> bool:
    listing = run(*inside(netns), "ip", "-brief", "link", "show")
    return any(line.split()[0].partition("@")[0] == link for line in listing.splitlines())


def _forbid_forwarding(netns: Path) -> None:
    # A new namespace may begin with the machine's own settings.
    run(*inside(netns), "tee", "/proc/sys/net/ipv4/ip_forward", stdin="0\n")
    run(*inside(netns), "tee", "/proc/sys/net/ipv6/conf/all/forwarding", stdin="0\n")
