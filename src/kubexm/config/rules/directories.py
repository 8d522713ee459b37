"""Rules of the directories that the file names on hosts."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from pathlib import PurePosixPath

import msgspec

from kubexm.common import layout
from kubexm.common.roles import REGISTRY
from kubexm.config.rules.rule import Declared, rule
from kubexm.document.findings import Finding, written_path
from kubexm.document.forms import Form, camel
from kubexm.document.source import DataPath

_OF_THE_SYSTEM = (
    "/", "/home", "/media", "/mnt", "/opt", "/root", "/srv", "/tmp", "/var",  # noqa: S108 not used
    "/var/backups", "/var/cache", "/var/lib", "/var/log", "/var/spool", "/var/tmp",  # noqa: S108 nor this
)  # fmt: skip
"""Directories that others have theirs in."""
_NOT_BELOW = (
    "/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/proc", "/run",
    "/sbin", "/sys", "/usr", "/var/run",
)  # fmt: skip
"""Directories that are the system's with all that is in them."""
_OF_KUBERNETES = (
    layout.KUBELET_DATA,
    layout.CNI_DATA,
    "/opt/cni",
    *layout.POD_LOGS,
    "/var/log/kubernetes",
    "/var/lib/kubexm",
)
"""Directories that Kubernetes and kubexm have for themselves; others are below `/etc`."""


@rule("directories", "etcd", "containerRuntime.root", "registry", "storage", "roleGroups")
def directories(cluster: Declared) -> Iterator[Finding]:
    """Data lie where nothing else has its own."""
    for one in _named(cluster):
        if whose := _whose(one.path):
            message = f"`{one.path}` belongs to {whose}"
            yield Finding(one.place, message, "write a directory of its own, such as `/data/NAME`")


def _whose(path: PurePosixPath) -> str:
    if str(path) in _OF_THE_SYSTEM or any(path.is_relative_to(one) for one in _NOT_BELOW):
        return "the operating system"
    met = next((one for one in _OF_KUBERNETES if _meet(path, PurePosixPath(one))), None)
    return "" if met is None else f"Kubernetes, as `{met}` does"


@rule("directories-apart", "etcd", "containerRuntime.root", "registry", "storage", "roleGroups")
def directories_apart(cluster: Declared) -> Iterator[Finding]:
    """No two keep their data in the same place, nor one inside that of the other."""
    # Whoever was given a directory is the one to be moved.
    ordered = sorted(_named(cluster), key=lambda one: one.is_written)
    for other, one in combinations(ordered, 2):
        if _meet(one.path, other.path):
            where = written_path(other.place[1:])
            message = f"`{one.path}` and `{other.path}` of `{where}` are not apart"
            yield Finding(one.place, message, "give each a directory of its own")


class _Named(msgspec.Struct, frozen=True):
    """A directory that something is kept in, and where the file says which."""

    place: DataPath
    path: PurePosixPath
    is_written: bool


def _named(cluster: Declared) -> Iterator[_Named]:
    spec = cluster.spec
    is_own = cluster.etcd_kind != "external"
    yield from _one(spec.container_runtime, "root", "containerRuntime")
    yield from _one(spec.etcd, "data_dir", "etcd") if is_own else ()
    if is_own and spec.etcd.backup.every:
        yield from _one(spec.etcd.backup, "directory", "etcd", "backup")
    if cluster.having(REGISTRY):
        yield from _one(spec.registry, "data_dir", "registry")
    if spec.storage.local_path.enabled:
        yield from _one(spec.storage.local_path, "directory", "storage", "localPath")


def _one(form: Form, name: str, *place: str) -> Iterator[_Named]:
    path = PurePosixPath(getattr(form, name))
    yield _Named(("spec", *place, camel(name)), path, form.says(name))


def _meet(one: PurePosixPath, other: PurePosixPath) -> bool:
    return one.is_relative_to(other) or other.is_relative_to(one)


RULES = (directories, directories_apart)
