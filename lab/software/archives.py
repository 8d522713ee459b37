"""Images as `docker save` writes them: one layer, and the same bytes for the same contents."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

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
