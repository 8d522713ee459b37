"""Steps by kind: how a class gets its name and how a stored step becomes a step again."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import inspect
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar, dataclass_transform

import msgspec

from kubexm.common.nearest import did_you_mean
from kubexm.common.secrets import SecretRef
from kubexm.errors import InvalidInput
from kubexm.step.contract import Minter, Reader, Step

S = TypeVar("S", bound=Step)
_KINDS: dict[str, type[Step]] = {}
# Hardly a pipeline has them all, and with what they need they take long to load.
_HOMES = {
    "archive": "archives",
    "artifact": "artifacts",
    "binary": "artifacts",
    "unpacked": "artifacts",
    "assert": "checks",
    "noop": "checks",
    "command": "commands",
    "kubeadm-phase": "control_plane",
    "join-token": "control_plane",
    "chart-archive": "charts",
    "data-directory": "data",
    "forgotten": "forgetting",
    "nodes-ready": "kube_nodes",
    "block": "edits",
    "line": "edits",
    "file": "files",
    "template": "files",
    "absent": "files",
    "directory": "files",
    "helm-release": "helm",
    "image": "images",
    "image-archive": "images",
    "image-pushed": "images",
    "hostname": "identity",
    "user": "identity",
    "sysctl": "kernel",
    "kernel-module": "kernel",
    "no-swap": "kernel",
    "rollout": "kube",
    "node-ready": "kube",
    "pod-networks": "kube",
    "kube-node": "kube_node",
    "kube-proxy": "kube_proxy",
    "kubeadm-init": "kubeadm",
    "kubeadm-join": "kubeadm",
    "kubeadm-reset": "kubeadm",
    "manifest": "manifests",
    "manifest-file": "manifests",
    "package": "packages",
    "preflight": "preflight",
    "authorities": "pki",
    "certificates": "pki",
    "encryption-config": "pki",
    "secret-file": "secrets",
    "secret-template": "secrets",
    "service": "services",
    "fetch": "transfers",
    "tree": "trees",
    "undone": "undoing",
    "value": "values",
    "mint": "values",
    "wait": "waits",
    "pause": "waits",
    "timezone": "zone",
}
"""The module beside this one that has the class of a kind."""


@dataclass_transform(frozen_default=True, kw_only_default=False)
def step(kind: str) -> Callable[[type[S]], type[S]]:
    """Make a class a frozen dataclass and a step of this kind."""

    def register(cls: type[S]) -> type[S]:
        frozen = dataclasses.dataclass(frozen=True)(cls)
        if kind in _KINDS or _home(kind) not in (None, cls.__module__):
            raise TypeError(f"two step classes have the kind `{kind}`")
        if "provides" in cls.__dict__ and not issubclass(cls, (Reader, Minter)):
            # A step whose precheck may be satisfied would leave nothing on the second run.
            raise TypeError(f"`{kind}` provides values but is neither a Reader nor a Minter")
        frozen.kind = kind
        _KINDS[kind] = frozen
        return frozen

    return register


class _Kinds(Mapping[str, type[Step]]):
    """Classes by kind, each loaded when it is looked at."""

    def __getitem__(self, kind: str) -> type[Step]:
        if kind not in _KINDS and (home := _home(kind)) is not None:
            import_module(home)
        return _KINDS[kind]

    def __contains__(self, kind: object) -> bool:
        return kind in _HOMES or kind in _KINDS

    def __iter__(self) -> Iterator[str]:
        return iter({**_HOMES, **_KINDS})

    def __len__(self) -> int:
        return len({**_HOMES, **_KINDS})


def _home(kind: str) -> str | None:
    return f"{__package__}.{_HOMES[kind]}" if kind in _HOMES else None


def kinds() -> Mapping[str, type[Step]]:
    """Every step class by kind."""
    return _Kinds()


def find(kind: str) -> type[Step]:
    """The class of a kind."""
    if (found := kinds().get(kind)) is None:
        raise InvalidInput(f"unknown step kind `{kind}`", hint=did_you_mean(kind, kinds()))
    return found


def load(kind: str, params: Mapping[str, Any]) -> Step:
    """The step that was stored under this kind with these parameters."""
    cls = find(kind)
    known = _parameters(kind)
    for name in params:
        if name not in known:
            raise InvalidInput(
                f"step `{kind}` has no parameter `{name}`", hint=did_you_mean(name, known)
            )
    try:
        return msgspec.convert(dict(params), cls, dec_hook=_decode)
    except (msgspec.ValidationError, TypeError, ValueError) as error:
        raise InvalidInput(
            f"step `{kind}` can't take these parameters: {error}",
            hint=getattr(error.__cause__, "hint", ""),
        ) from error


@functools.cache
def _parameters(kind: str) -> tuple[str, ...]:
    cls = find(kind)
    return tuple(item.name for item in dataclasses.fields(cls))  # type: ignore[arg-type]  # a step is one


def digest(kind: str) -> str:
    """Changes when the file of a step's code does, so that a stored graph can tell."""
    return _file_digest(inspect.getfile(find(kind)))


@functools.cache
def _file_digest(path: str) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()[:16]


def _decode(wanted: type, value: Any) -> Any:
    if wanted is SecretRef and isinstance(value, str):
        return SecretRef(value)
    raise TypeError(f"can't read a {wanted.__name__} from {value!r}")
