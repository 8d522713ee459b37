"""What runs in containers that units start, by the name of their image."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from kubexm.sim import balancers, imageserver
from kubexm.sim.daemons import Daemon


class Inside(msgspec.Struct, frozen=True):
    """A program in an image, and what it is given unless somebody says otherwise."""

    program: str
    daemon: Daemon
    args: tuple[str, ...]


INSIDE: Mapping[str, Inside] = {
    "haproxy": Inside(
        "haproxy", balancers.Haproxy(), ("haproxy", "-f", "/usr/local/etc/haproxy/haproxy.cfg")
    ),
    "nginx": Inside("nginx", balancers.Nginx(), ("nginx", "-g", "daemon off;")),
    "registry": Inside("registry", imageserver.DAEMON, ("/etc/distribution/config.yml",)),
}
"""By the last part of the image's name."""
