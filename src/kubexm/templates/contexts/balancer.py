"""What stands in front of the API servers: haproxy, nginx, keepalived."""

from __future__ import annotations

import msgspec

from kubexm.common import layout
from kubexm.templates.context import Context, Template

HAPROXY_CONFIG = "/etc/haproxy/haproxy.cfg"
HAPROXY_DATA = "/var/lib/haproxy/dev"
KEEPALIVED_CONFIG = "/etc/keepalived/keepalived.conf"
CONTAINED_HAPROXY_CONFIG = f"{layout.BALANCER}/haproxy.cfg"
CONTAINED_NGINX_CONFIG = f"{layout.BALANCER}/nginx.conf"
CONTAINED_CONNECTIONS = 450
"""What a container of ctr can take: it has 1024 open files, and each connection takes two."""


class Backend(msgspec.Struct, frozen=True, kw_only=True):
    """An API server."""

    name: str
    """What it is called: the name of its host."""
    address: str
    """Where it is: address and port, an IPv6 address in brackets."""


class HaproxyConfig(Context, frozen=True, kw_only=True):
    """How haproxy leads to the API servers."""

    binds: tuple[str, ...]
    """Where it listens: `127.0.0.1:6443`, `[::1]:6443`, `*:6443` for all addresses of IPv4, or
    `[::]:6443 v4v6` for all of both families."""
    backends: tuple[Backend, ...]
    """The API servers."""
    health: str = "127.0.0.1:8081"
    """Where `/healthz` tells whether any of them is ready."""
    max_connections: int = 4000
    """How many connections it takes."""
    user: str = ""
    """Who it becomes once it listens; nobody else if it is started as somebody already."""


class NginxConfig(Context, frozen=True, kw_only=True):
    """How nginx leads to the API servers; it stays in the foreground."""

    binds: tuple[str, ...]
    """Where it listens: `127.0.0.1:6443`, `[::1]:6443`."""
    backends: tuple[Backend, ...]
    """The API servers."""


class KeepalivedConfig(Context, frozen=True, kw_only=True):
    """How the load-balancer hosts agree on who holds the address."""

    name: str
    """The name of the host."""
    interface: str
    """The interface that gets the address, unless `others` has that of the host's own."""
    others: dict[str, str] = msgspec.field(default_factory=dict)
    """Interfaces of the host beside that of its default route, by its addresses at them."""
    router_id: int
    """Tells this group of hosts from others on the same network."""
    order: int
    """The place of this host among them, from 0: the first one that is well holds the address."""
    address: str
    """The address by which the others reach it, of the same family as the virtual one."""
    peers: tuple[str, ...]
    """The addresses of the others."""
    virtual_address: str
    """The address that one of them holds."""


_BACKENDS = (
    Backend(name="node1", address="10.0.0.11:6443"),
    Backend(name="node2", address="[fd00::12]:6443"),
)

TEMPLATES = (
    Template(
        "haproxy/config",
        HaproxyConfig,
        "haproxy",
        "how haproxy leads to the API servers",
        f"{HAPROXY_CONFIG}, {CONTAINED_HAPROXY_CONFIG}",
        (
            HaproxyConfig(binds=("*:6443",), backends=_BACKENDS, user="haproxy"),
            HaproxyConfig(binds=("[::]:6443 v4v6",), backends=_BACKENDS, user="haproxy"),
            HaproxyConfig(
                binds=("127.0.0.1:6443", "[::1]:6443"),
                backends=_BACKENDS,
                max_connections=CONTAINED_CONNECTIONS,
            ),
        ),
    ),
    Template(
        "nginx/config",
        NginxConfig,
        "nginx",
        "how nginx leads to the API servers",
        CONTAINED_NGINX_CONFIG,
        (NginxConfig(binds=("127.0.0.1:6443", "[::1]:6443"), backends=_BACKENDS),),
    ),
    Template(
        "keepalived/config",
        KeepalivedConfig,
        "keepalived",
        "which load-balancer host holds the address",
        KEEPALIVED_CONFIG,
        (
            KeepalivedConfig(
                name="lb1",
                interface="eth0",
                router_id=51,
                order=0,
                address="10.0.0.21",
                peers=("10.0.0.22", "10.0.0.23"),
                virtual_address="10.0.0.100",
            ),
            KeepalivedConfig(
                name="lb2",
                interface="eth0",
                router_id=52,
                order=1,
                address="fd00::22",
                peers=("fd00::21",),
                virtual_address="fd00::100",
            ),
            KeepalivedConfig(
                name="lb1",
                interface="eth0",
                router_id=51,
                order=0,
                address="10.0.0.21",
                peers=(),
                virtual_address="10.0.0.100",
            ),
        ),
    ),
)
