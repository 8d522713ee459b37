"""What a host is: asked once, in one round trip, of a script that starts few processes.

The script is a constant: it holds no data, and what it prints is read here. A line is `NAME:TEXT`,
where a file is its own name, or belongs to the section that the last line `@SECTION` has begun; a
bare `@` ends one. `told:NAME` says that a look went well, even if there was nothing to see.
"""

from __future__ import annotations

import ipaddress
import math
import re
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any

from kubexm.common.facts import FACTS_SCRIPT
from kubexm.connector.base import BOOT, C_LOCALE
from kubexm.runner.host import Command, Completed, Host
from kubexm.runner.told import first, told

_OS = "/etc/os-release"
_MEMORY = "/proc/meminfo"
_STATUS = "/proc/self/status"
_KERNEL = "/proc/sys/kernel/osrelease"
_HOSTNAME = "/proc/sys/kernel/hostname"
_BOOT_ID = BOOT[-1]
_MACHINE_ID = "/etc/machine-id"
_ENFORCE = "/sys/fs/selinux/enforce"
_FIRST_PROCESS = "/proc/1/comm"
_RESOLVERS = "/etc/resolv.conf"
_BEHIND = "/run/systemd/resolve/resolv.conf"
"""Whom systemd-resolved asks, where the other file names nobody but itself."""
_KEEPERS = (
    *("/run/systemd/timesync/synchronized", "/run/chrony/chronyd.pid", "/run/chronyd.pid"),
    *("/run/ntpd.pid", "/run/ntp/ntpd.pid", "/run/openntpd.pid"),
)
"""What is there while something keeps the time."""
_FILES = (
    *(_OS, _MEMORY, _STATUS, _KERNEL, _HOSTNAME, _BOOT_ID, _MACHINE_ID, _ENFORCE, _FIRST_PROCESS),
    *(_RESOLVERS, _BEHIND),
    *(f"/sys/block/[!lrz]*/{name}" for name in ("size", "queue/rotational", "device/model")),
)
_HEAD = f"""{FACTS_SCRIPT}exec 2>/dev/null
PATH=$PATH:/usr/sbin:/sbin
"""
# One `grep` for all files; the rest is done by the shell itself wherever it can.
_OPEN = f"""echo "clock:$(date +%s.%N)"
echo "arch:$(uname -m)"
grep -sH '' {" ".join(_FILES)}
[ -d /run/systemd/system ] && echo init:systemd
if [ -e /sys/fs/cgroup/cgroup.controllers ]; then echo cgroup:2
elif [ -d /sys/fs/cgroup/memory ]; then echo cgroup:1; fi
for tool in apt-get dnf yum zypper containerd dockerd crio; do
  command -v $tool >/dev/null && echo tool:$tool
done
printf '%s\\n' told:tools told:resolvers
for mark in {" ".join(_KEEPERS)}; do
  [ -e $mark ] && echo kept:$mark
done
while read -r name to via _ _ _ _ mask _; do
  [ "$to $mask" = '00000000 00000000' ] || continue
  echo "route:$name $via"
  read -r mtu <"/sys/class/net/$name/mtu" && echo "mtu:$mtu"
  read -r mac <"/sys/class/net/$name/address" && echo "mac:$mac"
  break
done </proc/net/route
echo @addresses
ip -o addr show scope global || hostname -I
echo @filesystems
df -lPTk
"""
_FOR_ROOT = """echo @
read -r uuid </sys/class/dmi/id/product_uuid && echo "uuid:$uuid"
echo @ports
ss -Hltunp || grep -sH ' 0[A7] ' /proc/net/tcp /proc/net/tcp6 /proc/net/udp /proc/net/udp6
[ $? -lt 2 ] && printf '%s\\n' @ told:ports
"""


def commands(host: Host) -> tuple[Command, ...]:
    """The questions; `facts_of` reads the answers."""
    root = host.script(_HEAD + _FOR_ROOT, env=C_LOCALE)
    if root.sudo:
        # A sudo that does not work leaves out what is for root alone, and nothing else.
        return host.script(_HEAD + _OPEN, sudo=False, env=C_LOCALE), root
    return (host.script(_HEAD + _OPEN + _FOR_ROOT, env=C_LOCALE),)


def facts_of(
    answers: Sequence[Completed], around: tuple[float, float] | None = None
) -> dict[str, Any]:
    """Facts by name, all of them among `FACTS`; what a host does not tell is left out.

    `around` is the time here before and after the question, by which its clock is judged.
    """
    lines, sections = told(answer.text for answer in answers)
    memory = _numbers(lines.get(_MEMORY, ()))
    system = _system(tuple(lines.get(_OS, ())))
    tools = lines.get("tool", [])
    done = lines.get("told", [])
    facts = {
        "os": system or None,
        "kernel": sys.intern(first(lines, _KERNEL)),
        "arch": sys.intern(first(lines, "arch")),
        "cpus": _cpus(lines.get(_STATUS, ())),
        "memory_mib": memory.get("MemTotal"),
        "swap_mib": memory.get("SwapTotal"),
        "disks": _disks(tuple(_of_disks(lines))) or None,
        "filesystems": _filesystems(tuple(sections.get("filesystems", ()))) or None,
        "hostname": first(lines, _HOSTNAME),
        "boot_id": first(lines, _BOOT_ID),
        "machine_id": first(lines, _MACHINE_ID),
        "product_uuid": first(lines, "uuid").lower(),
        "addresses": _addresses(sections.get("addresses", ())) or None,
        "network": _network(lines, sections.get("addresses", ())) or None,
        "ports": _ports(tuple(sections.get("ports", ())), "ports" in done),
        "clock": _clock(first(lines, "clock"), around, kept="kept" in lines) or None,
        "init": sys.intern(first(lines, "init") or first(lines, _FIRST_PROCESS)),
        "cgroup": _number(first(lines, "cgroup")),
        "selinux": _SELINUX.get(first(lines, _ENFORCE), "disabled") if done else "",
        "package_manager": _package_manager(system.get("family", ""), tools),
        "runtimes": _runtimes(tuple(tools)) if "tools" in done else None,
    }
    return {name: value for name, value in facts.items() if value not in (None, "")}


async def gather(host: Host) -> dict[str, Any]:
    """Ask a host for its facts."""
    before = time.time()
    answers = await host.batch(commands(host))
    return facts_of(answers, (before, time.time()))


async def boot_id(host: Host) -> str:
    """Ask a host since which boot it runs; nothing if it does not tell."""
    answer = await host.ask(*BOOT, sudo=False)
    return answer.text.strip() if answer.ok else ""


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() else None


# What many hosts have in common is read once and kept once: thousands of them are alike.
@lru_cache(maxsize=64)
def _system(lines: Sequence[str]) -> dict[str, Any]:
    found = {
        name: value.strip().strip("\"'")
        for name, _, value in (line.partition("=") for line in lines)
    }
    system: dict[str, Any] = {key: found[name] for name, key in _NAMES.items() if name in found}
    if "ID_LIKE" in found:
        system["like"] = found["ID_LIKE"].split()
    if family := _family(system):
        system["family"] = family
    return system


_NAMES = {"ID": "id", "VERSION_ID": "version", "PRETTY_NAME": "name"}
_FAMILIES = {
    "debian": ("debian", "ubuntu"),
    "rhel": ("rhel", "fedora", "centos"),
    "suse": ("suse", "opensuse", "sles"),
    "arch": ("arch",),
    "alpine": ("alpine",),
}


def _family(system: Mapping[str, Any]) -> str:
    """What a system is a kind of: its own name if it is like nothing that is known."""
    names = {system.get("id", ""), *system.get("like", ())}
    known = (family for family, members in _FAMILIES.items() if names.intersection(members))
    return next(known, system.get("id", ""))


def _numbers(lines: Sequence[str]) -> dict[str, int]:
    """MiB by name, of lines such as `MemTotal:  8192 kB`."""
    rows = (line.split() for line in lines)
    return {row[0].rstrip(":"): int(row[1]) // 1024 for row in rows if row[2:] == ["kB"]}


def _cpus(lines: Sequence[str]) -> int | None:
    """How many processors a process may use, which may be fewer than there are."""
    for line in lines:
        name, _, mask = line.partition(":")
        if name == "Cpus_allowed":
            return int(mask.replace(",", ""), 16).bit_count()
    return None


_DISK = re.compile(r"/sys/block/(?!dm-|md\d|sr\d|fd\d|nbd)([^/]+)/(?:\w+/)?(\w+)")
_SECTORS_PER_MIB = 2048


def _of_disks(lines: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, str, str]]:
    for path, texts in lines.items():
        if found := _DISK.fullmatch(path):
            yield found[1], found[2], texts[0].strip()


@lru_cache(maxsize=64)
def _disks(told: Sequence[tuple[str, str, str]]) -> list[dict[str, Any]]:
    found: dict[str, dict[str, str]] = {}
    for name, key, text in told:
        found.setdefault(name, {})[key] = text
    return [
        _disk(name, disk) for name, disk in sorted(found.items()) if _number(disk.get("size", ""))
    ]


def _disk(name: str, found: Mapping[str, str]) -> dict[str, Any]:
    disk: dict[str, Any] = {"name": name, "size_mib": int(found["size"]) // _SECTORS_PER_MIB}
    disk["type"] = (
        "nvme" if name.startswith("nvme") else _KINDS.get(found.get("rotational", ""), "")
    )
    disk["model"] = found.get("model", "")
    return {key: value for key, value in disk.items() if value or value == 0}


_KINDS = {"0": "ssd", "1": "hdd"}
_NO_DISK = frozenset(
    ("tmpfs", "devtmpfs", "ramfs", "squashfs", "overlay", "aufs", "efivarfs", "iso9660")
)


@lru_cache(maxsize=64)
def _filesystems(lines: Sequence[str]) -> list[dict[str, Any]]:
    found = []
    for line in lines:
        row = line.split(None, 6)
        if len(row) == 7 and row[2].isdecimal() and (row[1] not in _NO_DISK or row[6] == "/"):
            size, free = (int(blocks) // 1024 for blocks in (row[2], row[4]))
            found.append({"path": row[6], "type": row[1], "size_mib": size, "free_mib": free})
    return sorted(found, key=itemgetter("path"))


def _addresses(lines: Sequence[str]) -> list[str]:
    """Addresses in the order of the interfaces, those of IPv4 first."""
    rows = [line.split() for line in lines]
    if any(row[2:3] in (["inet"], ["inet6"]) for row in rows):
        told = [row[3].partition("/")[0] for row in rows if len(row) > 3]
    else:
        told = [word for row in rows for word in row]
    return sorted(told, key=lambda address: ":" in address)


def _others(lines: Sequence[str], interface: str) -> dict[str, str]:
    """The interfaces of addresses that are not at the interface of the default route."""
    rows = [row for row in map(str.split, lines) if row[2:3] in (["inet"], ["inet6"])]
    named = ((row[1].partition("@")[0], row[3].partition("/")[0]) for row in rows if len(row) > 3)
    return {address: name for name, address in named if name != interface}


_BIG_ENDIAN = frozenset(("s390x", "ppc64", "mips", "mips64"))


_NO_OTHERS: Mapping[str, str] = {}
"""Of nearly all hosts: one for all of them."""


def _network(lines: Mapping[str, Sequence[str]], addresses: Sequence[str]) -> Mapping[str, Any]:
    interface, _, gateway = first(lines, "route").partition(" ")
    order = first(lines, "arch") in _BIG_ENDIAN
    found = _default_route(interface, gateway, first(lines, "mtu"), order)
    if mac := first(lines, "mac"):
        found = {**found, "mac": mac}
    if "resolvers" not in lines.get("told", ()):
        return found
    file = _BEHIND if _BEHIND in lines else _RESOLVERS
    found = {**found, "others": _others(addresses, interface) or _NO_OTHERS}
    return {**found, "nameservers": _nameservers(tuple(lines.get(file, ()))), "resolv_conf": file}


@lru_cache(maxsize=64)
def _nameservers(lines: Sequence[str]) -> list[str]:
    """Who is asked for names; nobody where the file names nobody."""
    rows = (line.split() for line in lines)
    return [row[1] for row in rows if row[:1] == ["nameserver"] and len(row) > 1]


@lru_cache(maxsize=64)
def _default_route(interface: str, gateway: str, mtu: str, big_endian: bool) -> dict[str, Any]:
    if not interface:
        return {}
    found: dict[str, Any] = {"interface": interface}
    # The kernel writes the address as a number of its own byte order.
    if (number := int(gateway, 16)) != 0:
        data = number.to_bytes(4, "big" if big_endian else "little")
        found["gateway"] = str(ipaddress.IPv4Address(data))
    return found | ({"mtu": int(mtu)} if mtu else {})


_OWNER = re.compile(r'users:\(\("((?:[^"\\]|\\.)*)"')
_HEX_PORT = re.compile(r"/proc/net/(tcp|udp)6?:\s*\d+: [0-9A-F]+:([0-9A-F]{4}) ")


@lru_cache(maxsize=64)
def _ports(lines: Sequence[str], told: bool) -> dict[str, str] | None:
    """Who listens at each port; nobody's name where the host does not tell."""
    if not lines and not told:
        return None
    found = dict(filter(None, map(_port, lines)))
    return {port: found[port] for port in sorted(found, key=_by_number)}


def _port(line: str) -> tuple[str, str] | None:
    if hexadecimal := _HEX_PORT.match(line):
        return f"{hexadecimal[1]}/{int(hexadecimal[2], 16)}", ""
    row = line.split(None, 6)
    if len(row) < 6 or row[1] not in ("LISTEN", "UNCONN"):
        return None
    owner = _OWNER.search(line)
    return f"{row[0]}/{row[4].rpartition(':')[2]}", owner[1] if owner else ""


def _by_number(port: str) -> tuple[str, int]:
    protocol, _, number = port.partition("/")
    return protocol, int(number)


def _clock(
    told: str, around: tuple[float, float] | None, *, kept: bool
) -> Mapping[str, float | bool]:
    """How far its clock is ahead of ours, how far from the truth that may be, and who keeps it."""
    try:
        there = float(told)
    except ValueError:
        return {}
    if around is None:
        return {}
    before, after = around
    within = math.ceil((after - before) * 500) / 1000
    offset = round(there - (before + after) / 2, 3)
    return {"offset_s": offset, "within_s": within, "kept": kept}


_SELINUX = {"1": "enforcing", "0": "permissive"}
_PACKAGE_MANAGERS = {"apt-get": "apt", "dnf": "dnf", "yum": "yum", "zypper": "zypper"}
_OF_FAMILY = {"debian": ("apt-get",), "rhel": ("dnf", "yum"), "suse": ("zypper",)}


def _package_manager(family: str, tools: Sequence[str]) -> str:
    """That of its family: others may be installed beside it."""
    wanted = (*_OF_FAMILY.get(family, ()), *_PACKAGE_MANAGERS)
    return next((_PACKAGE_MANAGERS[tool] for tool in wanted if tool in tools), "")


_RUNTIMES = {"containerd": "containerd", "dockerd": "docker", "crio": "cri-o"}


@lru_cache(maxsize=64)
def _runtimes(tools: Sequence[str]) -> list[str]:
    return [name for tool, name in _RUNTIMES.items() if tool in tools]
