"""Bundles made out of a store that has all of a bill of materials."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from kubexm.common.threads import in_thread
from kubexm.errors import InvalidInput, StepFailed
from kubexm.resource import bundle_archive, images, keys, manifests
from kubexm.resource.bundle_gather import covering
from kubexm.resource.bundle_manifest import BundledFile, BundledImage, Manifest
from kubexm.resource.bundle_steps import driven
from kubexm.resource.entries import ARCHES
from kubexm.resource.fetch import Progress
from kubexm.resource.images import Image
from kubexm.resource.manifests import Descriptor
from kubexm.resource.materials import BillOfMaterials
from kubexm.resource.store import Store


async def build(
    bill: BillOfMaterials,
    store: Store,
    path: Path,
    extra: Sequence[Image] = (),
    progress: Progress | None = None,
) -> Manifest:
    """Write a bundle with all of a bill, and these images: in place of others, or besides.

    What it holds depends on the bill and on what the things are, not on what else is in the store.
    """
    manifest = await in_thread(described, bill, store, extra)
    await driven(bundle_archive.written(manifest, store, path), path.name, manifest.size, progress)
    return manifest


def described(bill: BillOfMaterials, store: Store, extra: Sequence[Image] = ()) -> Manifest:
    """What a bundle of a bill will say of itself."""
    architectures = tuple(arch for arch in ARCHES if arch in _architectures(bill))
    artifacts = dict(_artifacts(bill, store))
    bundled = {
        image.name: _of_bill(image.name, image.architectures, store, extra) for image in bill.images
    }
    brought = {str(image.name): image for image in extra if str(image.name) not in bundled}
    bundled |= {name: _besides(image, architectures, store) for name, image in brought.items()}
    blobs = {file.sha256: file.size for file in artifacts.values()}
    for each in bundled.values():
        blobs |= {sha256: _size(sha256, store) for sha256 in each.blobs}
    return Manifest(
        kubernetes=bill.kubernetes,
        architectures=architectures,
        artifacts=dict(sorted(artifacts.items())),
        images=dict(sorted(bundled.items())),
        brought=tuple(sorted(brought)),
        blobs=dict(sorted(blobs.items())),
    )


def _architectures(bill: BillOfMaterials) -> set[str]:
    of_images = (arch for image in bill.images for arch in image.architectures)
    return {*of_images, *(file.arch for file in bill.binaries)}


def _artifacts(bill: BillOfMaterials, store: Store) -> Iterator[tuple[str, BundledFile]]:
    for file in bill.binaries:
        yield keys.of_file(file), _file(keys.of_file(file), file.file, store)
    for chart in bill.charts:
        name = f"{chart.name}-{chart.version or 'newest'}.tgz"
        yield keys.of_chart(chart), _file(keys.of_chart(chart), name, store)


def _file(key: str, name: str, store: Store) -> BundledFile:
    digest = store.find(key)
    if digest is None:
        raise StepFailed(f"`{key}` is not in the store", where=str(store.root), hint="fetch it")
    return BundledFile(digest, _size(digest, store), name)


def _of_bill(
    name: str, architectures: Iterable[str], store: Store, extra: Sequence[Image]
) -> BundledImage:
    own = covering(extra, name, architectures, store)
    image = own or images.find(images.parse(name), store)
    if image is None:
        raise StepFailed(f"`{name}` is not in the store", where=str(store.root), hint="pull it")
    return _image(image, [*architectures], store)


def _besides(image: Image, architectures: Sequence[str], store: Store) -> BundledImage:
    """An image that nobody asked for on all architectures, for those that it has of them."""
    there = [platform for platform, _ in manifests.platforms(image.root, store)]
    suiting = [arch for arch in architectures if any(each.suits(arch) for each in there)]
    if not suiting:
        found = ", ".join(sorted(map(str, there))) or "no machine"
        message = f"`{image.name}` is for {found}, want {' or '.join(architectures)}"
        raise InvalidInput(message, hint="leave it out, or name its architecture")
    return _image(image, suiting, store)


def _image(image: Image, architectures: Sequence[str], store: Store) -> BundledImage:
    root = _trimmed(image, architectures, store)
    inside, there = manifests.contents([root], store), manifests.platforms(root, store)
    manifests.require([platform for platform, _ in there], architectures, f"`{image.name}`")
    own = {
        arch: next(each for platform, each in there if platform.suits(arch))
        for arch in sorted(architectures)
    }
    blobs = {manifests.sha256_of(each.digest) for each in (*inside.documents, *inside.blobs)}
    return BundledImage(root, own, tuple(sorted(blobs)))


def _trimmed(image: Image, architectures: Sequence[str], store: Store) -> Descriptor:
    """The root of an image for these architectures alone: the store may have it for more."""
    root = image.root
    if root.media_type in manifests.INDEXES:
        data = manifests.trimmed(manifests.read(root, store), architectures, f"`{image.name}`")
        root = manifests.kept(data, manifests.kind_of(data, f"`{image.name}`"), store)
    return Descriptor(root.media_type, root.digest, root.size)


def _size(digest: str, store: Store) -> int:
    with store.open(digest) as file:
        return file.seek(0, 2)
