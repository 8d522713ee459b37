"""Into which files of kubectl a cluster was brought, so that its end can take it out again."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from kubexm.app import kubeconfig, kubectl_config
from kubexm.app.kubectl_config import Brought, Known
from kubexm.common.about import About
from kubexm.common.paths import Home
from kubexm.document import source
from kubexm.errors import KubexmError, LockHeld, Problem, StoreUnusable
from kubexm.resource import disk

_PATIENCE = 3 * kubectl_config.PATIENCE
"""Seconds for which others may change notes: each of their files may be held by kubectl."""
_AGAIN = 0.02


def bring(home: Home, name: str, config: Mapping[str, Any], path: Path) -> None:
    """Let kubectl into a cluster by a file of its own, and note which."""
    new = kubectl_config.brought(config, path.absolute())
    _replaced(home, name, config, path)  # which may refuse: then nothing is made
    _made(home.brought)
    with _locked(home):
        before = _replaced(home, name, config, path)
        # First, since what is noted and not there does no harm.
        others = [one for one in _noted(home, name) if one not in before]
        _note(home, name, [*others, new])
        kubectl_config.merge(config, path, before)


def _replaced(home: Home, name: str, config: Mapping[str, Any], path: Path) -> list[Brought]:
    """What a file was given of the cluster so far; one that has another's entries is refused."""
    before = [one for one in _noted(home, name) if one.path == str(path.absolute())]
    kubectl_config.refuse_others(path, kubectl_config.known(config, before))
    return before


def refuse_others(home: Home, name: str, about: About, path: Path) -> None:
    """Refuse a file that has another cluster of this name, before there is a way into ours."""
    before = [one for one in _noted(home, name) if one.path == str(path.absolute())]
    by = {one.known_by for one in before}
    if (fetched := Path(about.kubeconfig)).is_file():
        by |= kubectl_config.known(source.read(fetched).data).by
    servers = frozenset((about.server, *about.servers))
    user = kubeconfig.user_of(name)
    kubectl_config.refuse_others(path, Known(name, user, frozenset(by), servers))


def take_out(home: Home, name: str) -> tuple[list[str], list[Problem]]:
    """Have kubectl forget a cluster that is no more: by which files, and why not by others."""
    gone: list[str] = []
    left: dict[Brought, Problem] = {}
    if not home.brought.exists():
        return gone, []
    try:
        with _locked(home):
            for one in _noted(home, name):
                try:
                    gone += [one.path] if kubectl_config.remove(one) else []
                except KubexmError as error:
                    left[one] = _problem(one, error)
            _note(home, name, [*left])
    except (StoreUnusable, LockHeld) as error:
        return gone, [*left.values(), Problem(str(error), hint=error.hint)]
    return gone, [*left.values()]


def _problem(one: Brought, error: KubexmError) -> Problem:
    hint = f"{error.hint}; then take it out by hand: {kubectl_config.by_hand(one.path, one)}"
    return Problem(f"`{one.cluster}` is still in `{one.path}`: {error}", hint=hint)


def _noted(home: Home, name: str) -> list[Brought]:
    path = _place(home, name)
    with _usable(path):
        if not path.exists():
            return []
        return msgspec.json.decode(path.read_bytes(), type=list[Brought])


def _note(home: Home, name: str, files: Sequence[Brought]) -> None:
    path = _place(home, name)
    with _usable(path):
        if not files:
            path.unlink(missing_ok=True)
            return
        disk.write_whole(path, msgspec.json.encode(files), mode=0o600)


def _made(directory: Path) -> None:
    with _usable(directory):
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)


@contextmanager
def _locked(home: Home) -> Iterator[None]:
    """One process at a time changes notes; the kernel frees the lock of a dead one."""
    with _usable(home.brought):
        handle = os.open(home.brought, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _await_turn(handle, home.brought)
        yield
    finally:
        os.close(handle)


def _await_turn(handle: int, directory: Path) -> None:
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            return fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                message = f"another kubexm has been changing `{directory}` for a long time"
                hint = "try again; if one is suspended, `fuser -v` on the directory names it"
                raise LockHeld(message, hint=hint) from None
        time.sleep(_AGAIN)


def _place(home: Home, name: str) -> Path:
    return home.brought / f"{name}.json"


@contextmanager
def _usable(path: Path) -> Iterator[None]:
    """What is wrong with the note is told with its place."""
    try:
        yield
    except (OSError, msgspec.DecodeError) as error:
        hint = "it says which files of kubectl know the cluster: see to it, or remove it"
        raise StoreUnusable(f"can't use `{path}`: {error}", hint=hint) from error
