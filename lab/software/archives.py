"""Archives of images, one in each: of what is made here, and of what was fetched.

What is made is as `docker save` writes it, with one layer; what was fetched stays as it is, blob by
blob in a layout of OCI. Both are the same bytes for the same contents.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.software import tarballs
from lab.software.tarballs import Entry

_LONG_AGO = "1970-01-01T00:00:00Z"
_PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, slots=True)
class Start:
    """What an image runs: always, and unless something else is asked for."""

    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()


def write(path: Path, name: str, arch: str, start: Start, root: Mapping[str, Entry]) -> None:
    """Write an archive with one image: its full name, and what is in its root directory."""
    layer = io.BytesIO()
    tarballs.write(layer, tarballs.with_parents(root))
    digest = _digest(layer.getvalue())
    config = _json(_config(arch, start, digest))
    manifest = {
        "Config": f"{_digest(config)}.json",
        "RepoTags": [name],
        "Layers": [f"{digest}/layer.tar"],
    }
    with path.open("wb") as file:
        tarballs.write(
            file,
            {
                f"{_digest(config)}.json": config,
                f"{digest}/layer.tar": layer.getvalue(),
                "manifest.json": _json([manifest]),
            },
        )


def write_fetched(
    path: Path, name: str, root: Mapping[str, Any], blob: Callable[[str], Path]
) -> None:
    """Write an archive with one image: its full name, its manifest, and where its blobs lie."""
    inside = json.loads(blob(root["digest"]).read_text())
    parts = (root, inside["config"], *inside["layers"])
    tag = name.rpartition(":")[2]
    annotations = {"io.containerd.image.name": name, "org.opencontainers.image.ref.name": tag}
    index = {"schemaVersion": 2, "manifests": [{**root, "annotations": annotations}]}
    blobs = (str(part["digest"]) for part in parts)
    with path.open("wb") as file:
        tarballs.write(
            file,
            {
                **{f"blobs/{digest.replace(':', '/')}": blob(digest) for digest in blobs},
                "index.json": _json(index),
                "oci-layout": _json({"imageLayoutVersion": "1.0.0"}),
            },
        )


def file_name(image: str) -> str:
    """What the archive of an image is called."""
    return f"{image.rpartition('/')[2].replace(':', '-')}.tar"


def _config(arch: str, start: Start, layer: str) -> dict[str, object]:
    runs = {"Entrypoint": [*start.entrypoint], "Cmd": [*start.command]}
    return {
        "architecture": arch,
        "os": "linux",
        "created": _LONG_AGO,
        "config": {"Env": [_PATH], **{key: words for key, words in runs.items() if words}},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{layer}"]},
        "history": [{"created": _LONG_AGO, "created_by": "kubexm's lab"}],
    }


def _json(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
