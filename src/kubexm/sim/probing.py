"""What a simulated host answers when it is asked whether it is fit for a cluster."""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from posixpath import dirname
from typing import Literal

from kubexm.common.probing import (
    CLUSTER_DIRECTORIES,
    CLUSTER_FILES,
    CLUSTER_UNITS,
    HARMLESS,
    KUBEADM_MARKER,
    LEDGER,
    RUNTIME_UNITS,
    TOOLS,
    WRITE_BYTES,
)
from kubexm.sim.delivered import unit_name
from kubexm.sim.shell import Shell

_WRITES = 100
_WRITE_SECONDS = 0.001
_PREFIXES = {4: 24, 6: 64}
_ROUTERS = {4: "10.0.0.1", 6: "fe80::1"}
_CLOCK = ("Timezone=Etc/UTC", "NTP=yes", "NTPSynchronized=yes")


def told(shell: Shell, words: Sequence[str]) -> Iterator[str]:
    """All of it, in the words in which a real host would."""
    state, name, etcd, endpoint, servers, *knocks = words
    member = _member(shell, f"{state}/{KUBEADM_MARKER}")
    ours = _is_ours(shell, state, name, member)
    yield f"uid:{shell.user_id(shell.user) or 0}"
    if member is not None:
        yield f"member:{member}"
    yield f"ours:{'ledger' if ours else ''}"
    yield from (f"tool:{tool}" for tool in TOOLS)
    yield from ("told:tools", "link:eth0", "link:lo")
    yield from (f"file:{path}" for path in _left(shell, etcd))
    yield from ("@units", *(_state(shell, unit) for unit in (*CLUSTER_UNITS, *RUNTIME_UNITS)))
    yield from ("@routes", *_routes(shell, 4), "@routes6", *_routes(shell, 6), "@", "told:routes")
    yield from ("@ufw", "Status: active" if _runs(shell, "ufw") else "Status: inactive")
    yield from ("@firewalld", "running" if _runs(shell, "firewalld") else "")
    yield from ("@clock", *_CLOCK, "@")
    yield from (_knocked(shell, *knock.split()) for knock in knocks)
    if endpoint:
        yield _knocked(shell, "-", *endpoint.split())
    yield from (f"answers:{server}" for server in servers.split())
    yield "told:knocks"
    if etcd and not ours and member is None:
        yield from (f"place:{_nearest(shell, etcd)}", "@writes")
        yield from [f"{WRITE_BYTES} bytes copied, {_WRITE_SECONDS} s, 2.3 MB/s"] * _WRITES


def _member(shell: Shell, marker: str) -> str | None:
    """The cluster that the host is a member of, as it remembers it; empty if not by its name."""
    if shell.files.lookup(marker) is None:
        return None
    return str(json.loads(shell.files.read(marker)).get("cluster", ""))


def _is_ours(shell: Shell, state: str, name: str, member: str | None) -> bool:
    """Whether the host was worked on for a cluster of this name."""
    if member is not None and (member or not name):
        return not name or member == name
    ledger = f"{state}/{LEDGER}"
    return any(_name(shell, f"{ledger}/{file}") == name for file in _children(shell, ledger))


def _name(shell: Shell, path: str) -> str:
    with suppress(OSError, ValueError):
        return str(json.loads(shell.files.read(path)).get("name", ""))
    return ""


def _left(shell: Shell, etcd: str) -> Iterator[str]:
    """What a cluster has left."""
    for directory in filter(None, (*CLUSTER_DIRECTORIES, etcd)):
        if _children(shell, directory):
            yield directory
    for directory, end in CLUSTER_FILES:
        for name in _children(shell, directory):
            if name.endswith(end) and HARMLESS not in name:
                yield f"{directory}/{name}"


def _children(shell: Shell, directory: str) -> list[str]:
    with suppress(OSError):
        return shell.files.children(directory)
    return []


def _state(shell: Shell, unit: str) -> str:
    return "active" if _runs(shell, unit) else "inactive"


def _runs(shell: Shell, unit: str) -> bool:
    found = shell.service(unit_name(unit))
    return found is not None and found.active


def _routes(shell: Shell, family: Literal[4, 6]) -> Iterator[str]:
    """The networks that its addresses of a family are in, and the way to all others."""
    found = [ip for ip in map(ipaddress.ip_address, shell.around.addresses) if ip.version == family]
    if found:
        yield f"default via {_ROUTERS[family]} dev eth0"
    for address in found:
        network = ipaddress.ip_network(f"{address}/{_PREFIXES[family]}", strict=False)
        yield f"{network} dev eth0 proto kernel scope link src {address}"


def _knocked(shell: Shell, host: str, address: str, port: str) -> str:
    if shell.around.listens(address, int(port)):
        word = "open"
    else:
        word = "silent" if shell.around.shell_of(host) is None else "closed"
    return f"knock:{host} {address} {port} {word}"


def _nearest(shell: Shell, path: str) -> str:
    """The path, or the nearest directory above that is there."""
    while path != "/" and shell.files.lookup(path) is None:
        path = dirname(path)
    return path
