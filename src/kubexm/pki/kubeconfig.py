"""Kubeconfigs: documents that say where a cluster is and who calls, as data and as text."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from kubexm.common.secrets import Discreet
from kubexm.errors import InvalidInput, Problem

Document = dict[str, Any]
"""JSON data: what a parser of YAML makes of the file."""
_LISTS = ("clusters", "contexts", "users")
# What every version of YAML takes for text, in this place.
_PLAIN = re.compile(r"[A-Za-z_][\w./@+=-]*(:[\w./@+=-]+)*", re.ASCII)
_WORDS = frozenset(("y", "n", "yes", "no", "on", "off", "true", "false", "null"))
_ONE = "look at the file, or leave it out and begin with a new one"


class Access(Discreet, frozen=True):
    """Who calls which cluster; clusters that come into one file have to be named apart."""

    hidden: ClassVar[frozenset[str]] = frozenset({"key"})

    cluster: str
    server: str
    """The URL of the API."""
    user: str
    authority: bytes
    """PEM of the certificates that the server is known by."""
    certificate: bytes
    key: bytes

    @property
    def context(self) -> str:
        return f"{self.user}@{self.cluster}"


class Used(Discreet, frozen=True):
    """What a kubeconfig says of who calls whom, as far as it is in the document itself."""

    hidden: ClassVar[frozenset[str]] = frozenset({"key"})

    server: str
    authority: bytes | None
    certificate: bytes | None
    """None if it is elsewhere: a file beside it, a token, a program that fetches one."""
    key: bytes | None


def document(access: Access) -> Document:
    """The kubeconfig of one user of one cluster, with all of it inside."""
    cluster = {
        "certificate-authority-data": _encoded(access.authority),
        "server": access.server,
    }
    user = {
        "client-certificate-data": _encoded(access.certificate),
        "client-key-data": _encoded(access.key),
    }
    context = {"cluster": access.cluster, "user": access.user}
    return {
        "apiVersion": "v1",
        "clusters": [{"cluster": cluster, "name": access.cluster}],
        "contexts": [{"context": context, "name": access.context}],
        "current-context": access.context,
        "kind": "Config",
        "users": [{"name": access.user, "user": user}],
    }


def merged(existing: Mapping[str, Any], new: Mapping[str, Any]) -> Document:
    """The existing document with the clusters, contexts and users of the new one.

    Entries of the same name are replaced where they stand. The current context stays, unless
    there is none. Neither document is changed.
    """
    _require_sound(existing)
    whole = {"apiVersion": "v1", "kind": "Config", **existing}
    for name in _LISTS:
        whole[name] = _replaced(existing.get(name) or [], new.get(name) or [])
    whole["current-context"] = existing.get("current-context") or new.get("current-context", "")
    return whole


def client_certificate(found: Mapping[str, Any], context: str = "") -> bytes | None:
    """The certificate, as PEM, of who calls in a context, the current one if none is named.

    None if it is not in the document: a file beside it, a token, a program that fetches one.
    """
    _require_sound(found)
    context = context or found.get("current-context") or ""
    used = _named(found, "contexts", context).get("context") or {}
    user = _named(found, "users", used.get("user") or "").get("user") or {}
    return _decoded(user, "client-certificate-data")


def used(found: Mapping[str, Any], context: str = "") -> Used:
    """What holds in a context, the current one if none is named."""
    _require_sound(found)
    chosen = _named(found, "contexts", context or found.get("current-context") or "")
    both = chosen.get("context") or {}
    cluster = _named(found, "clusters", both.get("cluster") or "").get("cluster") or {}
    user = _named(found, "users", both.get("user") or "").get("user") or {}
    return Used(
        server=str(cluster.get("server") or ""),
        authority=_decoded(cluster, "certificate-authority-data"),
        certificate=_decoded(user, "client-certificate-data"),
        key=_decoded(user, "client-key-data"),
    )


def text(found: Mapping[str, Any]) -> str:
    """The document as YAML, in the form that kubectl writes."""
    return "".join(f"{line}\n" for line in _lines(found))


def _decoded(entry: Mapping[str, Any], name: str) -> bytes | None:
    if not (data := entry.get(name)):
        return None
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError, TypeError):
        raise InvalidInput(
            f"`{name}` is not written in base64", hint="write the kubeconfig anew"
        ) from None


def _encoded(pem: bytes) -> str:
    return base64.b64encode(pem).decode()


def _replaced(existing: list[Any], new: list[Any]) -> list[Any]:
    return [*{entry["name"]: entry for entry in (*existing, *new)}.values()]


def _named(found: Mapping[str, Any], kind: str, name: str) -> Mapping[str, Any]:
    for entry in found.get(kind) or []:
        if entry["name"] == name:
            return entry  # type: ignore[no-any-return] # it was looked at before
    raise InvalidInput(f"the kubeconfig has no `{name}` under `{kind}`", hint=_ONE)


def _require_sound(found: Mapping[str, Any]) -> None:
    if problems := [*_unsound(found)]:
        raise InvalidInput("the kubeconfig can't be used", problems=problems)


def _unsound(found: Mapping[str, Any]) -> Iterator[Problem]:
    if (said := found.get("kind", "Config")) != "Config":
        yield Problem(f"found kind `{said}`, want `Config`", hint=_ONE)
    for kind in _LISTS:
        entries = found.get(kind) or []
        if isinstance(entries, list):
            yield from _unsound_entries(kind, entries)
        else:
            yield Problem(f"`{kind}` is no list", hint=_ONE)


def _unsound_entries(kind: str, entries: list[Any]) -> Iterator[Problem]:
    seen: set[str] = set()
    for number, entry in enumerate(entries):
        where = f"{kind}[{number}]"
        if not isinstance(entry, dict) or not isinstance(name := entry.get("name"), str):
            yield Problem("has no name", where=where, hint=_ONE)
            continue
        if not isinstance(entry.get(kind.removesuffix("s")) or {}, dict):
            yield Problem(f"`{name}` says nothing of itself", where=where, hint=_ONE)
        if name in seen:
            # kubectl refuses such a file too.
            yield Problem(f"`{name}` is there once more", where=where, hint=_ONE)
        seen.add(name)


def _lines(value: Any) -> Iterator[str]:
    """A value in block style, or in one line where it has nothing inside."""
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from _headed(f"{_scalar(key)}:", inner)
    elif isinstance(value, list) and value:
        for inner in value:
            first, *others = _lines(inner)
            yield f"- {first}"
            yield from (f"  {line}" for line in others)
    else:
        yield _scalar(value)


def _headed(head: str, inner: Any) -> Iterator[str]:
    if not inner or not isinstance(inner, Mapping | list):
        yield f"{head} {_scalar(inner)}"
        return
    yield head
    # kubectl writes the entries of a list below its key, not further in.
    margin = "" if isinstance(inner, list) else "  "
    yield from (f"{margin}{line}" for line in _lines(inner))


def _scalar(value: Any) -> str:
    if not isinstance(value, str):
        return json.dumps(value)
    if _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
        return value
    return f'"{"".join(map(_escaped, value))}"'


def _escaped(letter: str) -> str:
    """As JSON has it, except where that takes two codes for one letter, which YAML has not."""
    return json.dumps(letter)[1:-1] if ord(letter) < 0x10000 else f"\\U{ord(letter):08x}"
