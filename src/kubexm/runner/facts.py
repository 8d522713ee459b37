"""What a host is: asked once, in one round trip."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kubexm.connector.base import C_LOCALE
from kubexm.runner.host import Command, Completed, Host

_OS = "/etc/os-release"
_MEMORY = "/proc/meminfo"
_KERNEL = "/proc/sys/kernel/osrelease"
_HOSTNAME = "/proc/sys/kernel/hostname"
_BOOT_ID = "/proc/sys/kernel/random/boot_id"
_MACHINE_ID = "/etc/machine-id"
_FILES = (_OS, _MEMORY, _KERNEL, _HOSTNAME, _BOOT_ID, _MACHINE_ID)


def commands(host: Host) -> tuple[Command, ...]:
    """The questions; `facts_of` reads the answers."""
    # One process for all files: each line comes with the name of its file.
    asked = (("grep", "-s", "-H", "", *_FILES), ("uname", "-m"), ("nproc",), ("hostname", "-I"))
    return tuple(host.command(*argv, sudo=False, env=C_LOCALE) for argv in asked)


def facts_of(answers: Sequence[Completed]) -> dict[str, Any]:
    """Facts by name, all of them among `FACTS`; what a host does not tell is left out."""
    read, arch, cpus, addresses = answers
    lines = _by_file(read)
    facts = {
        "os": _system(lines[_OS]),
        "kernel": _first(lines[_KERNEL]),
        "arch": arch.text,
        "cpus": int(cpus.text) if cpus.ok and cpus.text.isdecimal() else None,
        "memory_mib": _memory(lines[_MEMORY]),
        "hostname": _first(lines[_HOSTNAME]),
        "boot_id": _first(lines[_BOOT_ID]),
        "machine_id": _first(lines[_MACHINE_ID]),
        "addresses": addresses.text.split() if addresses.ok else None,
    }
    return {name: value for name, value in facts.items() if value}


async def gather(host: Host) -> dict[str, Any]:
    """Ask a host for its facts."""
    return facts_of(await host.batch(commands(host)))


async def boot_id(host: Host) -> str:
    """Ask a host since which boot it runs; nothing if it does not tell."""
    answer = await host.ask("cat", _BOOT_ID, sudo=False, env=C_LOCALE)
    return answer.text.strip() if answer.ok else ""


def _by_file(answer: Completed) -> dict[str, list[str]]:
    lines: dict[str, list[str]] = {path: [] for path in _FILES}
    for line in answer.text.splitlines():
        path, _, text = line.partition(":")
        if path in lines:
            lines[path].append(text)
    return lines


def _first(lines: list[str]) -> str:
    return lines[0] if lines else ""


def _system(lines: list[str]) -> dict[str, Any]:
    found = {
        name: value.strip().strip("\"'")
        for name, _, value in (line.partition("=") for line in lines)
    }
    system: dict[str, Any] = {key: found[name] for name, key in _NAMES.items() if name in found}
    if "ID_LIKE" in found:
        system["like"] = found["ID_LIKE"].split()
    return system


_NAMES = {"ID": "id", "VERSION_ID": "version", "PRETTY_NAME": "name"}


def _memory(lines: list[str]) -> int | None:
    for line in lines:
        if line.startswith("MemTotal:"):
            return int(line.split()[1]) // 1024
    return None
