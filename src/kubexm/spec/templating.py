"""Templates that steps name: part of the graph by digest, and tried where all is known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kubexm.errors import InvalidInput
from kubexm.spec.fields import Finding
from kubexm.templates import render

_KINDS = ("template", "secret-template")


def digests(kind: str, fields: Mapping[str, Any]) -> dict[str, str]:
    """The digest of the template of the program that a step uses, if it does."""
    name = fields.get("template")
    if kind not in _KINDS or not isinstance(name, str) or name not in render.names():
        return {}
    return {f"template:{name}": render.digest(name)}


def findings(kind: str, fields: Mapping[str, Any]) -> Iterator[Finding]:
    """What goes wrong when the template is filled in with these fields, all resolved."""
    if kind not in _KINDS:
        return
    secrets = fields.get("secrets", {})
    data = {**fields.get("data", {}), **dict.fromkeys(secrets, "secret")}
    try:
        if (name := fields.get("template")) is not None:
            render.render(name, data)
        else:
            render.render_text(fields.get("text", ""), data)
    except InvalidInput as error:
        yield Finding((), str(error), error.hint or "give what the template names under `data`")
