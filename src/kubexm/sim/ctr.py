"""Simulated ctr: images of a containerd, and containers that units run by it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

import msgspec

from kubexm.connector.base import Completed
from kubexm.sim import containers, registries, standins
from kubexm.sim.containerized import INSIDE, Inside
from kubexm.sim.daemons import Daemon, Ended, Start
from kubexm.sim.shell import OK, Program, Shell, failed, said
from kubexm.sim.state import Socket

_IMAGE = re.compile(r"kubexm stand-in image: (\S+) (\S+)\n")
_CONTAINER = "container:"
_RUN_FLAGS = frozenset(
    ("--rm", "--net-host", "-t", "--tty", "-d", "--detach", "--null-io", "--read-only")
) | {"--privileged", "--no-pivot"}
_RUN_VALUES = frozenset(
    (
        *("--mount", "--env", "--env-file", "--label", "--annotation", "--user", "-u", "--cwd"),
        *("--runtime", "--memory-limit", "--cpus", "--pid-file", "--cgroup", "--snapshotter"),
        *("--platform", "--cap-add", "--cap-drop", "--hostname", "--log-uri", "--with-ns"),
    )
)


def image_text(name: str, arch: str) -> str:
    """The content of a file that stands for the archive of an image."""
    return f"kubexm stand-in image: {name} {arch}\n"


def ctr(shell: Shell, args: Sequence[str]) -> Completed:
    namespace, rest = _namespace(args)
    match rest:
        case ["--version" | "-v" | "version"]:
            return said(f"ctr github.com/containerd/containerd/v2 {standins.own_version(shell)}\n")
        case [group, verb, *words] if (group, verb) in _VERBS:
            if not containers.is_running(shell):
                return failed(f"ctr: {containers.can_run(shell)}")
            return _VERBS[group, verb](shell, namespace, words)
        case ["run", "--rm", "--net-host", "--privileged", image, _, program, "--cleanup"]:
            return _cleaned(shell, namespace, image, program)
    raise shell.unexpected()


def _cleaned(shell: Shell, namespace: str, image: str, program: str) -> Completed:
    """What kube-proxy leaves in the kernel, it can take away itself; here it leaves nothing."""
    if why := containers.can_run(shell):
        return failed(f"ctr: {why}")
    if not containers.has(shell, image, namespace):
        return failed(f'ctr: image "{image}": not found')
    return OK if program.endswith("/kube-proxy") else failed(f'exec: "{program}": not found', 127)


def _namespace(args: Sequence[str]) -> tuple[str, list[str]]:
    rest, namespace = list(args), "default"
    while rest and rest[0] in ("-n", "--namespace", "-a", "--address"):
        option, value = rest.pop(0), rest.pop(0)
        namespace = namespace if option in ("-a", "--address") else value
    return namespace, rest


def _list(shell: Shell, namespace: str, words: Sequence[str]) -> Completed:
    if "-q" not in words:
        raise shell.unexpected()
    wanted = {word.removeprefix("name==") for word in words if word.startswith("name==")}
    if not wanted:
        return said("".join(f"{name}\n" for name in sorted(containers.images(shell, namespace))))
    there = (name for name in sorted(wanted) if containers.has(shell, name, namespace))
    return said("".join(f"{name}\n" for name in there))


def _pull(shell: Shell, namespace: str, words: Sequence[str]) -> Completed:
    match words:
        case ["--hosts-dir", directory, name]:
            pass
        case [name] if not name.startswith("-"):
            directory = ""
        case _:
            raise shell.unexpected()
    # Logins are for Kubernetes alone: ctr asks as nobody in particular.
    if why := registries.obstacle(shell, name, directory, containers.wanted_logins(shell)):
        return failed(f"ctr: {why}")
    containers.keep(shell, name, namespace)
    return OK


def _import(shell: Shell, namespace: str, words: Sequence[str]) -> Completed:
    paths = [word for word in words if word not in ("--no-unpack", "--local")]
    if len(paths) != 1:
        raise shell.unexpected()
    found = _IMAGE.fullmatch(shell.files.read(shell.path(paths[0])).decode(errors="replace"))
    if found is None:
        return failed("ctr: unrecognized image format")
    if found[2] != standins.machine_arch(shell):
        return failed("ctr: no match for platform in manifest: not found")
    containers.keep(shell, found[1], namespace)
    return said(f"{found[1]} saved\n")


def _export(shell: Shell, namespace: str, words: Sequence[str]) -> Completed:
    if len(words) != 2 or words[0].startswith("-"):
        raise shell.unexpected()
    path, name = words
    if not containers.has(shell, name, namespace):
        return failed(f'ctr: image "{name}": not found')
    shell.files.write(shell.path(path), image_text(name, standins.machine_arch(shell)).encode())
    return OK


def _tag(shell: Shell, namespace: str, words: Sequence[str]) -> Completed:
    source, *targets = (word for word in words if word != "--force")
    if not containers.has(shell, source, namespace):
        return failed(f'ctr: image "{source}": not found')
    for name in targets:
        if containers.has(shell, name, namespace) and "--force" not in words:
            return failed(f'ctr: image "{name}": already exists')
        containers.keep(shell, name, namespace)
    return OK


def _remove(shell: Shell, namespace: str, words: Sequence[str]) -> Completed:
    for name in (word for word in words if word != "--sync"):
        containers.drop(shell, name, namespace)
    return OK


def _containers(shell: Shell, namespace: str, _words: Sequence[str]) -> Completed:
    rows = [
        f"{name:<16}{image:<48}io.containerd.runc.v2\n" for name, image in _all(shell, namespace)
    ]
    return said(f"{'CONTAINER':<16}{'IMAGE':<48}RUNTIME\n{''.join(rows)}")


def _tasks(shell: Shell, namespace: str, _words: Sequence[str]) -> Completed:
    rows = [f"{name:<16}{4242:<8}RUNNING\n" for name, _ in _all(shell, namespace)]
    return said(f"{'TASK':<16}{'PID':<8}STATUS\n{''.join(rows)}")


def _all(shell: Shell, namespace: str) -> list[tuple[str, str]]:
    beginning = f"{_CONTAINER}{namespace}:"
    keys = sorted(shell.state.keys(beginning))
    return [(key.removeprefix(beginning), str(shell.state.get(key)).split()[1]) for key in keys]


def _end(shell: Shell, namespace: str, words: Sequence[str]) -> Completed:
    """Of a container that no unit runs there is nothing left to end."""
    names = [word for word in words if not word.startswith("-") and not word.isdecimal()]
    for name in names:
        key = f"{_CONTAINER}{namespace}:{name}"
        if shell.state.get(key) is None:
            return failed(f'ctr: container "{name}" in namespace "{namespace}": not found')
        shell.state.set(key, None)
    return OK


_VERBS: Mapping[tuple[str, str], Callable[[Shell, str, Sequence[str]], Completed]] = {
    **dict.fromkeys((("images", "ls"), ("image", "ls"), ("images", "list")), _list),
    ("images", "pull"): _pull,
    ("images", "import"): _import,
    ("images", "export"): _export,
    ("images", "tag"): _tag,
    **dict.fromkeys((("snapshots", "delete"), ("snapshots", "rm")), _end),
    **dict.fromkeys((("images", "rm"), ("images", "remove")), _remove),
    **dict.fromkeys((("containers", "ls"), ("container", "ls"), ("c", "ls")), _containers),
    **dict.fromkeys((("tasks", "ls"), ("task", "ls"), ("t", "ls")), _tasks),
    **dict.fromkeys(
        [(group, verb) for group in ("containers", "container", "c") for verb in ("rm", "delete")],
        _end,
    ),
    **dict.fromkeys(
        [(group, verb) for group in ("tasks", "task", "t") for verb in ("rm", "delete", "kill")],
        _end,
    ),
}


class _Run(msgspec.Struct, frozen=True):
    """What `ctr run` is asked for."""

    namespace: str
    image: str
    name: str
    args: tuple[str, ...]
    mounts: Mapping[str, str]
    host_network: bool

    @property
    def key(self) -> str:
        return f"{_CONTAINER}{self.namespace}:{self.name}"


class Run(Daemon):
    """A container that a unit runs by ctr: as the program inside, with the files it is given."""

    def starts(self, start: Start) -> Sequence[Socket]:
        wanted, shell = _wanted(start), start.shell
        _require_startable(shell, wanted)
        sockets: Sequence[Socket] = ()
        if (inside := _inside(wanted.image)) is not None:
            args = wanted.args or inside.args
            begun = Start(shell, start.unit, inside.program, args, mounts=wanted.mounts)
            sockets = inside.daemon.starts(begun)
        shell.state.set(wanted.key, f"{start.unit} {wanted.image}")
        return sockets if wanted.host_network else ()

    def stops(self, shell: Shell, unit: str) -> None:
        for key in [*shell.state.keys(_CONTAINER)]:
            owner, _, image = str(shell.state.get(key)).partition(" ")
            if owner == unit:
                shell.state.set(key, None)
                if (inside := _inside(image)) is not None:
                    inside.daemon.stops(shell, unit)


def _wanted(start: Start) -> _Run:
    namespace, (verb, *rest) = _namespace(start.args)
    if verb != "run":
        raise Ended(f"ctr: `{verb}` does not run on")
    flags: set[str] = set()
    mounts: dict[str, str] = {}
    while rest and rest[0].startswith("-"):
        option, sign, value = rest.pop(0).partition("=")
        if option in _RUN_FLAGS and not sign:
            flags.add(option)
        elif option in _RUN_VALUES:
            value = value if sign else rest.pop(0)
            mounts |= _mounted(value) if option == "--mount" else {}
        else:
            raise Ended(f"flag provided but not defined: {option}")
    if len(rest) < 2:
        raise Ended("ctr: container id must be provided")
    image, name, *args = rest
    return _Run(namespace, image, name, tuple(args), mounts, "--net-host" in flags)


def _mounted(text: str) -> dict[str, str]:
    given = dict(pair.partition("=")[::2] for pair in text.split(","))
    return {given["dst"]: given["src"]}


def _require_startable(shell: Shell, wanted: _Run) -> None:
    if why := containers.can_run(shell):
        raise Ended(f"ctr: {why}")
    if not containers.has(shell, wanted.image, wanted.namespace):
        raise Ended(f'ctr: image "{wanted.image}": not found')
    if shell.state.get(wanted.key) is not None:
        raise Ended(f'ctr: container "{wanted.name}": already exists')
    for place in wanted.mounts.values():
        if shell.files.lookup(shell.files.resolve(place)) is None:
            raise Ended(f"ctr: failed to mount {place}: no such file or directory")


def _inside(image: str) -> Inside | None:
    return INSIDE.get(registries.parts(image)[1].rpartition("/")[2])


DAEMONS: Mapping[str, Daemon] = {"containerd": containers.DAEMON, "ctr": Run()}
PROGRAMS: Mapping[str, Program] = {"ctr": ctr}
