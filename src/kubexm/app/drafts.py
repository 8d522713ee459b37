"""A first cluster file, out of a few answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from kubexm.app import versions
from kubexm.config.cluster import RULES, checked
from kubexm.document import ranges, source
from kubexm.document.fields import as_ip, unbracketed
from kubexm.document.ranges import BadRange
from kubexm.document.source import CORRECT, DataPath
from kubexm.errors import InvalidCluster, InvalidInput, Problem
from kubexm.resource import catalog
from kubexm.resource.catalog import KUBERNETES
from kubexm.templates import render

TEMPLATE = "cluster/cluster.yaml"
_HOSTS: frozenset[DataPath] = frozenset({("spec", "hosts"), ("spec", "roleGroups")})
_STAND_IN = {"name": "host", "address": "host.invalid"}
"""In place of hosts that can't be read; no rule that goes by hosts sees it."""


class DraftParams(msgspec.Struct, frozen=True):
    """What a cluster is to be like."""

    file: Path
    name: str
    hosts: tuple[str, ...]
    """Each as `NAME=ADDRESS`; both may have a range."""
    control_plane: tuple[str, ...] = ()
    loadbalancer: tuple[str, ...] = ()
    version: str | None = None
    """The one that is usually taken, unless given."""
    user: str = "root"
    key: str | None = None
    sudo: bool = False
    network: str = "calico"
    endpoint: str | None = None
    address: str | None = None
    """Of the endpoint."""
    overwrite: bool = False


def draft(params: DraftParams) -> None:
    """Write a commented file that is a valid cluster; `InvalidInput` with all that is wrong."""
    text, found = _written(params)
    if params.file.exists() and not params.overwrite:
        hint = "name another file, or add --force"
        found.insert(0, Problem(f"`{params.file}` is there already", "--file", hint))
    if found:
        raise InvalidInput("no sound cluster file can be written", problems=found, hint=CORRECT)
    try:
        with params.file.open("w" if params.overwrite else "x") as file:
            file.write(text)
    except OSError as error:
        raise InvalidInput(
            f"can't write `{params.file}`: {error.strerror}", hint="name another file"
        ) from error


def _written(params: DraftParams) -> tuple[str, list[Problem]]:
    """The text of the file, and what is wrong with the answers."""
    known, found = catalog.load(), [*_no_hosts(params.hosts)]
    # What goes by hosts is not judged by some of them.
    gaps = _HOSTS if found else frozenset[DataPath]()
    try:
        version = known.version(KUBERNETES, params.version or _usual(known))
    except InvalidInput as error:
        found.append(Problem(error.message, "--kubernetes", error.hint))
        version = _usual(known)
    text = render.render(TEMPLATE, _answers(params, version))
    rules = (rule for rule in (*RULES, *versions.rules(known)) if rule.applies(gaps))
    try:
        directory = params.file.absolute().parent
        checked(source.parse(text, str(params.file), directory), rules=[*rules])
    except InvalidCluster as error:
        found += error.problems
    return text, found


def _usual(known: catalog.Catalog) -> str:
    return known.component(KUBERNETES).default


def _answers(params: DraftParams, version: str) -> dict[str, Any]:
    hosts = [*filter(None, map(_host, params.hosts))] or [_STAND_IN]
    return {
        **msgspec.structs.asdict(params),
        "version": version,
        "hosts": hosts,
        "is_ipv6": all(_is_ipv6(host["address"]) for host in hosts),
    }


def _is_ipv6(address: str) -> bool:
    """Whether this is IPv6, also as a range, in which a colon stands between its ends."""
    try:
        found = as_ip(unbracketed(ranges.parse(address).first))
    except BadRange:
        return False  # told where the file is judged
    return found is not None and found.version == 6


def _no_hosts(written: Sequence[str]) -> Iterator[Problem]:
    for text in written:
        if _host(text) is None:
            message = f"found `{text}`, want a host as NAME=ADDRESS"
            hint = "write `--host node1=10.0.0.11`, or `--host 'node[1:3]=10.0.0.[11:13]'`"
            yield Problem(message, "--host", hint)


def _host(text: str) -> dict[str, str] | None:
    name, _, address = text.partition("=")
    return {"name": name, "address": address} if name and address else None
