"""References to secrets in steps: refused where nothing resolves them, known where something does.

A secret is revealed to the step that asked for it by the right parameter. Anywhere else the
reference would be written out as it stands, and the host would get `env://PASSWORD` for a password.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from kubexm.common.secrets import is_reference
from kubexm.config.connection import SshSettings
from kubexm.document import literals
from kubexm.document.findings import Finding, written_path
from kubexm.document.source import DataPath, texts
from kubexm.plan import ExecutionNode
from kubexm.spec import parameters, references
from kubexm.spec.conditions import decided
from kubexm.spec.inventory import InventoryHost
from kubexm.spec.references import BadReference, Reference
from kubexm.step.parameters import SECRETS

Scope = Mapping[str, Any]
_NO_ADDRESS = re.compile(r"(?<![A-Za-z0-9+.-])(?:env|prompt|vault)://[^\s\"'`,;]+")
"""What is nothing but a reference, wherever it stands; a `file://` may be an address."""
_WHOLE_CONTENTS = ("content", "stdin", "text")
_ANYWHERE = (
    "only `secretEnv` of `command`, `value` and `mint`, `secretStdin` of `command`, `secret-file`"
    " and `secret-template` do that"
)
_INSTEAD = {
    ("command", "env"): "write it under `secretEnv`, which resolves it",
    ("command", "stdin"): "write it as `secretStdin`, which resolves it",
    ("command", ""): "give it to the command by `secretEnv` or `secretStdin`, which resolve it",
    ("value", ""): "give it to the command by `secretEnv`, which resolves it",
    ("mint", ""): "give it to the command by `secretEnv`, which resolves it",
    ("file", ""): "use `secret-file` for a whole file, or `secret-template` for a part of one",
    ("template", ""): "use `secret-template`, and name it under `secrets` there",
    ("secret-template", ""): "name it under `secrets`, which resolves it",
}


class SecretUse(msgspec.Struct, frozen=True):
    """A reference that a unit will have resolved, and by which parameter."""

    uri: str
    node: str
    parameter: str


class ConnectionUse(msgspec.Struct, frozen=True):
    """A reference that the way to a host needs resolved, and by which of its settings."""

    uri: str
    host: str
    setting: str


def misplaced(kind: str, params: Mapping[str, Any]) -> Iterator[Finding]:
    """References to secrets that are written where the step does not resolve them."""
    for name, value in params.items():
        if not _resolves(kind, name):
            for path, found in _held(value, (name,)):
                message = f"`{found}` is a reference to a secret, and nothing resolves it here"
                yield Finding(path, message, _instead(kind, name), excerpt=found)


def misplaced_by(
    kind: str, named: Iterable[tuple[DataPath, Reference]], scope: Scope
) -> Iterator[Finding]:
    """The same for references that variables bring along; the paths begin at a parameter."""
    for path, reference in named:
        name = str(path[0])
        if reference.root != "vars" or _resolves(kind, name):
            continue
        try:
            value = references.in_scope(reference, scope)
        except BadReference:
            continue
        for _, text in _held(value, (*path, *reference.path)):
            message = f"`{reference.written_out}` holds `{text}`, which nothing resolves here"
            yield Finding(path, message, _instead(kind, name), excerpt=reference.written_out)


def _resolves(kind: str, name: str) -> bool:
    parameter = parameters.parameters_of(kind).get(name)
    return parameter is not None and parameter.field in SECRETS.get(kind, ())


def _held(value: Any, path: DataPath) -> Iterator[tuple[DataPath, str]]:
    for place, text in texts(value, path):
        if found := _NO_ADDRESS.search(text):
            yield place, found[0]
        elif is_reference(text) and _is_private(place):
            yield place, text


def _is_private(path: DataPath) -> bool:
    """Whether an address would be out of place here."""
    return path[-1] in _WHOLE_CONTENTS or any(
        literals.names_a_secret(part) for part in path if isinstance(part, str)
    )


def _instead(kind: str, name: str) -> str:
    return _INSTEAD.get((kind, name)) or _INSTEAD.get((kind, "")) or _ANYWHERE


def uses(
    nodes: Iterable[ExecutionNode], scopes: Mapping[str, Scope], *, undecided: bool = False
) -> Iterator[SecretUse]:
    """The secrets that these nodes will ask for, as far as the scopes of their hosts tell.

    Whether a unit is wanted, and what it names, may hang on what is not in its scope: then it is
    left out, or with `undecided` taken as wanted.
    """
    for node in nodes:
        if node.step.kind not in SECRETS:
            continue
        fields = {name: node.step.params.get(name) for name in SECRETS[node.step.kind]}
        if not any(fields.values()):
            continue
        hosts = [scopes[host] for host in node.hosts if host in scopes]
        if node.when is None and not references.holds_references(fields):
            del hosts[1:]  # the same everywhere
        for scope in hosts:
            if decided(node.when, scope, undecided=undecided):
                yield from _asked(node, fields, scope)


def _asked(node: ExecutionNode, fields: Mapping[str, Any], scope: Scope) -> Iterator[SecretUse]:
    for path, text in texts(fields, ()):
        try:
            uri = references.resolved(text, lambda found: references.in_scope(found, scope))
        except BadReference:
            continue
        if isinstance(uri, str) and is_reference(uri):
            name = parameters.as_written(node.step.kind, f"`{written_path(path)}`")
            yield SecretUse(uri, node.id, name)


def of_connections(hosts: Iterable[InventoryHost]) -> Iterator[ConnectionUse]:
    """The secrets that it takes to reach these hosts, and to become root where that is wanted."""
    for host in hosts:
        if host.ssh is None:
            continue
        yield from _on_the_way(host.ssh, host.name, "ssh")
        if host.sudo and (secret := host.ssh.become.password) is not None:
            yield ConnectionUse(secret.uri, host.name, "`ssh.become.password`")


def _on_the_way(ssh: SshSettings, host: str, path: str) -> Iterator[ConnectionUse]:
    for name, secret in (("passphrase", ssh.passphrase), ("password", ssh.password)):
        if secret is not None:
            yield ConnectionUse(secret.uri, host, f"`{path}.{name}`")
    if (jump := ssh.jump) is not None:
        yield from _on_the_way(jump.ssh, jump.name or host, "ssh" if jump.name else f"{path}.jump")
