"""Simulated programs about the kernel: its settings, its modules, its swap."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from kubexm.connector.base import Completed
from kubexm.sim.kernelsettings import BROUGHT, SETTINGS
from kubexm.sim.settings import Machine
from kubexm.sim.shell import OK, Program, Shell, failed

_HEAD = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"
SWAP = "/swapfile"


def place_of(key: str) -> str:
    """Where the kernel shows a setting."""
    return f"/proc/sys/{key if '/' in key else key.replace('.', '/')}"


def files(machine: Machine) -> dict[str, str]:
    """What the kernel of a machine shows as it was delivered."""
    shown = {place_of(key): f"{value}\n" for key, value in SETTINGS.items()}
    return {**shown, **_memory(machine, on=machine.swap_mib > 0)}


def _memory(machine: Machine, *, on: bool) -> dict[str, str]:
    swap = machine.swap_mib * 1024 if on else 0
    line = f"{SWAP}                               file\t\t{swap}\t\t0\t\t-2\n" if on else ""
    memory = f"MemTotal:{machine.memory_mib * 1024:>15} kB\nSwapTotal:{swap:>14} kB\n"
    return {"/proc/swaps": _HEAD + line, "/proc/meminfo": memory}


def sysctl(shell: Shell, args: Sequence[str]) -> Completed:
    words = [arg for arg in args if arg not in ("-q", "-w")]
    if len(words) != 1 or "=" not in words[0] or "-w" not in args:
        raise shell.unexpected()
    key, _, value = words[0].partition("=")
    place = place_of(key)
    if (found := shell.files.lookup(place)) is None:
        return failed(f"sysctl: cannot stat {place}: No such file or directory")
    numbers = re.compile(r"\s*-?\d+(\s+-?\d+)*\s*")
    if numbers.fullmatch(found.text) and not numbers.fullmatch(value):
        return failed(f'sysctl: setting key "{key}": Invalid argument')
    _set(shell, key, value)
    return OK


def modprobe(shell: Shell, args: Sequence[str]) -> Completed:
    match [arg for arg in args if arg != "--"]:
        case ["-r", name]:
            return _unload(shell, name.replace("-", "_"))
        case [name] if not name.startswith("-"):
            return _load(shell, name.replace("-", "_"))
    raise shell.unexpected()


def _load(shell: Shell, name: str) -> Completed:
    if shell.files.lookup(f"/sys/module/{name}") is not None:
        return OK
    shell.files.make_directory(f"/sys/module/{name}")
    for key, value in BROUGHT.get(name, {}).items():
        place = place_of(key)
        shell.files.make_directory(place.rpartition("/")[0], parents=True)
        shell.files.write(place, f"{value}\n".encode())
    return OK


def _unload(shell: Shell, name: str) -> Completed:
    if shell.files.lookup(f"/sys/module/{name}") is None:
        return failed(f"modprobe: FATAL: Module {name} is not in kernel.")
    shell.files.remove(f"/sys/module/{name}")
    for key in BROUGHT.get(name, {}):
        shell.files.remove(place_of(key))
    return OK


def swapoff(shell: Shell, args: Sequence[str]) -> Completed:
    if list(args) != ["-a"]:
        raise shell.unexpected()
    return _use_swap(shell, on=False)


def swapon(shell: Shell, args: Sequence[str]) -> Completed:
    paths = [arg for arg in args if arg != "--"]
    if paths != [SWAP] or not shell.around.machine.swap_mib:
        return failed(f"swapon: cannot open {' '.join(paths)}: No such file or directory", 255)
    return _use_swap(shell, on=True)


def _use_swap(shell: Shell, *, on: bool) -> Completed:
    for path, text in _memory(shell.around.machine, on=on).items():
        shell.files.write(path, text.encode())
    return OK


def boot(shell: Shell) -> None:
    """Start the kernel anew: as it was delivered, and as the files say that it reads."""
    for name in shell.files.children("/sys/module"):
        _unload(shell, name)
    for key, value in SETTINGS.items():
        _set(shell, key, value)
    for line in _lines(shell, "/etc/modules-load.d"):
        _load(shell, line.replace("-", "_"))
    for line in _lines(shell, "/etc/sysctl.d"):
        key, _, value = line.partition("=")
        if shell.files.lookup(place_of(key.strip())) is not None:
            _set(shell, key.strip(), value)
    if shell.around.machine.swap_mib:
        table = shell.files.read("/etc/fstab").decode().splitlines()
        _use_swap(shell, on=any(line.startswith(SWAP) for line in table))


def _set(shell: Shell, key: str, value: str) -> None:
    text = "\t".join(value.split()) + "\n"
    if shell.files.read(place_of(key)) != text.encode():
        shell.files.write(place_of(key), text.encode())


def _lines(shell: Shell, directory: str) -> list[str]:
    """The lines of all files in a directory that are no comments."""
    names = [name for name in shell.files.children(directory) if name.endswith(".conf")]
    texts = (shell.files.read(f"{directory}/{name}").decode() for name in names)
    lines = (line.strip() for text in texts for line in text.splitlines())
    return [line for line in lines if line and line[0] not in "#;"]


PROGRAMS: Mapping[str, Program] = {
    "modprobe": modprobe,
    "swapoff": swapoff,
    "swapon": swapon,
    "sysctl": sysctl,
}
