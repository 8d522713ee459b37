"""The kubeconfig that kubectl uses: where it lies, what it has, and what is brought into it."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

from kubexm.document import source, writing
from kubexm.document.findings import Finding, shown
from kubexm.document.source import Document
from kubexm.errors import InvalidInput, LockHeld, Problem
from kubexm.resource import disk

_LISTS = ("clusters", "users", "contexts")
_CURRENT = "current-context"
_WHAT_IT_IS = {"apiVersion": "v1", "kind": "Config"}
EMPTY: Mapping[str, Any] = {**_WHAT_IT_IS, **{name: [] for name in _LISTS}, _CURRENT: ""}
"""A kubeconfig without entries."""
_ANOTHER = "name another file by KUBECONFIG"
PATIENCE = 5.0
"""Seconds for which others may change the file: kubectl needs a moment."""
_AGAIN = 0.02


class Brought(msgspec.Struct, frozen=True):
    """What was brought into a file, and what tells it from another that is called the same."""

    path: str
    cluster: str
    """The name of its context too."""
    user: str
    known_by: str


class Known(msgspec.Struct, frozen=True):
    """What tells the entries of a cluster from those of another that is called the same."""

    cluster: str
    """The name of its context too."""
    user: str
    by: frozenset[str]
    """What its entries are known by; others may be from before it was made anew."""
    servers: frozenset[str]
    """Where its API is reached."""


def usual_place(environment: Mapping[str, str]) -> Path:
    """Where kubectl looks first."""
    given = filter(None, environment.get("KUBECONFIG", "").split(os.pathsep))
    return Path(next(given, Path.home() / ".kube" / "config"))


def brought(config: Mapping[str, Any], path: Path) -> Brought:
    """What merging a kubeconfig of one cluster brings into a file."""
    entry, user = config["clusters"][0], config["users"][0]
    return Brought(str(path), entry["name"], user["name"], _known_by(entry))


def known(config: Mapping[str, Any], before: Iterable[Brought] = ()) -> Known:
    """How the cluster of a kubeconfig is known, and by what was brought of it `before`."""
    entry, user = config["clusters"][0], config["users"][0]
    by = frozenset((_known_by(entry), *(one.known_by for one in before)))
    server = _inside(entry, "cluster").get("server")
    return Known(entry["name"], user["name"], by, frozenset([str(server)]))


def refuse_others(path: Path, ours: Known) -> None:
    """`InvalidInput` if a file has entries of other clusters under the names of this one."""
    document = _document(path)
    if document is None:
        return
    found = [*_others(_entries(document.data), ours)]
    if not found:
        return
    names = f"`{ours.cluster}` or `{ours.user}`"
    message = f"`{path}` has entries of another cluster that are called {names}"
    problems = [Problem(one.message, str(document.at(one.path)), one.hint) for one in found]
    hint = f"{_ANOTHER}; or take the other one out of this: {by_hand(path, ours)}"
    raise InvalidInput(message, problems=problems, hint=hint)


def by_hand(path: Path | str, what: Brought | Known) -> str:
    """The commands that take a cluster out of a file."""
    config = f"kubectl config --kubeconfig {path}"
    words = (
        f"delete-context {what.cluster}",
        f"delete-cluster {what.cluster}",
        f"delete-user {what.user}",
    )
    return "; ".join(f"{config} {word}" for word in words)


def merge(
    config: Mapping[str, Any],
    path: Path,
    before: Sequence[Brought] = (),
    *,
    patience: float = PATIENCE,
) -> None:
    """Bring what a kubeconfig has into another file; what else that has stays.

    `before`: what was brought of the same cluster earlier, which it replaces.
    """
    there(path)  # which may refuse: then nothing is made, no lock either
    ours = known(config, before)
    refuse_others(path, ours)
    with _locked(path, patience):
        refuse_others(path, ours)
        so_far = there(path)
        lists = {name: _joined(so_far[name], config[name]) for name in _LISTS}
        current = so_far[_CURRENT] or config[_CURRENT]
        _put(path, {**so_far, **lists, _CURRENT: current})


def remove(what: Brought, *, patience: float = PATIENCE) -> bool:
    """Take out what was brought into a file, and nothing else; whether it was still there."""
    path = Path(what.path)
    if not _has(there(path), what):
        return False
    with _locked(path, patience):
        before = there(path)
        if is_there := _has(before, what):
            _put(path, {**before, **_without(before, what)})
    return is_there


def there(path: Path) -> Mapping[str, Any]:
    """What another file has so far; `InvalidInput` if nothing can be brought into it."""
    document = _document(path)
    return EMPTY if document is None else _entries(document.data)


def _document(path: Path) -> Document | None:
    with _usable(path):
        content = _content(_target(path))
    document = source.parse(content, str(path)) if _says_anything(content) else None
    if document is None or document.data is None:
        return None
    if problems := [*_problems(document)]:
        raise InvalidInput(f"`{path}` is no kubeconfig", problems=problems, hint=_ANOTHER)
    return document


def _entries(data: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**EMPTY, **{key: value for key, value in data.items() if value is not None}}


def _others(config: Mapping[str, Any], ours: Known) -> Iterator[Finding]:
    """Entries that would be replaced, or used, and are of other clusters."""
    theirs = {one["name"] for one in config["clusters"] if not _is_ours(one, ours)}
    for number, entry in enumerate(config["clusters"]):
        if entry["name"] == ours.cluster and entry["name"] in theirs:
            server = _inside(entry, "cluster").get("server")
            yield Finding(("clusters", number), f"the cluster `{ours.cluster}` is at `{server}`")
    for number, entry in enumerate(config["contexts"]):
        context = _inside(entry, "context")
        is_named_so = entry["name"] == ours.cluster or context.get("user") == ours.user
        if context.get("cluster") in theirs and is_named_so:
            way = f"`{context.get('cluster')}` as `{context.get('user')}`"
            yield Finding(("contexts", number), f"the context `{entry['name']}` leads to {way}")


def _is_ours(entry: Mapping[str, Any], ours: Known) -> bool:
    """Whether an entry has the authority of this cluster, or leads to its place."""
    server = _inside(entry, "cluster").get("server")
    return _known_by(entry) in ours.by or str(server) in ours.servers


def _known_by(cluster: Mapping[str, Any]) -> str:
    """What an entry is recognised by: its authority, which no other cluster has, or its server."""
    place = _inside(cluster, "cluster")
    known_by = place.get("certificate-authority-data") or place.get("server")
    return sha256(str(known_by).encode()).hexdigest()


def _inside(entry: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = entry.get(key)
    return found if isinstance(found, Mapping) else {}


def _has(config: Mapping[str, Any], what: Brought) -> bool:
    same = (entry for entry in config["clusters"] if entry["name"] == what.cluster)
    return any(_known_by(entry) == what.known_by for entry in same)


def _without(config: Mapping[str, Any], what: Brought) -> dict[str, Any]:
    """What stays: also contexts of other names, and a user that one for another cluster has."""
    all_contexts = [(one, _inside(one, "context")) for one in config["contexts"]]
    contexts = [
        (one, context)
        for one, context in all_contexts
        if not one["name"] == context.get("cluster") == what.cluster
    ]
    needed = {one.get("user") for _, one in contexts if one.get("cluster") != what.cluster}
    gone = {what.user} - needed
    left = {one["name"] for one, _ in contexts}
    current = config[_CURRENT]
    return {
        "clusters": [one for one in config["clusters"] if one["name"] != what.cluster],
        "users": [one for one in config["users"] if one["name"] not in gone],
        "contexts": [one for one, _ in contexts],
        _CURRENT: "" if current == what.cluster and current not in left else current,
    }


@contextmanager
def _locked(path: Path, patience: float) -> Iterator[None]:
    """Keep others out as kubectl itself does it, by a file beside this one that only one makes."""
    lock = Path(f"{path}.lock")
    with _usable(path):
        Path(os.path.realpath(path.parent)).mkdir(parents=True, exist_ok=True, mode=0o700)
        _make(lock, path, patience)
    try:
        yield
    finally:
        with _usable(path):
            lock.unlink(missing_ok=True)


def _make(lock: Path, path: Path, patience: float) -> None:
    end = time.monotonic() + patience
    while True:
        try:
            return lock.touch(mode=0o600, exist_ok=False)
        except FileExistsError:
            if time.monotonic() >= end:
                break
            time.sleep(_AGAIN)
    message = f"another program changes `{path}`: it holds `{lock}`"
    hint = f"try again; if no kubectl runs, one was killed: remove that file, `rm {lock}`"
    raise LockHeld(message, hint=hint)


def _put(path: Path, config: Mapping[str, Any]) -> None:
    with _usable(path):
        target = _target(path)
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        disk.write_whole(target, writing.dumped(dict(config)).encode(), mode=0o600)


@contextmanager
def _usable(path: Path) -> Iterator[None]:
    """What the system says against a path is told with the path."""
    try:
        yield
    except OSError as error:
        hint = f"see to what is in the way, or {_ANOTHER}"
        raise InvalidInput(f"can't use `{path}`: {error.strerror}", hint=hint) from error


def _target(path: Path) -> Path:
    """The file that links lead to: it is written anew, and they stay."""
    return Path(os.path.realpath(path))


def _content(target: Path) -> bytes:
    """What a file holds that may be written anew: nothing, if it is not there yet."""
    above = next(place for place in target.parents if place.exists())
    if not above.is_dir():
        raise InvalidInput(f"`{above}` is no directory", hint=_ANOTHER)
    if not os.access(above, os.W_OK | os.X_OK):
        message = f"`{above}` may not be written to"
        raise InvalidInput(message, hint=f"change its mode or owner, or {_ANOTHER}")
    try:
        kind = target.lstat().st_mode
    except FileNotFoundError:
        return b""
    if not stat.S_ISREG(kind):  # also a link that leads to itself
        raise InvalidInput(f"`{target}` is no file", hint=_ANOTHER)
    return target.read_bytes()


def _says_anything(content: bytes) -> bool:
    """Whether there is more than comments: kubectl takes a file without entries."""
    lines = map(bytes.strip, content.splitlines())
    return any(line and not line.startswith(b"#") for line in lines)


def _problems(document: Document) -> Iterator[Problem]:
    """All that can't be taken over as it was meant, or is not for kubectl."""
    yield from (note.problem for note in document.notes)
    for found in _findings(document.data):
        yield Problem(found.message, str(document.at(found.path)), found.hint)


def _findings(data: Any) -> Iterator[Finding]:
    if not isinstance(data, Mapping):
        yield Finding((), f"found {shown(data)}, want a mapping")
        return
    for key, wanted in _WHAT_IT_IS.items():
        if data.get(key) not in (None, wanted):
            yield Finding((key,), f"found {shown(data[key])} as `{key}`, want `{wanted}`")
    for name in _LISTS:
        yield from (found.under(name) for found in _entry_findings(name, data.get(name)))
    if not isinstance(data.get(_CURRENT), str | None):
        yield Finding((_CURRENT,), f"found {shown(data[_CURRENT])} as `{_CURRENT}`, want a text")


def _entry_findings(name: str, entries: Any) -> Iterator[Finding]:
    if not isinstance(entries, list | None):
        yield Finding((), f"found {shown(entries)} as `{name}`, want a list")
        return
    for number, entry in enumerate(entries or ()):
        if not isinstance(entry, Mapping):
            message = f"found {shown(entry)} in `{name}`, want a mapping with a `name`"
            yield Finding((number,), message)
        elif not isinstance(entry.get("name"), str):
            called = shown(entry.get("name"))
            yield Finding((number, "name"), f"found {called} as `name` in `{name}`, want a text")


def _joined(there: Sequence[Any], new: Sequence[Any]) -> list[Any]:
    """Entries that were there and are not named anew, and the new ones."""
    names = {entry["name"] for entry in new}
    return [*(entry for entry in there if entry["name"] not in names), *new]
