"""Static pods: what the kubelet of a host runs by files, and what keeps it from that."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import md5, sha256
from posixpath import dirname

import msgspec

from kubexm.common import layout
from kubexm.sim import containers, kubelet
from kubexm.sim.kubedocs import Object, Unreadable, document, entries, part, section
from kubexm.sim.shell import Shell

_KINDS = {"File": "file", "Directory": "directory"}
"""What has to be at a path of the host, by the type of the volume."""
_READ = "pod:read:"
_HASH = "kubernetes.io/config.hash"
_WRITTEN = frozenset(("audit-log-path", "cert-dir", "data-dir", "log-file", "wal-dir"))
"""Flags whose paths the program makes by itself."""


class StaticPod(msgspec.Struct, frozen=True):
    """A pod of one program, as its file describes it."""

    name: str
    images: tuple[str, ...]
    command: tuple[str, ...]
    """Of its first container: program and arguments."""
    environment: Mapping[str, str]
    volumes: Mapping[str, str]
    """Types of volumes by the path on the host; empty where nothing has to be there."""
    mounts: Mapping[str, str]
    """Paths of the host by those inside."""
    annotations: Mapping[str, str]
    """Those of its file, and of which file that is."""

    def flag(self, name: str) -> str:
        """The value of a flag; nothing if it is not given."""
        sign = f"--{name}="
        found = [word.removeprefix(sign) for word in self.command if word.startswith(sign)]
        return found[-1] if found else ""

    def place(self, path: str) -> str:
        """Where a path of the program lies on the host; nothing if nowhere."""
        above = path
        while above not in self.mounts and above not in ("/", ""):
            above = dirname(above)
        return self.mounts[above] + path[len(above) :] if above in self.mounts else ""


def find(shell: Shell, name: str) -> StaticPod | None:
    """The pod in the file of this name."""
    directory = kubelet.configuration(shell).get("staticPodPath")
    return in_directory(shell, directory, name) if directory else None


def in_directory(shell: Shell, directory: str, name: str) -> StaticPod | None:
    """The pod in a file of a directory, whether or not a kubelet knows of that."""
    return _in_file(shell, f"{directory}/{name}.yaml")


def every(shell: Shell) -> tuple[StaticPod, ...]:
    """All pods that there are files of."""
    return shell.state.follows("kubelet:pods", lambda: tuple(_every(shell)))


def _every(shell: Shell) -> Iterator[StaticPod]:
    directory = kubelet.configuration(shell).get("staticPodPath")
    for name in shell.files.children(directory) if directory else ():
        if (found := _in_file(shell, f"{directory}/{name}")) is not None:
            yield found


def is_running(shell: Shell, name: str) -> bool:
    """Whether the pod in the file of this name runs."""
    pod = find(shell, name)
    return pod is not None and not obstacle(shell, pod)


def obstacle(shell: Shell, pod: StaticPod) -> str:
    """Why a pod does not run; nothing if it does."""
    if why := kubelet.obstacle(shell):
        return f"the kubelet does not run: {why}"
    why = shell.state.follows(f"pod:{pod.name}", lambda: next(_obstacles(shell, pod), ""))
    return why or image_obstacle(shell, *pod.images)


def begin(shell: Shell, name: str) -> None:
    """Have a program read its files, as it does when its pod is another one than before."""
    pod = in_directory(shell, layout.MANIFESTS, name)
    if pod is None:
        return  # its file was just written, and nobody can read it
    read = {path: pod.place(path) for _, path in _read_paths(pod)}
    known = {
        path: sha256(shell.files.read(place)).hexdigest()
        for path, place in read.items()
        if place and shell.files.lookup(shell.files.resolve(place)) is not None
    }
    shell.state.set(_READ + name, json.dumps(known, sort_keys=True))


def is_up_to_date(shell: Shell, name: str, path: str) -> bool:
    """Whether the program of a pod has read this file of the host as it is now."""
    known = json.loads(str(shell.state.get(_READ + name) or "{}"))
    return bool(known.get(path) == sha256(shell.files.read(path)).hexdigest())


def end(shell: Shell) -> None:
    """All of them have ended for good."""
    for key in [*shell.state.keys(_READ)]:
        shell.state.set(key, None)


def leave_traces(shell: Shell, pod: StaticPod) -> None:
    """Make what a pod that runs makes on its host: places for its volumes, and its log."""
    for path, kind in pod.volumes.items():
        if kind == "DirectoryOrCreate":
            shell.files.make_directory(path, parents=True)
    log = pod.place(pod.flag("audit-log-path"))
    if log and shell.files.lookup(log) is None:
        shell.files.write(log, b"", mode=0o600)


def announce(shell: Shell) -> None:
    """Have whoever looks for a virtual address ask this host too."""
    for pod in every(shell):
        for address in virtual_addresses(pod):
            shell.around.candidate(address)


def virtual_addresses(pod: StaticPod) -> list[str]:
    """What kube-vip may come to hold; nothing for other pods."""
    found = [pod.environment.get(name, "") for name in ("address", "vip_address")]
    return [one.partition("/")[0] for one in found if one and "kube-vip" in pod.name]


def image_obstacle(shell: Shell, *images: str) -> str:
    """Why a host can't run containers of images; nothing if it has them or can pull them."""
    missing = shell.state.follows(f"images:{' '.join(images)}", lambda: _missing(shell, images))
    if isinstance(missing, str):
        return missing
    # Whether they can be pulled is not up to this host alone.
    reasons = ((image, containers.can_pull(shell, image)) for image in missing)
    return next((f'Failed to pull image "{image}": {why}' for image, why in reasons if why), "")


def _missing(shell: Shell, images: Sequence[str]) -> tuple[str, ...] | str:
    """The images that a host would have to pull first, or why it runs no containers at all."""
    if why := containers.can_run(shell):
        return f"Failed to create pod sandbox: {why}"
    wanted = (containers.sandbox_image(shell), *images)
    return tuple(image for image in wanted if not containers.has(shell, image))


def _obstacles(shell: Shell, pod: StaticPod) -> Iterator[str]:
    for path, kind in pod.volumes.items():
        wanted, found = _KINDS.get(kind, ""), shell.files.lookup(shell.files.resolve(path))
        if wanted and (found is None or found.kind != wanted):
            yield f"hostPath type check failed: {path} is not a {wanted}"
    for flag, path in _read_paths(pod):
        place = pod.place(path)
        if not place or shell.files.lookup(shell.files.resolve(place)) is None:
            yield f"{pod.command[0]}: --{flag}: open {path}: no such file or directory"


def _read_paths(pod: StaticPod) -> Iterator[tuple[str, str]]:
    """The files that a program reads by its flags."""
    for word in pod.command[1:]:
        flag, sign, value = word.removeprefix("--").partition("=")
        if sign and value.startswith("/") and flag not in _WRITTEN:
            yield flag, value


def _in_file(shell: Shell, path: str) -> StaticPod | None:
    if shell.files.lookup(shell.files.resolve(path)) is None:
        return None
    return _parsed(shell.files.read(path))


@lru_cache(maxsize=1024)
def _parsed(data: bytes) -> StaticPod | None:
    """A pod that can't be read is no pod: the kubelet only says so in its log."""
    try:
        found = document(data)
    except Unreadable:
        return None
    if (found.get("apiVersion"), found.get("kind")) != ("v1", "Pod"):
        return None
    if not all(one.get("image") for one in _containers(found)):
        return None
    return _pod(found, md5(data, usedforsecurity=False).hexdigest())


def _containers(found: Object) -> tuple[Object, ...]:
    return (*entries(found, "spec", "initContainers"), *entries(found, "spec", "containers"))


def _pod(found: Object, file: str) -> StaticPod:
    spec = found["spec"]
    first = entries(spec, "containers")[0]
    volumes = {
        one["name"]: one["hostPath"] for one in entries(spec, "volumes") if "hostPath" in one
    }
    return StaticPod(
        name=found["metadata"]["name"],
        images=tuple(one["image"] for one in _containers(found)),
        command=(*(first.get("command") or ()), *(first.get("args") or ())),
        environment={one["name"]: str(one.get("value", "")) for one in entries(first, "env")},
        volumes={one["path"]: part(one, "type") or "" for one in volumes.values()},
        mounts={
            mount["mountPath"]: volumes[mount["name"]]["path"]
            for mount in entries(first, "volumeMounts")
            if mount["name"] in volumes
        },
        annotations={**section(found, "metadata", "annotations"), _HASH: file},
    )
