"""Stand-ins: small texts in the place of programs, which say which program they stand for.

What kubexm and packages bring answers only if its file is there, can be executed, and is made
for the machine, as on a real host.
"""

from __future__ import annotations

import re
from functools import lru_cache
from posixpath import basename

import msgspec

from kubexm.connector.base import Completed
from kubexm.sim.shell import Shell, failed

PATH = (*("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"),)
"""Where a command without a directory is looked for."""
NEEDED = frozenset(
    (
        *("chronyc", "chronyd", "conntrack", "containerd", "crictl", "ctr", "ebtables", "etcd"),
        *("etcdctl", "etcdutl", "ethtool", "firewall-cmd", "haproxy", "helm", "ip6tables"),
        *("ip6tables-restore", "ufw"),
        *("ip6tables-save", "ipset", "iptables", "iptables-restore", "iptables-save", "ipvsadm"),
        *("keepalived", "kubeadm", "kubectl", "kubelet", "nft", "nginx", "runc", "socat"),
    )
)
"""Programs that a host has only if somebody brought their files."""
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_TEXT = re.compile(r"kubexm stand-in: (\S+) (\S+) (\S+)\n")
_ANY = "all"
_NOT_FOUND, _NOT_EXECUTABLE = 127, 126


class StandIn(msgspec.Struct, frozen=True):
    """A program's file."""

    program: str
    version: str = ""
    """Nothing if the file is no stand-in."""
    arch: str = _ANY
    path: str = ""


def text(program: str, version: str, arch: str = _ANY) -> str:
    """The content of a file that stands for a program."""
    return f"kubexm stand-in: {program} {version} {arch}\n"


def machine_arch(shell: Shell) -> str:
    """What the projects call the architecture of a host."""
    arch = shell.around.machine.arch
    return _ARCHITECTURES.get(arch, arch)


def found(shell: Shell, program: str) -> StandIn | None:
    """The file of a program, by its name or its path; None if it can't be executed."""
    path = place(shell, program)
    return None if path is None else _read(shell, path)


def own_version(shell: Shell) -> str:
    """The version of the program that a command has called."""
    argv = shell.command.argv
    file = found(shell, argv[2] if argv[0] == "timeout" else argv[0])
    return "" if file is None else file.version


def place(shell: Shell, program: str) -> str | None:
    """Where a program lies that can be executed."""
    places = (program,) if "/" in program else tuple(f"{above}/{program}" for above in PATH)
    for path in places:
        node = shell.files.lookup(shell.files.resolve(path))
        if node is not None and node.kind == "file" and node.mode & 0o111:
            return path
    return None


def refusal(shell: Shell, program: str) -> Completed | None:
    """What comes of a command whose program is not there, or not for this machine."""
    standin = found(shell, program)
    if standin is None:
        node = shell.files.lookup(shell.files.resolve(program)) if "/" in program else None
        if node is not None:
            return failed(f"bash: {program}: Permission denied", _NOT_EXECUTABLE)
        why = "No such file or directory" if "/" in program else "command not found"
        return failed(f"bash: {program}: {why}", _NOT_FOUND)
    if standin.arch not in (_ANY, machine_arch(shell)):
        why = "cannot execute binary file: Exec format error"
        return failed(f"bash: {standin.path}: {why}", _NOT_EXECUTABLE)
    return None


def _read(shell: Shell, path: str) -> StandIn:
    known = _parsed(shell.files.read(path)[:256])
    return StandIn(basename(path), path=path) if known is None else StandIn(*known, path)


@lru_cache(maxsize=512)
def _parsed(beginning: bytes) -> tuple[str, str, str] | None:
    match = _TEXT.match(beginning.decode(errors="replace"))
    return (match[1], match[2], match[3]) if match else None
