"""That nothing of a lab reaches past it, by what every host and the lab itself say of their ways.

Kernels are asked which way a packet would take; none is sent.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from lab import network, roster
from lab.testing import Lab

# Any that are not of the lab.
_OUTSIDE = {"-4": "1.1.1.1", "-6": "2606:4700::1111"}


@contextmanager
def enclosed(lab: Lab) -> Iterator[None]:
    """The test itself in the lab's network, which is closed before and after."""
    with network.entered(lab.site.netns):
        require_no_way_outside(lab)
        yield
        require_no_way_outside(lab)


def require_no_way_outside(lab: Lab) -> None:
    """No host knows a way but to the lab's own end, and that one passes nothing on."""
    hosts = [host.name for host in lab.site.hosts()]
    for name in hosts:
        _ends_in_the_lab(lab, name)
    links = lab.run("ip", "-o", "-br", "link").stdout.splitlines()
    assert {line.split()[0].partition("@")[0] for line in links} == {"lo", "lan", "cellar", *hosts}
    for family, address in _OUTSIDE.items():
        assert "unreachable" in lab.run("ip", family, "route", "get", address).stderr
    for name in hosts:
        words = ("from", lab.address(name), "iif", "lan")
        asked = lab.run("ip", "route", "get", _OUTSIDE["-4"], *words)
        assert asked.returncode != 0, asked.stdout


def _ends_in_the_lab(lab: Lab, host: str) -> None:
    """The kernel of a host sends what is for outside to the lab's end, or nowhere."""
    old = lab.ssh(f"root@{host}", "ip", "route", "get", _OUTSIDE["-4"]).stdout
    assert f"via {roster.CONTROL} dev eth0 " in old, old
    new = lab.ssh(f"root@{host}", "ip", "-6", "route", "get", _OUTSIDE["-6"])
    assert "unreachable" in new.stderr, new.stdout
