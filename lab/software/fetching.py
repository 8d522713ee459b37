"""Software as its projects publish it: fetched by the product, laid out as what is made here."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lab.software import archives, assembling, bundles, catalog, programs
from lab.software.progress import Told

_BLOBS = Path("data/artifacts/blobs")
"""Where the store in a home of kubexm has its files, by their sha256."""


def fetch(place: Path, home: Path, told: Told, *options: str | Path) -> None:
    """Have what a directory's cluster file asks for: the bundle, and out of it files and images.

    What has arrived when it fails stays at the home of kubexm, and the next attempt goes on there.
    """
    bundle = bundles.build_at(home, place, told, *options)
    # A bundle is packed by what this Python may not know, and the store is not packed at all.
    shown = json.loads(programs.run(bundles.kubexm(), "bundle", "show", bundle, "-o", "json"))
    _files(shown["artifacts"], home / _BLOBS, place / "files")
    _images(shown["images"], home / _BLOBS, place / "images")


def _files(found: Mapping[str, Any], blobs: Path, root: Path) -> None:
    for key, file in found.items():
        component, version, name, arch = key.split("/")
        address = catalog.read().address(component, name, version, arch)
        target = assembling.place(address, root)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(_blob(blobs, f"sha256:{file['sha256']}"), target)
        target.chmod(0o755 if catalog.read().is_program(component, name) else 0o644)


def _images(found: Mapping[str, Any], blobs: Path, root: Path) -> None:
    for name, image in found.items():
        manifest = image["architectures"][assembling.architecture()]
        path = root / archives.file_name(name)
        archives.write_fetched(path, name, manifest, lambda digest: _blob(blobs, digest))


def _blob(blobs: Path, digest: str) -> Path:
    kind, _, sum_of = digest.partition(":")
    return blobs / kind / sum_of[:2] / sum_of
