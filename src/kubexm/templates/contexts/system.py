"""Settings of the operating system: time, and the way to the world."""

from __future__ import annotations

from kubexm.common import layout
from kubexm.templates.context import Context, Template

PROXY_DROPIN = f"{layout.UNITS}/{{unit}}.service.d/20-kubexm-proxy.conf"


class ChronyConfig(Context, frozen=True, kw_only=True):
    """Who chrony asks for the time."""

    servers: tuple[str, ...]
    """Names or addresses."""


class ProxyEnvironment(Context, frozen=True, kw_only=True):
    """Through whom a service reaches the world."""

    http: str = ""
    """For plain HTTP, such as `http://proxy.internal:3128`."""
    https: str = ""
    """For HTTPS."""
    no_proxy: tuple[str, ...] = ()
    """Who is reached without it: names, `.suffixes`, addresses and networks."""


TEMPLATES = (
    Template(
        "chrony/config",
        ChronyConfig,
        "text",
        "who is asked for the time",
        "/etc/chrony/chrony.conf, /etc/chrony.conf",
        (ChronyConfig(servers=("ntp1.internal", "10.0.0.2", "fd00::2")),),
    ),
    Template(
        "proxy/environment",
        ProxyEnvironment,
        "unit",
        "through whom a service reaches the world",
        PROXY_DROPIN,
        (
            ProxyEnvironment(
                http="http://proxy.internal:3128",
                https="http://us%20er@proxy.internal:3128",
                no_proxy=("localhost", "127.0.0.1", "10.0.0.0/8", ".svc"),
            ),
            ProxyEnvironment(https="http://proxy.internal:3128"),
        ),
    ),
)
