"""What the operating system of every host has to be like."""

from __future__ import annotations

from typing import Annotated

from kubexm.config.fields import (
    DnsNameOrAddress,
    HostAlias,
    IpAddress,
    Line,
    ModuleName,
    PackageName,
    ProxyExempt,
    ProxyUrl,
    SysctlKey,
    TimeZone,
)
from kubexm.document.forms import Filled, Form, empty


class ProxySpec(Form):
    """Through whom hosts reach the world."""

    http: ProxyUrl | None = None
    """For plain HTTP, such as `http://proxy.example.com:3128`."""
    https: ProxyUrl | None = None
    """For HTTPS; most often the same."""
    no_proxy: tuple[ProxyExempt, ...] = ()
    """Who is reached without it; the hosts, pods and services of the cluster always are."""


class HostsEntrySpec(Form):
    """A line of the hosts file."""

    address: IpAddress
    """Where."""
    names: Annotated[tuple[HostAlias, ...], Filled()]
    """Who."""


class NtpSpec(Form):
    """How hosts agree on the time."""

    enabled: bool = True
    """Whether kubexm sees to it; hosts whose time is kept already are left alone."""
    servers: tuple[DnsNameOrAddress, ...] = ()
    """Who is asked; those of the operating system if nothing is said."""


class SystemSpec(Form):
    """What the operating system of every host has to be like."""

    ntp: NtpSpec = NtpSpec()
    """How hosts agree on the time."""
    time_zone: TimeZone | None = None
    """The time zone; it is left as it is if nothing is said."""
    sysctl: dict[SysctlKey, Line] = empty(dict)
    """Settings of the kernel; they win over those that kubexm sets."""
    modules: tuple[ModuleName, ...] = ()
    """More modules of the kernel."""
    packages: tuple[PackageName, ...] = ()
    """More packages."""
    hosts: tuple[HostsEntrySpec, ...] = ()
    """More lines of the hosts file."""
    proxy: ProxySpec = ProxySpec()
    """Through whom hosts reach the world."""
