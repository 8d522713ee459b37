"""Bundles: all that a cluster needs in one file, for places without a network.

How the file looks is said in `kubexm.resource.bundle_archive`, how one is made in
`kubexm.resource.bundle_build`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from hashlib import file_digest
from pathlib import Path

from kubexm.common.counting import counted
from kubexm.common.threads import in_thread
from kubexm.errors import InvalidFile, Problem
from kubexm.resource import bundle_archive, images, keys
from kubexm.resource.bundle_archive import Damage, Hashing, Sink
from kubexm.resource.bundle_manifest import Manifest
from kubexm.resource.bundle_steps import driven
from kubexm.resource.catalog import Download
from kubexm.resource.fetch import Progress
from kubexm.resource.images import Image
from kubexm.resource.materials import BillOfMaterials
from kubexm.resource.store import Store

_LARGE = 4 << 20
"""Bytes from which on a file that is there is not read for nothing."""


def contents(path: Path) -> Manifest:
    """What is in a bundle, by a look at its beginning; `InvalidFile` if it is none."""
    return bundle_archive.head(path)


async def verify(path: Path, progress: Progress | None = None) -> list[Damage]:
    """Read all of a bundle and compare; whatever is damaged or missing."""
    manifest = await in_thread(contents, path)
    steps = bundle_archive.walked(path, manifest, _hashing)
    return await driven(steps, path.name, manifest.size, progress)


async def load(path: Path, store: Store, progress: Progress | None = None) -> Manifest:
    """Bring all of a bundle into a store, under the names by which it is asked for.

    These are names of what was loaded: nobody who uses no bundle is given anything of it.

    What is in the store already is passed over, so whoever is interrupted goes on. Of a bundle with
    damage nothing gets a name, and all of the damage is told.
    """
    manifest = await in_thread(contents, path)
    await in_thread(_require_room, manifest, store)
    steps = bundle_archive.walked(path, manifest, partial(_storing, store, manifest.blobs))
    damages = await driven(steps, path.name, manifest.size, progress)
    if damages:
        message = f"the bundle is damaged: {counted(len(damages), 'file')} of it"
        problems = [Problem(str(damage), where=damage.entry) for damage in damages]
        hint = "get the bundle anew; what is sound is in the store already"
        raise InvalidFile(message, problems=problems, where=str(path), hint=hint)
    await in_thread(_name_all, manifest, store.loaded())
    return manifest


def missing(manifest: Manifest, bill: BillOfMaterials) -> list[Problem]:
    """What a bundle lacks of a bill of materials, or has otherwise."""
    return [
        *_missing_files(manifest, bill),
        *_missing_charts(manifest, bill),
        *_missing_images(manifest, bill),
    ]


@contextmanager
def _hashing(_digest: str) -> Iterator[Sink]:
    yield Hashing()


def _require_room(manifest: Manifest, store: Store) -> None:
    lacking = sum(size for digest, size in manifest.blobs.items() if not store.has(digest))
    part = store.new_part()  # from now on there is a directory whose disk can be looked at
    try:
        store.require_room(lacking)
    finally:
        part.close()


@contextmanager
def _storing(store: Store, sizes: Mapping[str, int], digest: str) -> Iterator[Sink | None]:
    """A place in the store for a file, unless it is there as it has to be."""
    if _is_sound(digest, sizes[digest], store):
        yield None
        return
    part = store.new_part()
    try:
        yield part
        if part.digest == digest:
            store.place(part)
    finally:
        part.close()


def _is_sound(digest: str, size: int, store: Store) -> bool:
    """Whether the store has a file; a large one is read by who takes it, and checked then."""
    if not store.has(digest) or store.path(digest).stat().st_size != size:
        return False
    if size > _LARGE:
        return True
    with store.open(digest) as file:
        return file_digest(file, "sha256").hexdigest() == digest


def _name_all(manifest: Manifest, store: Store) -> None:
    for key, file in manifest.artifacts.items():
        store.claim(key, file.sha256)
    for name, image in manifest.images.items():
        images.record(Image(image.root, images.parse(name)), store)


def _missing_files(manifest: Manifest, bill: BillOfMaterials) -> Iterator[Problem]:
    for file in bill.binaries:
        found = manifest.artifacts.get(key := keys.of_file(file))
        if found is None:
            there = _other_versions(manifest, file)
            yield Problem(f"`{key}` is missing{there}: {_because(file.reasons)}")
        elif file.sha256 not in (None, found.sha256):
            yield Problem(f"`{key}` is another one: sha256 {found.sha256}, want {file.sha256}")


def _other_versions(manifest: Manifest, file: Download) -> str:
    own = keys.of_file(file).split("/")
    alike = (key.split("/") for key in manifest.artifacts)
    found = sorted(other[1] for other in alike if other[:1] + other[2:] == own[:1] + own[2:])
    return f", there is {', '.join(f'`{version}`' for version in found)}" if found else ""


def _missing_charts(manifest: Manifest, bill: BillOfMaterials) -> Iterator[Problem]:
    for chart in bill.charts:
        if keys.of_chart(chart) not in manifest.artifacts:
            what = f"`{chart.name}` `{chart.version or 'newest'}` of {chart.repository}"
            yield Problem(f"the chart {what} is missing: {_because(chart.reasons)}")


def _missing_images(manifest: Manifest, bill: BillOfMaterials) -> Iterator[Problem]:
    for image in bill.images:
        found = manifest.images.get(image.name)
        there: Mapping[str, object] = found.architectures if found is not None else {}
        lacking = [arch for arch in image.architectures if arch not in there]
        if lacking:
            what = f"the image `{image.name}` for {', '.join(lacking)}"
            yield Problem(f"{what} is missing: {_because(image.reasons)}")


def _because(reasons: tuple[str, ...]) -> str:
    return "; ".join(reasons)
