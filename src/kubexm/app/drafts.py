"""A first cluster file, out of a few answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from kubexm.app import versions
from kubexm.config.cluster import RULES, checked
from kubexm.document import source
from kubexm.errors import InvalidInput
from kubexm.resource import catalog
from kubexm.resource.catalog import KUBERNETES
from kubexm.templates import render

TEMPLATE = "cluster/cluster.yaml"


class DraftParams(msgspec.Struct, frozen=True):
    """What a cluster is to be like."""

    file: Path
    name: str
    hosts: tuple[str, ...]
    """Each as `NAME=ADDRESS`; both may have a range."""
    control_plane: tuple[str, ...] = ()
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
    """Write a commented file that is a valid cluster; `InvalidInput` if it can't be one."""
    if params.file.exists() and not params.overwrite:
        raise InvalidInput(
            f"`{params.file}` is there already", hint="name another file, or add --force"
        )
    text = written(params)
    try:
        with params.file.open("w" if params.overwrite else "x") as file:
            file.write(text)
    except OSError as error:
        raise InvalidInput(
            f"can't write `{params.file}`: {error.strerror}", hint="name another file"
        ) from error


def written(params: DraftParams) -> str:
    """The text of the file."""
    known = catalog.load()
    version = known.version(KUBERNETES, params.version or known.component(KUBERNETES).default)
    answers: dict[str, Any] = {
        name: getattr(params, name)
        for name in ("name", "control_plane", "user", "key", "sudo", "network")
    }
    answers |= {"endpoint": params.endpoint, "address": params.address, "version": version}
    text = render.render(TEMPLATE, answers | {"hosts": [*map(_host, params.hosts)]})
    document = source.parse(text, str(params.file))
    checked(document, rules=(*RULES, *versions.rules(known)))
    return text


def _host(text: str) -> dict[str, str]:
    name, separator, address = text.partition("=")
    if not separator or not name or not address:
        raise InvalidInput(
            f"found `{text}`, want a host as NAME=ADDRESS",
            hint="write `--host node1=10.0.0.11`, or `--host 'node[1:3]=10.0.0.[11:13]'`",
        )
    return {"name": name, "address": address}
