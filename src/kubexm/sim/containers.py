"""Simulated containerd: how it was started, which images it has, and what it can run.

Its images are files below its root, so that whoever removes that has removed them.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from posixpath import dirname
from typing import Any
from urllib.parse import quote, unquote

import msgspec

from kubexm.common import layout
from kubexm.sim import registries, standins
from kubexm.sim.daemons import Daemon, Ended, Start
from kubexm.sim.shell import Shell
from kubexm.sim.state import Socket

KUBERNETES = "k8s.io"
_CELL = "containerd:started"
_ROOT = "/var/lib/containerd"
_STORE = "io.containerd.metadata.v1.bolt"
_OLD = "io.containerd.grpc.v1.cri"
_IMAGES, _RUNTIME = "io.containerd.cri.v1.images", "io.containerd.cri.v1.runtime"
_NEEDED_TO_RUN = ("containerd-shim-runc-v2", "runc")


class Started(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a containerd was started with."""

    root: str = _ROOT
    systemd_cgroup: bool = False
    sandbox: str = ""
    hosts_dir: str = ""
    logins: frozenset[str] = frozenset()
    """The servers that it knows a login for."""
    version: str = ""


class Containerd(Daemon):
    """containerd itself: it takes only a configuration of a form that it knows."""

    def starts(self, start: Start) -> Sequence[Socket]:
        config = _config(start)
        try:
            started = _started(config, start.version)
            grpc = _table(config, "grpc")
        except _NoTable as error:
            raise Ended(f"containerd: failed to load TOML: {error}") from error
        start.shell.files.make_directory(f"{started.root}/{_STORE}", 0o711, parents=True)
        start.shell.run(("chmod", "0700", started.root))
        for place in layout.CONTAINERD_STATE:
            start.shell.files.make_directory(place, 0o711, parents=True)
        socket = grpc.get("address", layout.CONTAINERD_SOCKET)
        start.shell.files.make_directory(dirname(socket), 0o711, parents=True)
        start.shell.files.write(socket, b"", mode=0o660)
        if start.shell.files.lookup(layout.CNI_CONFIG) is None:
            start.shell.files.make_directory(layout.CNI_CONFIG, 0o700, parents=True)
        start.shell.state.set(_CELL, msgspec.json.encode(started).decode())
        return ()

    def stops(self, shell: Shell, unit: str) -> None:
        shell.state.set(_CELL, None)
        if shell.files.lookup(layout.CONTAINERD_SOCKET) is not None:
            shell.files.remove(layout.CONTAINERD_SOCKET)


def started(shell: Shell) -> Started | None:
    """What containerd was started with; None if it does not run."""
    found = shell.state.get(_CELL) if is_running(shell) else None
    return msgspec.json.decode(found, type=Started) if isinstance(found, str) else None


def is_running(shell: Shell) -> bool:
    """Whether containerd answers; it ends when the directory goes that it watches for networks."""
    watched = shell.files.lookup(layout.CNI_CONFIG)
    return watched is not None and shell.state.get(_CELL) is not None


def systemd_cgroup(shell: Shell) -> bool:
    """Whether it lets systemd manage control groups."""
    found = started(shell)
    return found is not None and found.systemd_cgroup


def sandbox_image(shell: Shell) -> str:
    """The image that holds the network of a pod."""
    found = started(shell)
    return "" if found is None else found.sandbox


def wanted_logins(shell: Shell) -> frozenset[str]:
    """The servers that want a login: those that the host has one for, read by containerd or not."""
    found, file = started(shell), shell.files.lookup(layout.CONTAINERD_CONFIG)
    read = frozenset[str]() if found is None else found.logins
    if file is None:
        return read
    try:
        written = tomllib.loads(shell.files.read(layout.CONTAINERD_CONFIG).decode())
        return read | _logins(_images(written))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, _NoTable):
        return read


def images(shell: Shell, namespace: str = KUBERNETES) -> set[str]:
    """The names of all images of a namespace."""
    place = _place(shell, namespace)
    found = [] if shell.files.lookup(place) is None else shell.files.children(place)
    return set(map(unquote, found))


def has(shell: Shell, image: str, namespace: str = KUBERNETES) -> bool:
    """Whether an image is there, by its full name."""
    return shell.files.lookup(_place(shell, namespace, image)) is not None


def keep(shell: Shell, image: str, namespace: str = KUBERNETES) -> None:
    """Have an image."""
    place = _place(shell, namespace, image)
    shell.files.make_directory(dirname(place), 0o711, parents=True)
    shell.files.write(place, f"{standins.machine_arch(shell)}\n".encode(), mode=0o600)


def drop(shell: Shell, image: str, namespace: str = KUBERNETES) -> bool:
    """Have an image no more; False if it was not there."""
    if not has(shell, image, namespace):
        return False
    shell.files.remove(_place(shell, namespace, image))
    return True


def can_pull(shell: Shell, image: str) -> str:
    """Why Kubernetes can't have an image pulled on a host; nothing if it can."""
    found = started(shell)
    if found is None:
        return _no_daemon()
    return registries.obstacle(shell, image, found.hosts_dir, wanted_logins(shell) - found.logins)


def pull(shell: Shell, image: str, namespace: str = KUBERNETES) -> str:
    """Have an image pulled, as Kubernetes does; why not, or nothing."""
    why = can_pull(shell, image)
    if not why:
        keep(shell, image, namespace)
    return why


def can_run(shell: Shell) -> str:
    """Why no container starts on a host; nothing if they do."""
    if not is_running(shell):
        return _no_daemon()
    for program in _NEEDED_TO_RUN:
        if standins.place(shell, program) is None:
            return f'exec: "{program}": executable file not found in $PATH'
        if (refusal := standins.refusal(shell, program)) is not None:
            return refusal.error_text
    return ""


def _no_daemon() -> str:
    return (
        f'failed to dial "{layout.CONTAINERD_SOCKET}": connection error: desc = "transport: error'
        f" while dialing: dial unix {layout.CONTAINERD_SOCKET}: connect: no such file or directory"
        '"'
    )


def _place(shell: Shell, namespace: str, image: str = "") -> str:
    found = started(shell)
    root = _ROOT if found is None else found.root
    place = f"{root}/{_STORE}/{namespace}"
    return f"{place}/{quote(image, safe=':')}" if image else place


def _config(start: Start) -> dict[str, Any]:
    given = start.option("--config", "-c")
    # Without a word about it, it does without one.
    if not given and start.shell.files.lookup(layout.CONTAINERD_CONFIG) is None:
        return {"version": 2}
    path = given or layout.CONTAINERD_CONFIG
    try:
        config = tomllib.loads(start.read(path).decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Ended(f"containerd: failed to load TOML: {path}: {error}") from error
    known = (2,) if start.version.removeprefix("v").startswith("1.") else (2, 3)
    if (version := config.get("version", 1)) not in known:
        latest = known[-1]
        raise Ended(f"containerd: expected containerd config version `{latest}`, got `{version}`")
    return config


def _started(config: dict[str, Any], version: str) -> Started:
    images = _images(config)
    if config["version"] == 2:
        runtime, sandbox = images, images.get("sandbox_image", "")
    else:
        runtime = _table(config, "plugins", _RUNTIME)
        sandbox = _table(images, "pinned_images").get("sandbox", "")
    options = _table(runtime, "containerd", "runtimes", "runc", "options")
    return Started(
        root=config.get("root", _ROOT),
        systemd_cgroup=options.get("SystemdCgroup", False),
        sandbox=sandbox or "registry.k8s.io/pause:3.10",
        hosts_dir=_table(images, "registry").get("config_path", ""),
        logins=_logins(images),
        version=version,
    )


def _images(config: dict[str, Any]) -> dict[str, Any]:
    """What a configuration says of images."""
    plugin = _OLD if config.get("version") == 2 else _IMAGES
    return _table(config, "plugins", plugin)


def _logins(images: dict[str, Any]) -> frozenset[str]:
    """The servers with a name and a password."""
    known = _table(images, "registry", "configs")
    given = {host: _table(known, host, "auth") for host in known}
    return frozenset(host for host in given if {"username", "password"} <= given[host].keys())


class _NoTable(ValueError):
    """What containerd says of a value where it wants a table."""

    def __init__(self, name: str, value: Any) -> None:
        kind = _KINDS.get(type(value), "array")
        super().__init__(f"toml: cannot decode TOML {kind} `{name}` into a Go value of type map")


def _table(config: dict[str, Any], *names: str) -> dict[str, Any]:
    """A table of a configuration, or of a part of it; an empty one if it is not there."""
    found = config
    for name in names:
        found = found.get(name, {})
        if not isinstance(found, dict):
            raise _NoTable(name, found)
    return found


_KINDS = {str: "string", bool: "boolean", int: "integer", float: "float"}
DAEMON = Containerd()
