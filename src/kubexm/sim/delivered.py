"""A host as it was delivered: shared by all hosts of one machine, but for what is its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from itertools import chain
from pathlib import PurePosixPath
from types import MappingProxyType

from kubexm.sim import kernel
from kubexm.sim.brought import package
from kubexm.sim.chance import identity
from kubexm.sim.settings import Machine, ServiceSettings
from kubexm.sim.state import Inode, Service, Value

_DIRECTORIES = {
    **dict.fromkeys(("/", "/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/mnt"), 0o755),
    **dict.fromkeys(("/opt", "/proc", "/run", "/sbin", "/srv", "/sys", "/usr", "/var"), 0o755),
    **dict.fromkeys(("/usr/bin", "/usr/lib", "/usr/local", "/usr/local/bin"), 0o755),
    **dict.fromkeys(("/usr/sbin", "/usr/share", "/etc/systemd", "/etc/systemd/system"), 0o755),
    **dict.fromkeys(("/etc/sysctl.d", "/etc/modules-load.d", "/sys/module"), 0o755),
    **dict.fromkeys(("/var/cache", "/var/lib", "/var/log"), 0o755),
    **dict.fromkeys(("/tmp", "/var/tmp"), 0o1777),  # noqa: S108  # their names, not their use
    "/root": 0o700,
}
_USERS = (
    "root:0 daemon:1 bin:2 sys:3 sync:4 games:5 man:6 lp:7 mail:8 news:9 uucp:10 proxy:13"
    " www-data:33 backup:34 list:38 irc:39 _apt:42 nobody:65534"
)
_GROUPS = (
    "root:0 daemon:1 bin:2 sys:3 adm:4 tty:5 disk:6 lp:7 mail:8 news:9 uucp:10 man:12 proxy:13"
    " kmem:15 dialout:20 fax:21 voice:22 cdrom:24 floppy:25 tape:26 sudo:27 audio:29 dip:30"
    " www-data:33 backup:34 operator:37 list:38 irc:39 src:40 shadow:42 utmp:43 video:44 sasl:45"
    " plugdev:46 staff:50 games:60 users:100 nogroup:65534"
)
FAMILIES = {
    "ubuntu": "debian",
    "rhel": "fedora",
    "centos": "rhel fedora",
    "rocky": "rhel centos fedora",
    "almalinux": "rhel centos fedora",
    "opensuse-leap": "suse opensuse",
    "sles": "suse",
}
"""The systems that a system says it is like, by its short name."""
_OWN: Mapping[str, Callable[[int, str], str]] = {
    "/etc/hostname": lambda _seed, host: f"{host}\n",
    "/proc/sys/kernel/hostname": lambda _seed, host: f"{host}\n",
    "/etc/machine-id": lambda seed, host: f"{identity(seed, host, 'machine')}\n",
    "/proc/sys/kernel/random/boot_id": lambda seed, host: f"{boot_id(seed, host, 1)}\n",
    "/sys/class/dmi/id/product_uuid": lambda seed, host: f"{_uuid(seed, host, 'product')}\n",
}


class Delivered(Mapping[str, Value]):
    """The cells of a host before anybody touched it."""

    __slots__ = ("_host", "_seed", "_shared")

    def __init__(self, seed: int, host: str, shared: Mapping[str, Value]) -> None:
        self._seed = seed
        self._host = host
        self._shared = shared

    def __getitem__(self, key: str) -> Value:
        if (make := _OWN.get(key)) is not None:
            return text_file(make(self._seed, self._host))
        return self._shared[key]

    def get(self, key: str, default: Value | None = None) -> Value | None:  # type: ignore[override]
        """The same without an exception: hosts ask for cells all the time."""
        if key in _OWN:
            return self[key]
        return self._shared.get(key, default)

    def __iter__(self) -> Iterator[str]:
        return chain(self._shared, _OWN)

    def __len__(self) -> int:
        return len(self._shared) + len(_OWN)


def boot_id(seed: int, host: str, boot: int) -> str:
    """What the kernel calls this boot of a host, in the form of a uuid."""
    return _uuid(seed, host, f"boot {boot}")


def _uuid(seed: int, host: str, about: str) -> str:
    text = identity(seed, host, about)
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def text_file(text: str, mode: int = 0o644) -> Inode:
    """A file of root's with this content."""
    return Inode("file", mode, text=text, size=len(text.encode()))


def service(settings: ServiceSettings) -> Service:
    """A unit as the settings of a world describe it."""
    return Service(active=settings.active, enabled=settings.enabled, ports=settings.ports)


def unit_name(name: str) -> str:
    """The whole name of a unit: `nginx` is `nginx.service`."""
    return name if PurePosixPath(name).suffix in _UNIT_SUFFIXES else f"{name}.service"


_UNIT_SUFFIXES = frozenset((".service", ".socket", ".timer", ".target", ".mount", ".path", ".swap"))


def shared_cells(machine: Machine) -> Mapping[str, Value]:
    """What all hosts of a machine have in common."""
    cells: dict[str, Value] = {path: _directory(mode) for path, mode in _DIRECTORIES.items()}
    brought = [one for name in machine.packages if (one := package(name, machine.os_id))]
    files = {path: text for one in brought for path, text in one.content.items()}
    files |= {**_system_files(machine), **machine.files}
    programs = {path: text for one in brought for path, text in one.executables.items()}
    for path in (*files, *programs, *_OWN):
        for parent in PurePosixPath(path).parents:
            cells.setdefault(str(parent), _directory(0o755))
    cells |= {path: text_file(text) for path, text in files.items()}
    cells |= {path: text_file(text, 0o755) for path, text in programs.items()}
    for name, settings in machine.services.items():
        cells[f"service:{unit_name(name)}"] = service(settings)
    cells |= {f"package:{name}": version for name, version in machine.packages.items()}
    for kind, listed in (("user", _USERS), ("group", _GROUPS)):
        numbers = {**machine.users, **_ids(listed)}
        cells |= {f"{kind}:{name}": id for name, id in numbers.items()}
    return MappingProxyType(cells)


def _ids(listed: str) -> dict[str, int]:
    """Ids by name, of what every Debian host has."""
    pairs = (entry.split(":") for entry in listed.split())
    return {name: int(id) for name, id in pairs}


@cache
def _directory(mode: int) -> Inode:
    return Inode("directory", mode)


def _system_files(machine: Machine) -> dict[str, str]:
    release = (
        f'PRETTY_NAME="{machine.os_name}"\nID={machine.os_id}\nVERSION_ID="{machine.os_version}"\n'
    )
    if like := FAMILIES.get(machine.os_id):
        release += f'ID_LIKE="{like}"\n'
    table = "/dev/vda1 / ext4 errors=remount-ro 0 1\n"
    if machine.swap_mib:
        table += f"{kernel.SWAP} none swap sw 0 0\n"
    return {
        "/etc/os-release": release,
        "/etc/fstab": table,
        "/etc/resolv.conf": "nameserver 10.0.0.2\n",
        **kernel.files(machine),
        "/proc/sys/kernel/osrelease": f"{machine.kernel}\n",
    }
