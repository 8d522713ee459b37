"""What a simulated host tells of itself, in the words in which a real one would."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from hashlib import sha256

from kubexm.common.facts import FACTS_SCRIPT
from kubexm.common.probing import PROBING_SCRIPT
from kubexm.common.trees import PUT_IN_PLACE
from kubexm.connector.base import Completed
from kubexm.sim import links, probing, standins
from kubexm.sim.archives import put_in_place
from kubexm.sim.delivered import FAMILIES
from kubexm.sim.shell import Shell, said

_FILES = (
    "/etc/os-release",
    "/proc/meminfo",
    "/proc/sys/kernel/osrelease",
    "/proc/sys/kernel/hostname",
    "/proc/sys/kernel/random/boot_id",
    "/etc/machine-id",
    "/etc/resolv.conf",
)
_PACKAGE_TOOLS = {"rhel": "dnf", "suse": "zypper"}
_RUNTIMES = {
    "containerd": "containerd",
    "containerd.io": "containerd",
    "docker.io": "dockerd",
    "docker-ce": "dockerd",
    "cri-o": "crio",
}
_PRODUCT = "/sys/class/dmi/id/product_uuid"
_COLUMNS = "Filesystem Type 1024-blocks Used Available Capacity Mounted on"


_TIME_KEEPERS = ("chrony.service", "chronyd.service", "systemd-timesyncd.service")


def sh(shell: Shell, args: Sequence[str]) -> Completed:
    """Only the scripts of kubexm: those that ask what the host is, and the one for many files."""
    if args[:3] == ("-c", PUT_IN_PLACE, "sh"):
        return put_in_place(shell, args[3:])
    if not asks_for_facts(("sh", *args)):
        raise shell.unexpected()
    is_probed = args[1].startswith(PROBING_SCRIPT)
    lines = probing.told(shell, args[3:]) if is_probed else _told(shell)
    return said("".join(f"{line}\n" for line in lines))


def asks_for_facts(argv: Sequence[str]) -> bool:
    """Whether a command is a script that asks what the host is."""
    scripts = (FACTS_SCRIPT, PROBING_SCRIPT)
    return argv[0] == "sh" and len(argv) > 2 and argv[2].startswith(scripts)


def _told(shell: Shell) -> Iterator[str]:
    machine = shell.around.machine
    yield f"clock:{time.time():.9f}"
    if any(_runs(shell, unit) for unit in _TIME_KEEPERS):
        yield "kept:/run/chrony/chronyd.pid"
    yield f"arch:{machine.arch}"
    for path in _FILES:
        with suppress(FileNotFoundError):
            text = shell.files.read(path).decode()
            yield from [f"{path}:{line}" for line in text.splitlines()]
    yield f"/proc/self/status:Cpus_allowed:\t{(1 << machine.cpus) - 1:x}"
    yield f"/sys/block/vda/size:{machine.disk_mib * 2048}"
    yield "/sys/block/vda/queue/rotational:0"
    yield from ("init:systemd", "cgroup:2", "mtu:1500")
    yield from ("told:tools", "told:ports")
    yield from ("told:resolvers", f"mac:{_mac(shell.around.addresses[0])}")
    yield from (f"tool:{tool}" for tool in _tools(shell))
    yield f"route:{links.DEVICE} 0100000A"
    yield f"uuid:{shell.files.read(_PRODUCT).decode().strip()}"
    addresses = " ".join((*shell.around.addresses, *shell.around.held))
    yield from ("@addresses", addresses, "@filesystems", _COLUMNS)
    blocks = machine.disk_mib * 1024
    yield f"/dev/vda1 ext4 {blocks} {blocks // 10} {blocks - blocks // 10} 10% /"
    yield from ("@ports", *links.listening(shell))


def _mac(address: str) -> str:
    """A hardware address made of another one, so that no two hosts have the same."""
    # Hashed: a name has no bytes of an address, and those of IPv6 may differ in front only.
    digest = sha256(address.encode()).digest()
    return ":".join(f"{part:02x}" for part in b"\x02" + digest[:5])


def _tools(shell: Shell) -> Iterator[str]:
    family = FAMILIES.get(shell.around.machine.os_id, "").split()
    yield next((_PACKAGE_TOOLS[name] for name in family if name in _PACKAGE_TOOLS), "apt-get")
    packaged = {tool for name, tool in _RUNTIMES.items() if shell.version(name) is not None}
    for tool in sorted({*_RUNTIMES.values()}):
        if tool in packaged or standins.place(shell, tool) is not None:
            yield tool


def _runs(shell: Shell, unit: str) -> bool:
    service = shell.service(unit)
    return service is not None and service.active
