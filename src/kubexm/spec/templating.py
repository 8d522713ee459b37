"""Templates that steps name: part of the graph by digest, and tried where all is known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kubexm.document.findings import Finding
from kubexm.errors import InvalidInput
from kubexm.spec import references
from kubexm.spec.local import SOURCE
from kubexm.templates import render
from kubexm.templates.syntax import Fault

_KINDS = ("template", "secret-template")


def digests(kind: str, fields: Mapping[str, Any]) -> dict[str, str]:
    """The digest of the template of the program that a step uses, if it does."""
    name = fields.get("template")
    if kind not in _KINDS or not isinstance(name, str) or name not in render.names():
        return {}
    return {f"template:{name}": render.digest(name)}


def unreadable(kind: str, written: Mapping[str, Any], params: Mapping[str, Any]) -> Finding | None:
    """Why the text of a template can't be read, at the parameter that brought it."""
    text = params.get("text")
    if kind not in _KINDS or not isinstance(text, str):
        return None
    plain, *rest = references.parse(text)
    if rest or not isinstance(plain, str):
        return None  # what the references come to may make it whole
    fault = render.fault(plain)
    return None if fault is None else _unreadable(fault, plain, written.get(SOURCE))


def _unreadable(fault: Fault, text: str, source: str | None) -> Finding:
    what = "the template" if source is None else f"the template `{source}`"
    path = ("text",) if source is None else (SOURCE,)
    line = text.split("\n")[fault.line - 1].strip()
    message = f"{what} can't be read, line {fault.line}: {fault.message}"
    return Finding(path, message, fault.hint, excerpt=line)


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
