"""kubeadm on a host: its commands, what it would trip over, and how far it got there."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Literal

import msgspec

from kubexm.common import layout
from kubexm.connector.base import C_LOCALE
from kubexm.errors import StepFailed
from kubexm.runner import causes, files, symptoms
from kubexm.runner.host import Command, Completed, Host

PROGRAM = f"{layout.BINARIES}/kubeadm"
# It calls the kubelet and others by their names, and not every sudo looks where we put them.
_ENVIRONMENT: Mapping[str, str] = {
    **C_LOCALE,
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
}
_MARKER_SIZE = 4096
_PORTS = (10250, 10257, 10259, 2379, 2380)
"""Those that no setting changes: kubelet, controller manager, scheduler, etcd."""
_FILES = (
    *(
        f"{layout.MANIFESTS}/{name}.yaml"
        for name in ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd")
    ),
    layout.KUBELET_KUBECONFIG,
    layout.KUBELET_BOOTSTRAP,
    f"{layout.PKI}/ca.crt",
)

_CHECK = re.compile(r"^\s*\[ERROR (.+?)\]: (.+)$", re.MULTILINE)
_ERROR = re.compile(r"^error: (.+)$", re.MULTILINE)
_WAITED = "wait-control-plane"
_SEE_LOG = "the log of this step has all that it said"
_TOKEN = re.compile(r"\b[a-z0-9]{6}\.[a-z0-9]{16}\b")

Role = Literal["init", "join"]
Part = Literal["control-plane", "worker"]
Progress = Literal["begun", "done"]


class Marker(msgspec.Struct, frozen=True, omit_defaults=True):
    """How far kubeadm got on a host, as the host remembers it."""

    state: Progress
    role: Role
    """Whether the host began the cluster, or joined it."""
    part: Part | None = None
    """What it became a member as; records of old have nothing of it."""
    cluster: str = ""
    """Whose member it became; records of old have nothing of that either."""


def marker_command(host: Host, *, sudo: bool | None = None) -> Command:
    """Ask how far kubeadm got; `marker_of` reads the answer."""
    return files.content_command(host, _marker(host), _MARKER_SIZE, sudo=sudo)


def marker_of(answer: Completed) -> Marker | None:
    """How far kubeadm got; None if it was never run by us."""
    told = files.content(answer, "the record of kubeadm")
    return msgspec.json.decode(told, type=Marker) if told else None


async def mark(host: Host, marker: Marker, *, sudo: bool | None = None) -> None:
    """Have the host remember how far kubeadm got."""
    path = _marker(host)
    await files.make_directory(host, path.rpartition("/")[0], mode=0o700, sudo=sudo)
    await files.write(host, path, msgspec.json.encode(marker), mode=0o600, sudo=sudo)


async def forget(host: Host, *, sudo: bool | None = None) -> None:
    """The host belongs to no cluster any more."""
    await files.remove(host, _marker(host), sudo=sudo)


def init(
    host: Host,
    config: str,
    *,
    skip_phases: Sequence[str] = (),
    ignore_errors: Sequence[str] = (),
    sudo: bool | None = None,
) -> Command:
    """Begin a cluster with this host."""
    options = _options(skip_phases, ignore_errors)
    return _command(host, "init", "--skip-token-print", "--config", config, *options, sudo=sudo)


def join(
    host: Host,
    config: str,
    *,
    skip_phases: Sequence[str] = (),
    ignore_errors: Sequence[str] = (),
    sudo: bool | None = None,
) -> Command:
    """Add this host to a cluster."""
    options = _options(skip_phases, ignore_errors)
    return _command(host, "join", "--config", config, *options, sudo=sudo)


def phase(host: Host, words: Sequence[str], config: str, *, sudo: bool | None = None) -> Command:
    """Do one part of what `init` does."""
    return _command(host, "init", "phase", *words, "--config", config, sudo=sudo)


def reset(host: Host, *, skip_phases: Sequence[str] = (), sudo: bool | None = None) -> Command:
    """Take this host out of its cluster, and remove most of what kubeadm has put there."""
    options = ("--force", "--cri-socket", layout.CRI_SOCKET, *_options(skip_phases, ()))
    return _command(host, "reset", *options, sudo=sudo)


async def made_token(host: Host, seconds: float, *, sudo: bool | None = None) -> str:
    """A new token to join by; it goes to no log."""
    lifetime = ("--ttl", f"{seconds:.0f}s")
    words = ("token", "create", *lifetime, "--kubeconfig", layout.ADMIN_CONFIG)
    argv = (PROGRAM, *words)
    answer = await host.ask(*argv, changes=True, sudo=sudo, env=_ENVIRONMENT)
    if answer.ok and (found := _TOKEN.search(answer.text)):
        return found[0]
    raise StepFailed(
        f"`kubeadm token create` exited with {answer.exit}: {_complaint(answer)}",
        hint="see that the API server of this host answers",
    )


async def done(host: Host, command: Command) -> None:
    """Run one of these commands; it must succeed."""
    answer = await host.execute(command)
    if not answer.ok:
        raise failure(command, answer)


def failure(command: Command, answer: Completed) -> StepFailed:
    """The error for what kubeadm complained of."""
    complaint = _complaint(answer)
    said = f"`kubeadm {command.argv[1]}` exited with {answer.exit}: {complaint}"
    # Who has only waited can't tell what for: that the API server is silent has a cause of its own.
    known = "" if _WAITED in complaint else symptoms.hint(complaint)
    hint = causes.hint_for(command.argv, answer) or known or _SEE_LOG
    return StepFailed(said, hint=hint)


def only_checked(answer: Completed) -> bool:
    """Whether it failed before it changed anything: the host did not pass its checks."""
    return _CHECK.search(answer.error_text) is not None


def _complaint(answer: Completed) -> str:
    """Each check that failed, or else the last error."""
    if checks := _CHECK.findall(answer.error_text):
        return "; ".join(f"{name}: {said}" for name, said in checks)
    errors = _ERROR.findall(answer.error_text)
    return str(errors[-1]) if errors else answer.error_text.strip().rpartition("\n")[2]


@asynccontextmanager
async def kept_for_a_while(
    host: Host, path: str, data: bytes, *, sudo: bool | None = None
) -> AsyncIterator[None]:
    """A file that only root can read lies there until kubeadm has read it."""
    above = path.rpartition("/")[0]
    await files.make_directory(host, above, mode=0o700, sudo=sudo)
    try:
        await files.write(host, path, data, mode=0o600, sudo=sudo)
        yield
    finally:
        await remove_kept(host, path, sudo=sudo)


async def remove_kept(host: Host, path: str, *, sudo: bool | None = None) -> None:
    """Such a file is gone, also one that somebody has left who was killed meanwhile."""
    await files.remove(host, path, sudo=sudo)
    await files.remove_empty(host, path.rpartition("/")[0], sudo=sudo)


def own_leftovers(port: int, etcd_data: str) -> tuple[str, ...]:
    """The checks of kubeadm that an unfinished attempt of ours would fail at."""
    ports = (f"Port-{number}" for number in (port, *_PORTS))
    found = (_check("FileAvailable", path) for path in _FILES)
    return (*ports, *found, _check("DirAvailable", etcd_data))


def _check(kind: str, path: str) -> str:
    return f"{kind}-{path.replace('/', '-')}"


def _options(skip_phases: Iterable[str], ignore_errors: Iterable[str]) -> tuple[str, ...]:
    skipped, ignored = (",".join(dict.fromkeys(names)) for names in (skip_phases, ignore_errors))
    return (
        *(("--skip-phases", skipped) if skipped else ()),
        *(("--ignore-preflight-errors", ignored) if ignored else ()),
    )


def _command(host: Host, *words: str, sudo: bool | None) -> Command:
    return host.command(PROGRAM, *words, sudo=sudo, env=_ENVIRONMENT, uninterruptible=True)


def _marker(host: Host) -> str:
    return f"{host.state_dir}/records/kubeadm.json"
