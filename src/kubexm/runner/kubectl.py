"""kubectl on a host: what it is asked, and what its answers mean.

Objects come and go by its standard streams: no file of them is left on the host.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kubexm.common import layout
from kubexm.connector.base import C_LOCALE
from kubexm.errors import CommandFailed, StepFailed
from kubexm.runner import causes, symptoms
from kubexm.runner.host import Command, Completed, Host

PROGRAM = f"{layout.BINARIES}/kubectl"
_AS_ADMINISTRATOR = (PROGRAM, "--kubeconfig", layout.ADMIN_CONFIG)
_ENVIRONMENT: Mapping[str, str] = {**C_LOCALE, "KUBECACHEDIR": layout.KUBECTL_CACHE}
_OURS = ("--server-side", "--force-conflicts", "--field-manager", "kubexm", "-f", "-")
_DIFFERS = 1
_NOT_THERE = ("(NotFound)", "no matches for kind")
"""What it says where the cluster has no such object, or does not know its kind or namespace."""
_NO_DIFF = 'failed to run "diff"'
_HEADER = re.compile(r"^(---|\+\+\+) \S*/(\S+)(\t.*)?$", re.MULTILINE)
_SILENT = (
    "was refused",
    "connection refused",
    "Unable to connect to the server",
    "i/o timeout",
    "no such host",
    "no route to host",
    "TLS handshake timeout",
    "connection reset",
    "ServiceUnavailable",
    "could not find the requested resource",
)
"""What it says where the API server does not answer, or is not one, or not yet."""

Object = Mapping[str, Any]


def as_administrator(*words: str) -> tuple[str, ...]:
    """What asks the cluster for anything else, with all that its administrator may."""
    return (*_AS_ADMINISTRATOR, *words)


def get_command(host: Host, *words: str, sudo: bool | None = None) -> Command:
    """Ask for objects; `object_of` and `objects_of` read the answer."""
    return _command(host, "get", "--ignore-not-found", "-o", "json", *words, sudo=sudo)


def name_command(host: Host, resource: str, namespace: str, *, sudo: bool | None = None) -> Command:
    """Ask for the name of an object alone; `is_there` reads the answer."""
    words = ("get", "--ignore-not-found", "-o", "name", "-n", namespace, resource)
    return _command(host, *words, sudo=sudo)


def object_of(answer: Completed) -> Object | None:
    """The object that was asked for; None if there is none."""
    _refuse_failure(("get",), answer)
    return _read(answer)


def objects_of(answer: Completed) -> list[Object]:
    """All objects of an answer, however many there are."""
    _refuse_failure(("get",), answer)
    return _items(_read(answer))


def is_there(answer: Completed) -> bool:
    """Whether the cluster has the object that was asked for."""
    _refuse_failure(("get",), answer)
    return bool(answer.stdout.strip())


async def get(host: Host, *words: str, sudo: bool | None = None) -> list[Object]:
    """Objects of the cluster."""
    (answer,) = await host.batch((get_command(host, *words, sudo=sudo),))
    return objects_of(answer)


async def log(
    host: Host, *place: str, lines: str, before: bool, sudo: bool | None = None
) -> list[str]:
    """The last lines of a container, or `before` it was started anew; none if there is no log."""
    words = ("logs", *place, "--tail", lines, *(("--previous",) if before else ()))
    (answer,) = await host.batch((_command(host, *words, sudo=sudo),))
    return answer.text.splitlines() if answer.ok else []


async def existing(
    host: Host, manifests: str, namespace: str = "", *, sudo: bool | None = None
) -> list[Object]:
    """Those of these objects that the cluster has, as it has them."""
    words = ("get", *_in(namespace), "--ignore-not-found", "-o", "json", "-f", "-")
    answer = await _ask(host, words, manifests, sudo)
    if not answer.ok and not _is_not_there(answer):
        raise _failure(words, answer)
    # Of a kind that the cluster does not know there are none; it tells of the others all the same.
    return _items(_read(answer))


async def difference(
    host: Host, manifests: str, namespace: str = "", *, sudo: bool | None = None
) -> str | None:
    """How the objects of the cluster differ from these, as text; nothing if they don't.

    None if the cluster does not even know where to put some of them.
    """
    words = ("diff", *_in(namespace), *_OURS)
    answer = await _ask(host, words, manifests, sudo)
    if answer.exit == _DIFFERS or answer.ok:
        return _plain(answer.text)
    if _is_not_there(answer):
        return None
    raise _failure(words, answer)


async def apply(
    host: Host, manifests: str, namespace: str = "", *, sudo: bool | None = None
) -> None:
    """Have objects be like these, whoever else has a say in the same fields."""
    await change(host, "apply", *_in(namespace), *_OURS, stdin=manifests, sudo=sudo)


async def delete(
    host: Host, manifests: str, namespace: str = "", *, sudo: bool | None = None
) -> None:
    """Have none of these objects; does not wait for the last of them to be gone."""
    words = ("delete", *_in(namespace), "--ignore-not-found", "--wait=false", "-f", "-")
    await change(host, *words, stdin=manifests, sudo=sudo)


async def change(host: Host, *words: str, stdin: str = "", sudo: bool | None = None) -> Completed:
    """Change something in the cluster; what kubectl says goes to the log."""
    done = await host.execute(_command(host, *words, stdin=stdin.encode(), sudo=sudo))
    _refuse_failure(words, done)
    return done


def is_silent(error: StepFailed) -> bool:
    """Whether something failed because the API server did not answer."""
    return isinstance(error, CommandFailed) and _says(error.stderr, _SILENT)


def selector(labels: Mapping[str, str]) -> str:
    """What asks for the objects that have all of these labels."""
    return ",".join(f"{name}={value}" for name, value in labels.items())


def _in(namespace: str) -> tuple[str, ...]:
    """Where objects go that say nothing of it themselves."""
    return ("-n", namespace) if namespace else ()


def _read(answer: Completed) -> Object | None:
    if not answer.stdout.strip():
        return None
    try:
        found = json.loads(answer.stdout)
    except ValueError as error:
        raise StepFailed(f"`kubectl get` did not write JSON: {error}") from None
    return dict(found)


def _items(found: Object | None) -> list[Object]:
    if found is None:
        return []
    return list(found["items"]) if "items" in found else [found]


def _plain(diff: str) -> str:
    """A difference without the names of the files that kubectl has made for it."""
    named = _HEADER.sub(r"\1 \2", diff)
    return "\n".join(line for line in named.splitlines() if not line.startswith("diff "))


async def _ask(host: Host, words: Sequence[str], manifests: str, sudo: bool | None) -> Completed:
    return await host.ask(
        *_AS_ADMINISTRATOR, *words, stdin=manifests.encode(), env=_ENVIRONMENT, sudo=sudo
    )


def _command(host: Host, *words: str, sudo: bool | None, stdin: bytes = b"") -> Command:
    return host.command(*_AS_ADMINISTRATOR, *words, sudo=sudo, env=_ENVIRONMENT, stdin=stdin)


def _is_not_there(answer: Completed) -> bool:
    said = answer.error_text
    return not answer.ok and _says(said, _NOT_THERE) and not _says(said, _SILENT)


def _refuse_failure(words: Sequence[str], answer: Completed) -> None:
    if not answer.ok:
        raise _failure(words, answer)


def _failure(words: Sequence[str], answer: Completed) -> CommandFailed:
    argv, said = ("kubectl", *words), answer.error_text
    hint = causes.hint_for((PROGRAM,), answer) or symptoms.hint(said)
    if _says(said, _SILENT):
        hint = "see that the API server runs: `crictl ps -a`, `journalctl -u kubelet` on this host"
    if _NO_DIFF in said:
        hint = "the host has no `diff`: install the package diffutils"
    return CommandFailed(argv, answer.exit, stdout=answer.text, stderr=said, hint=hint)


def _says(said: str, signs: Iterable[str]) -> bool:
    return any(sign in said for sign in signs)
