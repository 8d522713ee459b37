"""Container images of a host: what its containerd has, and how it gets more."""

from __future__ import annotations

from kubexm.common import layout
from kubexm.connector.base import C_LOCALE
from kubexm.errors import CommandFailed
from kubexm.runner import causes, symptoms
from kubexm.runner.host import Command, Completed, Host

PROGRAM = f"{layout.BINARIES}/ctr"
CRICTL = f"{layout.BINARIES}/crictl"
KUBERNETES = "k8s.io"
"""The namespace in which Kubernetes looks for its images."""
_NOT_RUN = 127
_ONCE = "kubexm-once"
"""What a container is called that ends by itself."""
_NO_DAEMON = ("connection refused", "no such file or directory", "deadline exceeded")


def image_command(host: Host, namespace: str, name: str, *, sudo: bool | None = None) -> Command:
    """Ask for an image by its full name; `has_image` reads the answer."""
    return _command(host, namespace, "ls", "-q", f"name=={name}", sudo=sudo)


def has_image(answer: Completed, name: str) -> bool:
    """Whether the image that was asked for is there."""
    _require_answer(answer, "ls")
    return name in answer.text.splitlines()


def kept_as(name: str) -> str:
    """What an image is called that was pulled for Kubernetes: of tag and digest, the digest."""
    tagged, at, digest = name.partition("@")
    if not at:
        return name
    folder, slash, last = tagged.rpartition("/")
    return f"{folder}{slash}{last.partition(':')[0]}@{digest}"


async def pull(host: Host, namespace: str, name: str, *, sudo: bool | None = None) -> None:
    """Have containerd take an image from a registry, by the way that its settings say."""
    options = ("--hosts-dir", layout.CONTAINERD_REGISTRIES)
    await _run(host, namespace, "pull", *options, name, sudo=sudo)


async def pull_for_kubernetes(host: Host, name: str, *, sudo: bool | None = None) -> None:
    """Have containerd take an image as it does for the kubelet: with the logins of its settings,
    which ctr does not know. It is then in the namespace of Kubernetes."""
    words = ("pull", name)
    command = (CRICTL, "--runtime-endpoint", layout.CRI_SOCKET, *words)
    done = await host.ask(*command, changes=True, sudo=sudo, env=C_LOCALE)
    _require_answer(done, *words, program=CRICTL)


async def write(
    host: Host, namespace: str, name: str, archive: str, *, sudo: bool | None = None
) -> None:
    """Have containerd write an image into an archive on the host, for the host's architecture."""
    await _run(host, namespace, "export", archive, name, sudo=sudo)


async def take(host: Host, namespace: str, archive: str, *, sudo: bool | None = None) -> None:
    """Have containerd take the images of an archive on the host, and unpack them."""
    await _run(host, namespace, "import", archive, sudo=sudo)


async def drop(host: Host, namespace: str, name: str, *, sudo: bool | None = None) -> None:
    """Have containerd forget an image, if it has it; containers that use it go on."""
    await _run(host, namespace, "rm", name, sudo=sudo)


async def image_like(
    host: Host, namespace: str, part: str, *, sudo: bool | None = None
) -> str | None:
    """An image whose name has this part; None if there is none, or no containerd to ask."""
    (told,) = await host.batch((_command(host, namespace, "ls", "-q", sudo=sudo),))
    found = told.text.splitlines() if told.ok else []
    return next((name for name in found if part in name), None)


async def run_once(
    host: Host, namespace: str, image: str, *argv: str, sudo: bool | None = None
) -> None:
    """Run a program of an image with all rights and in the network of the host, to its end."""
    options = ("--rm", "--net-host", "--privileged")
    words = ("-n", namespace, "run", *options, image, _ONCE, *argv)
    await host.run(PROGRAM, *words, sudo=sudo, env=C_LOCALE)


async def _run(host: Host, namespace: str, verb: str, *words: str, sudo: bool | None) -> None:
    # Not one of its lines is heard: it redraws bars ten times in a second, terminal or not.
    command = (PROGRAM, "-n", namespace, "images", verb, *words)
    _require_answer(await host.ask(*command, changes=True, sudo=sudo, env=C_LOCALE), verb, *words)


def _command(host: Host, namespace: str, *words: str, sudo: bool | None) -> Command:
    return host.command(PROGRAM, "-n", namespace, "images", *words, sudo=sudo, env=C_LOCALE)


def _require_answer(done: Completed, *words: str, program: str = PROGRAM) -> None:
    if not done.ok:
        argv = ("ctr", "images", *words) if program == PROGRAM else ("crictl", *words)
        hint = _hint(done, program) or causes.hint_for(argv, done) or symptoms.hint(done.error_text)
        raise CommandFailed(argv, done.exit, stderr=done.error_text, hint=hint)


def _hint(done: Completed, program: str) -> str:
    if done.exit == _NOT_RUN:
        return f"bring `{program}` there in a step before this one"
    said = done.error_text
    if layout.CONTAINERD_SOCKET in said and any(words in said for words in _NO_DAEMON):
        return "start containerd in a step before this one"
    return ""
