"""What images are called in a private registry.

There an image keeps its whole name, the registry that it comes from being the first folder:
`registry.k8s.io/pause:3.10.2` is `REGISTRY/registry.k8s.io/pause:3.10.2`, and `busybox` is
`REGISTRY/docker.io/library/busybox:latest`. So two images never get the same name, whoever knows
one name knows the other, and a mirror in containerd's configuration is one address for each
registry of the projects (`https://REGISTRY/v2/registry.k8s.io` with `override_path`), so that
manifests may keep the names of the projects too. A port is joined by `_`, which no host name has:
`mine:5000/tool:1` is `REGISTRY/mine_5000/tool:1`. What is in the private registry already keeps
its name.
"""

from __future__ import annotations

import re

from kubexm.errors import InvalidInput
from kubexm.resource.images import Reference

_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_HOST = re.compile(rf"{_LABEL}(?:\.{_LABEL})*(?::[0-9]{{1,5}})?")
_FOLDER = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_FOLDERS = re.compile(rf"{_FOLDER}(?:/{_FOLDER})*")


def private(image: Reference, registry: str) -> Reference:
    """The image in a private registry, which may have a folder: `mine.lan:5000/kube`."""
    host, folder = registry_apart(registry)
    if image.registry == host and (not folder or image.repository.startswith(f"{folder}/")):
        return image
    origin = folder_of(image.registry)
    return image.within(host, f"{folder}/{origin}" if folder else origin)


def folder_of(registry: str) -> str:
    """The folder that holds the images of another registry."""
    if _HOST.fullmatch(registry) is None:
        message = f"found the registry `{registry}`, want a host name or an IPv4 address"
        raise InvalidInput(message, hint="give the registry a name, and write that")
    return registry.lower().replace(":", "_")


def registry_apart(registry: str) -> tuple[str, str]:
    """The host of a private registry, with its port, and the folder in it, if there is one."""
    host, slash, folder = registry.partition("/")
    fits = _HOST.fullmatch(host) and (not slash or _FOLDERS.fullmatch(folder))
    if not fits:
        message = f"found `{registry[:80]}`, want a registry such as `mine.lan:5000/kube`"
        raise InvalidInput(message, hint="write host, port and folder, without `https://`")
    return host, folder
