"""What a simulated world is like: its machines, its delays, its faults, its scripted commands."""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, Literal

import msgspec

if TYPE_CHECKING:
    from statistics import NormalDist


def _no_less_than(least: float, **found: float) -> None:
    for name, value in found.items():
        if not value >= least:
            raise ValueError(f"`{name}` is {value:g}, want at least {least:g}")


class Fixed(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="fixed"):
    """Always the same time."""

    seconds: float = 0.0

    def __post_init__(self) -> None:
        _no_less_than(0.0, seconds=self.seconds)

    def at(self, _chance: float) -> float:
        return self.seconds


class Uniform(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="uniform"
):
    """Any time between two, all as likely."""

    low: float
    high: float

    def __post_init__(self) -> None:
        _no_less_than(0.0, low=self.low)
        _no_less_than(self.low, high=self.high)

    def at(self, chance: float) -> float:
        return self.low + (self.high - self.low) * chance


class Lognormal(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="lognormal"
):
    """Mostly near the median, now and then much longer, as networks and disks are."""

    median: float
    sigma: float = 0.5

    def __post_init__(self) -> None:
        _no_less_than(0.0, median=self.median, sigma=self.sigma)

    def at(self, chance: float) -> float:
        return self.median * math.exp(self.sigma * _normal().inv_cdf(chance or 2.0**-64))


Distribution = Fixed | Uniform | Lognormal
"""How long something takes; `at` maps a chance in [0, 1) to seconds."""

INSTANT = Fixed()


@cache
def _normal() -> NormalDist:
    from statistics import NormalDist  # noqa: PLC0415 it takes long to load, for this alone

    return NormalDist()


class ServiceSettings(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", omit_defaults=True
):
    """A unit that systemd knows, and the ports that are open while it runs."""

    active: bool = False
    enabled: bool = False
    ports: tuple[int, ...] = ()


class PackageSettings(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", omit_defaults=True
):
    """What installing a package brings along."""

    version: str = "1.0"
    files: dict[str, str] = {}
    services: dict[str, ServiceSettings] = {}


class Machine(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", omit_defaults=True
):
    """A host as it was delivered."""

    os_id: str = "debian"
    os_version: str = "12"
    os_name: str = "Debian GNU/Linux 12 (bookworm)"
    kernel: str = "6.1.0-18-amd64"
    arch: str = "x86_64"
    cpus: int = 4
    memory_mib: int = 8192
    swap_mib: int = 0
    disk_mib: int = 102_400
    files: dict[str, str] = {}
    """Content by path; the directories above come by themselves."""
    services: dict[str, ServiceSettings] = {}
    packages: dict[str, str] = {}
    """Versions by name."""
    users: dict[str, int] = {}
    """Ids by name, beside those of every Debian host; each has a group of the same name."""


class Effects(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", omit_defaults=True
):
    """What a scripted command leaves behind."""

    files: dict[str, str] = {}
    absent: tuple[str, ...] = ()
    services: dict[str, bool] = {}
    """Whether each runs afterwards."""
    packages: dict[str, str] = {}
    opens: tuple[int, ...] = ()
    """Ports that listen afterwards."""
    closes: tuple[int, ...] = ()


class Script(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", omit_defaults=True
):
    """How hosts answer a command; each argument is a glob, a last `**` stands for any rest.

    With `times` it answers so often on each host, and then the next one that matches does, or
    the simulation itself. Fail twice, then succeed: two scripts, the first with `times: 2`.
    """

    argv: tuple[str, ...]
    hosts: str = "*"
    exit: int = 0
    stdout: str = ""
    stderr: str = ""
    duration: Distribution = INSTANT
    effects: Effects = Effects()
    times: int | None = None

    def __post_init__(self) -> None:
        if not self.argv:
            raise ValueError("a script without `argv` matches nothing")
        if self.times is not None:
            _no_less_than(1, times=self.times)


FaultKind = Literal["connection-lost", "unreachable", "fail", "hang", "disk-full", "slow"]


class Fault(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", omit_defaults=True
):
    """Something that goes wrong: at the n-th command of a host, or with a probability at each.

    `connection-lost`: the channel breaks; `applied` says whether the command was carried out,
    None leaves it to the seed. `unreachable`: the host is gone for `seconds`, or until it is
    revived. `fail`: exit 1 without effect. `hang`: no answer for `seconds`, or ever.
    `disk-full`: nothing can be written. `slow`: `seconds` more.
    """

    kind: FaultKind
    hosts: str = "*"
    argv: tuple[str, ...] = ("**",)
    at: int | None = None
    probability: float = 0.0
    seconds: float | None = None
    applied: bool | None = None

    def __post_init__(self) -> None:
        if (self.at is None) == (self.probability == 0.0):
            meant = "the number of a command, or a chance from 0 to 1"
            raise ValueError(f"fault `{self.kind}` needs either `at` or `probability`: {meant}")
        if not 0.0 <= self.probability <= 1.0:
            raise ValueError(f"`probability` is {self.probability:g}, want 0 to 1")
        if self.kind == "slow" and self.seconds is None:
            raise ValueError("fault `slow` needs `seconds`")


class WorldSettings(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", omit_defaults=True
):
    """Everything about a world that does not change while it is used."""

    seed: int = 0
    latency: Distribution = INSTANT
    """Of each round trip."""
    machine: Machine = Machine()
    machines: dict[str, Machine] = {}
    """Other machines, by a glob over host names; the first that matches counts."""
    packages: dict[str, PackageSettings] = {}
    """What the package archive holds; any other name can be had too, and brings nothing along."""
    scripts: tuple[Script, ...] = ()
    faults: tuple[Fault, ...] = ()
    addresses: dict[str, tuple[str, ...]] = {}
    """Of hosts by name, the main one first; any other host gets one that is made up."""
    balancers: dict[str, tuple[str, ...]] = {}
    """Load balancers that are none of the hosts: where each hands connections on to, such as
    `10.0.0.11:6443` or `[fd00::11]:6443`, by its own address, or name, and port."""
    site: tuple[str, ...] = ()
    """What the site has beside these hosts, such as a registry: `HOST:PORT` each, where somebody
    answers."""
    names: bool = True
    """Whether every host knows the others by name; else what its hosts file says counts."""
    outside: bool = True
    """Whether sites outside of the world answer."""
    bundled: bool = False
    """Whether every file and image of a cluster is at hand already, as with a bundle."""
    hesitates: bool = False
    """Whether nodes and workloads of a cluster take time: none is ready when first looked at."""
