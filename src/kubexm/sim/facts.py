"""What a simulated host tells of itself, in the words in which a real one would."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress

from kubexm.common.facts import FACTS_SCRIPT
from kubexm.common.trees import PUT_IN_PLACE
from kubexm.connector.base import Completed
from kubexm.sim.archives import put_in_place
from kubexm.sim.delivered import FAMILIES
from kubexm.sim.shell import Shell, said
from kubexm.sim.state import Service

_FILES = (
    "/etc/os-release",
    "/proc/meminfo",
    "/proc/sys/kernel/osrelease",
    "/proc/sys/kernel/hostname",
    "/proc/sys/kernel/random/boot_id",
    "/etc/machine-id",
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


def sh(shell: Shell, args: Sequence[str]) -> Completed:
    """Only the scripts of kubexm: the one that asks for facts, and the one for many files."""
    if args[:3] == ("-c", PUT_IN_PLACE, "sh"):
        return put_in_place(shell, args[3:])
    if not asks_for_facts(("sh", *args)):
        raise shell.unexpected()
    return said("".join(f"{line}\n" for line in _told(shell)))


def asks_for_facts(argv: Sequence[str]) -> bool:
    """Whether a command is the script that asks for facts."""
    return argv[0] == "sh" and len(argv) > 2 and argv[2].startswith(FACTS_SCRIPT)


def _told(shell: Shell) -> Iterator[str]:
    machine = shell.around.machine
    yield f"clock:{time.time():.9f}"
    yield f"arch:{machine.arch}"
    for path in _FILES:
        with suppress(FileNotFoundError):
            text = shell.files.read(path).decode()
            yield from [f"{path}:{line}" for line in text.splitlines()]
    yield f"/proc/self/status:Cpus_allowed:\t{(1 << machine.cpus) - 1:x}"
    yield f"/sys/block/vda/size:{machine.disk_mib * 2048}"
    yield "/sys/block/vda/queue/rotational:0"
    yield from ("init:systemd", "cgroup:2", "mtu:1500", "told:tools", "told:ports")
    yield from (f"tool:{tool}" for tool in _tools(shell))
    yield "route:eth0 0100000A"
    yield f"uuid:{shell.files.read(_PRODUCT).decode().strip()}"
    yield from ("@addresses", shell.around.address, "@filesystems", _COLUMNS)
    blocks = machine.disk_mib * 1024
    yield f"/dev/vda1 ext4 {blocks} {blocks // 10} {blocks - blocks // 10} 10% /"
    yield from ("@ports", *_ports(shell))


def _tools(shell: Shell) -> Iterator[str]:
    family = FAMILIES.get(shell.around.machine.os_id, "").split()
    yield next((_PACKAGE_TOOLS[name] for name in family if name in _PACKAGE_TOOLS), "apt-get")
    for package, tool in _RUNTIMES.items():
        if shell.version(package) is not None:
            yield tool


def _ports(shell: Shell) -> Iterator[str]:
    for key in sorted(shell.state.keys(("port:", "service:"))):
        service = shell.state.get(key)
        if not isinstance(service, Service):
            yield f"tcp LISTEN 0 128 *:{key.removeprefix('port:')} *:*"
        elif service.active:
            name = key.removeprefix("service:").removesuffix(".service")
            for port in service.ports:
                yield f'tcp LISTEN 0 128 *:{port} *:* users:(("{name}",pid=1,fd=3))'
