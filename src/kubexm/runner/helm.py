"""helm on a host: releases of charts, and what its answers mean."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from kubexm.common import layout
from kubexm.connector.base import C_LOCALE
from kubexm.errors import CommandFailed
from kubexm.runner import causes, symptoms
from kubexm.runner.host import Command, Completed, Host

PROGRAM = f"{layout.BINARIES}/helm"
_NO_RELEASE = "release: not found"


class Release(msgspec.Struct, frozen=True):
    """What helm says of a release; it says more than that."""

    name: str
    revision: str
    status: str
    """`deployed`, `failed`, `pending-install`, `pending-upgrade` or `pending-rollback`."""
    chart: str
    """Name and version in one, such as `cilium-1.18.2`."""


def list_command(host: Host, name: str, namespace: str, *, sudo: bool | None = None) -> Command:
    """Ask for a release; `release_of` reads the answer."""
    # Which states are told unless they are named differs between versions of helm.
    states = ("--deployed", "--failed", "--pending")
    words = ("list", "-o", "json", *states, "--filter", f"^{re.escape(name)}$")
    return _command(host, namespace, *words, sudo=sudo)


def values_command(host: Host, name: str, namespace: str, *, sudo: bool | None = None) -> Command:
    """Ask for the values that a release was given; `values_of` reads the answer."""
    return _command(host, namespace, "get", "values", name, "-o", "json", sudo=sudo)


def release_of(answer: Completed) -> Release | None:
    """The release that was asked for; None if there is none."""
    _refuse_failure(("list",), answer)
    found = msgspec.json.decode(answer.stdout or b"[]", type=list[Release])
    return found[0] if found else None


def values_of(answer: Completed) -> Mapping[str, Any]:
    """The values that a release was given; none if there is no release."""
    if not answer.ok and _NO_RELEASE in answer.error_text:
        return {}
    _refuse_failure(("get", "values"), answer)
    return json.loads(answer.stdout or b"null") or {}


async def upgrade(
    host: Host,
    name: str,
    namespace: str,
    chart: str,
    values: Mapping[str, Any],
    seconds: float | None,
    *,
    sudo: bool | None = None,
) -> None:
    """Install a release, or change it; ends when all of it runs, or at once without `seconds`."""
    # Where it is given no value at all, helm would else go on with those of the last time.
    words = ("upgrade", name, chart, "--install", "--create-namespace", "--reset-values", "-f", "-")
    given = json.dumps(values).encode()
    waits = () if seconds is None else ("--wait", "--timeout", f"{seconds:.0f}s")
    await _change(host, namespace, *words, *waits, sudo=sudo, stdin=given)


async def uninstall(host: Host, name: str, namespace: str, *, sudo: bool | None = None) -> None:
    """Remove a release."""
    await _change(host, namespace, "uninstall", name, "--wait", sudo=sudo)


async def rollback(
    host: Host, name: str, namespace: str, revision: str = "", *, sudo: bool | None = None
) -> None:
    """Go back to an earlier revision of a release, the last one that was whole unless given."""
    words = ("rollback", name, *((revision,) if revision else ()), "--wait")
    await _change(host, namespace, *words, sudo=sudo)


async def _change(
    host: Host, namespace: str, *words: str, sudo: bool | None, stdin: bytes = b""
) -> None:
    done = await host.execute(_command(host, namespace, *words, sudo=sudo, stdin=stdin))
    _refuse_failure(words[:2], done)


def _command(
    host: Host, namespace: str, *words: str, sudo: bool | None, stdin: bytes = b""
) -> Command:
    place = ("--kubeconfig", layout.ADMIN_CONFIG, "-n", namespace)
    return host.command(PROGRAM, *words, *place, sudo=sudo, env=C_LOCALE, stdin=stdin)


def _refuse_failure(words: tuple[str, ...], answer: Completed) -> None:
    if not answer.ok:
        argv, said = ("helm", *words), answer.error_text
        hint = causes.hint_for((PROGRAM,), answer) or symptoms.hint(said)
        raise CommandFailed(argv, answer.exit, stdout=answer.text, stderr=said, hint=hint)
