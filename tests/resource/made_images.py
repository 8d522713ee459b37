"""Small container images for tests, made in a store."""

import gzip
import io
import tarfile
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from kubexm.resource import images, layout, manifests
from kubexm.resource.images import Image
from kubexm.resource.manifests import Descriptor, Index, Manifest, Platform
from kubexm.resource.store import Store

BOTH = ("amd64", "arm64")


def digest(data: bytes) -> str:
    return f"sha256:{sha256(data).hexdigest()}"


def layer(text: bytes) -> bytes:
    """A tar with one file."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as tar:
        header = tarfile.TarInfo("content")
        header.size = len(text)
        tar.addfile(header, io.BytesIO(text))
    return file.getvalue()


def config(architecture: str, layers: Sequence[bytes]) -> bytes:
    rootfs = {"type": "layers", "diff_ids": [digest(each) for each in layers]}
    return manifests.encoded({"architecture": architecture, "os": "linux", "rootfs": rootfs})


def packed(data: bytes) -> bytes:
    return gzip.compress(data, mtime=0)


def manifest(store: Store, architecture: str, texts: Sequence[bytes]) -> Descriptor:
    """A manifest with a packed layer for each of these texts."""
    layers = [layer(text) for text in texts]
    kind = f"{manifests.OCI_LAYER}+gzip"
    document = Manifest(
        manifests.kept(config(architecture, layers), manifests.OCI_CONFIG, store),
        tuple(manifests.kept(packed(each), kind, store) for each in layers),
    )
    data = manifests.encoded(document)
    manifests.kept(data, manifests.OCI_MANIFEST, store)
    platform = Platform(architecture, "linux")
    return manifests.described(data, manifests.OCI_MANIFEST, platform)


def notes(store: Store) -> Descriptor:
    """What builders add to an index on how they have built it."""
    data = manifests.encoded(
        Manifest(manifests.kept(b"{}", manifests.OCI_CONFIG, store), layers=())
    )
    manifests.kept(data, manifests.OCI_MANIFEST, store)
    return manifests.described(data, manifests.OCI_MANIFEST, Platform("unknown", "unknown"))


def image(
    store: Store,
    name: str = "example.org/team/app:1",
    architectures: Sequence[str] = BOTH,
    *,
    text: bytes = b"hello",
    others: Sequence[Descriptor] = (),
) -> Image:
    """An image with an index; its first layer is the same for all architectures."""
    each = [manifest(store, arch, (text, text + arch.encode())) for arch in architectures]
    data = manifests.encoded(Index((*each, *others)))
    return Image(manifests.kept(data, manifests.OCI_INDEX, store), images.parse(name))


def sole(store: Store, name: str = "example.org/team/sole:1", architecture: str = "amd64") -> Image:
    """An image of one manifest, without an index."""
    found = manifest(store, architecture, (b"alone",))
    root = Descriptor(found.media_type, found.digest, found.size)
    return Image(root, images.parse(name))


def everything(found: Image, store: Store) -> dict[str, bytes]:
    """All bytes of an image by their digests."""
    inside = manifests.contents([found.root], store)
    parts = (*inside.documents, *inside.blobs)
    return {each.digest: _bytes(each.digest, store) for each in parts}


def _bytes(wanted: str, store: Store) -> bytes:
    return store.path(manifests.sha256_of(wanted)).read_bytes()


def lay_out(found: Sequence[Image], store: Store, directory: Path) -> None:
    """Have images as an OCI layout in a directory, as other tools make it."""
    file = io.BytesIO()
    layout.write_archive(found, store, file)
    file.seek(0)
    with tarfile.open(fileobj=file) as tar:
        tar.extractall(directory, filter="data")
