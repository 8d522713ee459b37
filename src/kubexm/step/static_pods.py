"""The pods of a control plane, which its kubelet runs by files: whether they run as those say."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec

from kubexm.common import layout
from kubexm.errors import StepFailed
from kubexm.runner import files, kubectl, workloads
from kubexm.runner.host import Host
from kubexm.runner.kubectl import Object
from kubexm.templates import formats

NAMES = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
SECONDS = 180.0
"""More than a member of etcd and an API server take one after the other."""
_INTERVAL = 1.0


_HASH = "kubernetes.io/config.hash"
"""By it a kubelet tells, of each pod, which file it has read."""


class Before(msgspec.Struct, frozen=True):
    """A pod as it was before its file may have been written anew."""

    written: Object
    hash: str
    """Of the file that it ran by; nothing if nobody knew."""


async def noted(host: Host, *, sudo: bool | None) -> dict[str, Before]:
    """How those are of which there are files, to be told from what comes of new settings."""
    files_ = await _files(host, sudo)
    try:
        pods = await _running(host, sudo) if files_ else {}
    except StepFailed:
        pods = {}  # no API server answers, and new settings may be what it wants
    return {name: Before(pod, _hash(pods.get(name))) for name, pod in files_.items()}


async def awaited(host: Host, before: Mapping[str, Before], *, sudo: bool | None) -> None:
    """Return when all of them run as their files say, so that others may be restarted next."""
    wanted = await _files(host, sudo)
    why = ""
    try:
        async with asyncio.timeout(SECONDS):
            while wanted:
                why = await _behind(host, wanted, before, sudo)
                if not why:
                    return
                await asyncio.sleep(_INTERVAL)
    except TimeoutError:
        hint = "look at it on the host: `journalctl -u kubelet`, /var/log/pods"
        raise StepFailed(f"after {SECONDS:g} s: {why}", hint=hint) from None


async def _files(host: Host, sudo: bool | None) -> dict[str, Object]:
    found = {name: await _written(host, name, sudo) for name in NAMES}
    return {name: pod for name, pod in found.items() if pod is not None}


async def _written(host: Host, name: str, sudo: bool | None) -> Object | None:
    text = await files.read(host, f"{layout.MANIFESTS}/{name}.yaml", sudo=sudo)
    return None if text is None else formats.parsed(text.decode(), "yaml")


async def _behind(
    host: Host, wanted: Mapping[str, Object], before: Mapping[str, Before], sudo: bool | None
) -> str:
    """What does not run as its file says; nothing if all does."""
    try:
        pods = await _running(host, sudo)
    except StepFailed as error:
        return error.message
    troubles = (
        trouble(name, pod, pods.get(name), before.get(name)) for name, pod in wanted.items()
    )
    return next(filter(None, troubles), "")


async def _running(host: Host, sudo: bool | None) -> dict[str, Object]:
    there = ("--field-selector", f"spec.nodeName={host.name}")
    found = await kubectl.get(host, "pods", "-n", "kube-system", *there, sudo=sudo)
    return {pod["metadata"]["name"].removesuffix(f"-{host.name}"): pod for pod in found}


def trouble(name: str, written: Object, pod: Object | None, before: Before | None) -> str:
    """Why a pod does not run as its file says; nothing if it does."""
    if pod is None:
        return f"there is no pod of {name}"
    is_old = before is not None and written != before.written and before.hash == _hash(pod) != ""
    # An attempt that was cut off has left nothing to compare with but the pod itself.
    is_other = _program(pod) != _program(written)
    if is_old or is_other or not _marks(written).items() <= _marks(pod).items():
        return f"{name} runs with its old settings"
    return "; ".join(workloads.troubles(pod))


def _hash(pod: Object | None) -> str:
    return "" if pod is None else _marks(pod).get(_HASH, "")


def _program(pod: Object) -> tuple[Any, Any]:
    first = pod["spec"]["containers"][0]
    return first["image"], first["command"]


def _marks(pod: Object) -> Mapping[str, str]:
    """Annotations: ours stand for files that no kubelet looks at, and it adds some of its own."""
    found: Mapping[str, str] = pod["metadata"].get("annotations") or {}
    return found
