"""Container images of a host: what its containerd has, and how it gets more."""

from __future__ import annotations

from kubexm.common import layout
from kubexm.connector.base import C_LOCALE
from kubexm.errors import CommandFailed
from kubexm.runner import causes
from kubexm.runner.host import Command, Completed, Host

PROGRAM = f"{layout.BINARIES}/ctr"
KUBERNETES = "k8s.io"
"""The namespace in which Kubernetes looks for its images."""
_NOT_RUN = 127
_NO_DAEMON = ("connection refused", "no such file or directory", "deadline exceeded")


def image_command(host: Host, namespace: str, name: str, *, sudo: bool | None = None) -> Command:
    """Ask for an image by its full name; `has_image` reads the answer."""
    return _command(host, namespace, "ls", "-q", f"name=={name}", sudo=sudo)


def has_image(answer: Completed, name: str) -> bool:
    """Whether the image that was asked for is there."""
    _require_answer(answer, "ls")
    return name in answer.text.splitlines()


async def pull(host: Host, namespace: str, name: str, *, sudo: bool | None = None) -> None:
    """Have containerd take an image from a registry, by the way that its settings say."""
    options = ("--hosts-dir", layout.CONTAINERD_REGISTRIES)
    await _run(host, namespace, "pull", *options, name, sudo=sudo)


async def take(host: Host, namespace: str, archive: str, *, sudo: bool | None = None) -> None:
    """Have containerd take the images of an archive on the host, and unpack them."""
    await _run(host, namespace, "import", archive, sudo=sudo)


async def drop(host: Host, namespace: str, name: str, *, sudo: bool | None = None) -> None:
    """Have containerd forget an image, if it has it; containers that use it go on."""
    await _run(host, namespace, "rm", name, sudo=sudo)


async def _run(host: Host, namespace: str, verb: str, *words: str, sudo: bool | None) -> None:
    # Not one of its lines is heard: it redraws bars ten times in a second, terminal or not.
    command = (PROGRAM, "-n", namespace, "images", verb, *words)
    _require_answer(await host.ask(*command, changes=True, sudo=sudo, env=C_LOCALE), verb, *words)


def _command(host: Host, namespace: str, *words: str, sudo: bool | None) -> Command:
    return host.command(PROGRAM, "-n", namespace, "images", *words, sudo=sudo, env=C_LOCALE)


def _require_answer(done: Completed, *words: str) -> None:
    if not done.ok:
        argv = ("ctr", "images", *words)
        hint = _hint(done) or causes.hint_for(argv, done)
        raise CommandFailed(argv, done.exit, stderr=done.error_text, hint=hint)


def _hint(done: Completed) -> str:
    if done.exit == _NOT_RUN:
        return f"bring `{PROGRAM}` there in a step before this one"
    said = done.error_text
    if layout.CONTAINERD_SOCKET in said and any(words in said for words in _NO_DAEMON):
        return "start containerd in a step before this one"
    return ""
