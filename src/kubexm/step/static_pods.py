"""The pods of a control plane, which its kubelet runs by files: whether they run as those say."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

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


async def awaited(host: Host, *, sudo: bool | None) -> None:
    """Return when all of them run as their files say, so that others may be restarted next."""
    files_ = {name: await _written(host, name, sudo) for name in NAMES}
    wanted = {name: pod for name, pod in files_.items() if pod is not None}
    why = ""
    try:
        async with asyncio.timeout(SECONDS):
            while wanted:
                why = await _behind(host, wanted, sudo)
                if not why:
                    return
                await asyncio.sleep(_INTERVAL)
    except TimeoutError:
        hint = "look at it on the host: `journalctl -u kubelet`, /var/log/pods"
        raise StepFailed(f"after {SECONDS:g} s: {why}", hint=hint) from None


async def _written(host: Host, name: str, sudo: bool | None) -> Object | None:
    text = await files.read(host, f"{layout.MANIFESTS}/{name}.yaml", sudo=sudo)
    return None if text is None else formats.parsed(text.decode(), "yaml")


async def _behind(host: Host, wanted: Mapping[str, Object], sudo: bool | None) -> str:
    """What does not run as its file says; nothing if all does."""
    there = ("--field-selector", f"spec.nodeName={host.name}")
    try:
        found = await kubectl.get(host, "pods", "-n", "kube-system", *there, sudo=sudo)
    except StepFailed as error:
        return error.message
    pods = {pod["metadata"]["name"].removesuffix(f"-{host.name}"): pod for pod in found}
    troubles = (_trouble(name, pod, pods.get(name)) for name, pod in wanted.items())
    return next(filter(None, troubles), "")


def _trouble(name: str, written: Object, pod: Object | None) -> str:
    if pod is None:
        return f"there is no pod of {name}"
    if _program(pod) != _program(written) or not _marks(written).items() <= _marks(pod).items():
        return f"{name} runs with its old settings"
    return "; ".join(workloads.troubles(pod))


def _program(pod: Object) -> tuple[Any, Any]:
    first = pod["spec"]["containers"][0]
    return first["image"], first["command"]


def _marks(pod: Object) -> Mapping[str, str]:
    """Annotations: ours stand for files that no kubelet looks at, and it adds some of its own."""
    found: Mapping[str, str] = pod["metadata"].get("annotations") or {}
    return found
