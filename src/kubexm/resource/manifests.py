"""The documents that say what a container image is made of: manifests, and indexes of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from hashlib import file_digest, sha256
from typing import Annotated, Any, TypeVar

import msgspec

from kubexm.errors import InvalidFile, Refused
from kubexm.resource.disk import explained
from kubexm.resource.store import Store

OCI_INDEX = "application/vnd.oci.image.index.v1+json"
OCI_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
OCI_CONFIG = "application/vnd.oci.image.config.v1+json"
OCI_LAYER = "application/vnd.oci.image.layer.v1.tar"
DOCKER_INDEX = "application/vnd.docker.distribution.manifest.list.v2+json"
DOCKER_MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
INDEXES = (OCI_INDEX, DOCKER_INDEX)
MANIFESTS = (OCI_MANIFEST, DOCKER_MANIFEST)
CONFIGS = (OCI_CONFIG, "application/vnd.docker.container.image.v1+json")
TRIMMED_FROM = "io.kubexm.image.trimmed-from"
"""The annotation of an index that was trimmed: the digest that it had before."""
LARGEST_DOCUMENT = 4 << 20
"""Bytes; registries take no larger manifest either."""
DEEPEST = 3
"""Indexes in indexes; nobody has more than one in another."""

Digest = Annotated[str, msgspec.Meta(pattern=r"^sha256:[0-9a-f]{64}\Z")]
_Document = TypeVar("_Document", bound=msgspec.Struct)


class Platform(msgspec.Struct, frozen=True, omit_defaults=True):
    """The machines that a manifest is for."""

    architecture: str = ""
    os: str = ""
    variant: str = ""

    def __str__(self) -> str:
        return "/".join(filter(None, (self.os, self.architecture, self.variant)))

    def suits(self, architecture: str) -> bool:
        """Whether Linux on `amd64`, `arm64`, or with its variant `arm/v7`, can run it."""
        name, _, variant = architecture.partition("/")
        same = self.os == "linux" and self.architecture == name
        return same and variant in ("", self.variant)


class Descriptor(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """What one document says of another: its kind, its digest and its size."""

    media_type: str
    digest: Digest
    size: Annotated[int, msgspec.Meta(ge=0)]
    platform: Platform | None = None
    annotations: dict[str, str] | None = None


class Manifest(msgspec.Struct, frozen=True, rename="camel"):
    """An image for one platform."""

    config: Descriptor
    layers: tuple[Descriptor, ...]
    schema_version: int = 2
    media_type: str = OCI_MANIFEST


class Index(msgspec.Struct, frozen=True, rename="camel"):
    """An image for several platforms, one manifest each."""

    manifests: tuple[Descriptor, ...]
    schema_version: int = 2
    media_type: str = OCI_INDEX
    annotations: dict[str, str] | None = None


class Contents(msgspec.Struct, frozen=True):
    """All that an image is made of, each once."""

    documents: tuple[Descriptor, ...]
    """Manifests and indexes, each after those that it names."""
    blobs: tuple[Descriptor, ...]
    """Configurations and layers."""


class _Kind(msgspec.Struct, frozen=True, rename="camel"):
    media_type: str = ""
    schema_version: int = 0
    manifests: Any = msgspec.UNSET


def digest_of(data: bytes) -> str:
    """The digest of some bytes as images name it."""
    return f"sha256:{sha256(data).hexdigest()}"


def encoded(document: Any) -> bytes:
    """A document as bytes, always the same ones."""
    return msgspec.json.encode(document, order="sorted")


def described(data: bytes, media_type: str, platform: Platform | None = None) -> Descriptor:
    """The descriptor of some bytes."""
    return Descriptor(media_type, digest_of(data), len(data), platform)


def decoded(data: bytes, kind: type[_Document], what: str) -> _Document:
    """A document out of its bytes; `what` is how it is called if it is none."""
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidFile(
            f"{what} can't be read: {error}", hint="pull or export the image anew"
        ) from error


def sha256_of(digest: str) -> str:
    """A digest as the store has it."""
    return digest.removeprefix("sha256:")


def read(descriptor: Descriptor, store: Store) -> bytes:
    """A small document out of a store, as it has to be."""
    if descriptor.size > LARGEST_DOCUMENT:
        raise InvalidFile(f"document {descriptor.digest} is too large: {descriptor.size} bytes")
    return _document(sha256_of(descriptor.digest), store)


def require_sound(descriptor: Descriptor, store: Store) -> None:
    """Refuse what is missing or damaged in the store."""
    with store.open(digest := sha256_of(descriptor.digest)) as file:
        found = file_digest(file, "sha256").hexdigest()
    if found != digest:
        raise _damaged(digest, found, store)


def kept(data: bytes, media_type: str, store: Store) -> Descriptor:
    """Put a document into the store, unless it is there as it has to be."""
    found = described(data, media_type)
    path = store.path(sha256_of(found.digest))
    with explained(path):
        is_there = path.is_file() and path.read_bytes() == data
    if not is_there:
        store.add(data)
    return found


def keep(pieces: Iterable[bytes], digest: str, store: Store) -> None:
    """Put something large into the store that has to have this digest."""
    part = store.new_part()
    try:
        for piece in pieces:
            part.write(piece)
        store.place(part, wanted=sha256_of(digest))
    finally:
        part.close()


def described_in(store: Store, sha256: str) -> Descriptor:
    """The descriptor of a manifest or an index in the store."""
    data = _document(sha256, store)
    return described(data, kind_of(data, f"document sha256:{sha256}"))


def kind_of(data: bytes, what: str) -> str:
    """Whether some bytes are a manifest or an index, and of which kind."""
    own = decoded(data, _Kind, what)
    if own.media_type in (*INDEXES, *MANIFESTS):
        return own.media_type
    if own.schema_version == 2 and not own.media_type:  # the standard allows to leave it out
        return OCI_MANIFEST if own.manifests is msgspec.UNSET else OCI_INDEX
    raise Refused(
        f"{what} is `{own.media_type}` of schema {own.schema_version}, which is no image",
        hint="only images of OCI and of Docker's schema 2 can be used: have it pushed anew",
    )


def manifest(descriptor: Descriptor, store: Store) -> Manifest:
    """The manifest that a descriptor means."""
    return decoded(read(descriptor, store), Manifest, f"manifest {descriptor.digest}")


def index(descriptor: Descriptor, store: Store) -> Index:
    """The index that a descriptor means."""
    return decoded(read(descriptor, store), Index, f"index {descriptor.digest}")


def contents(roots: Sequence[Descriptor], store: Store) -> Contents:
    """All that images are made of, as far as their documents say."""
    documents: dict[str, Descriptor] = {}
    leaves: dict[str, Descriptor] = {}
    for root in roots:
        for document in _documents(root, store, DEEPEST):
            if document.digest in documents:
                continue
            documents[document.digest] = document
            if document.media_type not in INDEXES:
                found = manifest(document, store)
                leaves.update((leaf.digest, leaf) for leaf in (found.config, *found.layers))
    return Contents(tuple(documents.values()), tuple(leaves.values()))


def platforms(root: Descriptor, store: Store) -> tuple[tuple[Platform, Descriptor], ...]:
    """The manifests of an image, with the machines that each is for."""
    found = (each for each in _documents(root, store, DEEPEST) if each.media_type not in INDEXES)
    return tuple((each.platform or platform_of(each, store), each) for each in found)


def platform_of(descriptor: Descriptor, store: Store) -> Platform:
    """The machines that a manifest is for, as its configuration says."""
    config = manifest(descriptor, store).config
    return decoded(read(config, store), Platform, f"configuration {config.digest}")


def trimmed(data: bytes, architectures: Sequence[str], what: str) -> bytes:
    """An index without the manifests that are for other machines."""
    descriptors = decoded(data, Index, f"index of {what}").manifests
    real = [each for each in descriptors if _is_for_machines(each)]
    known = [each.platform for each in real if each.platform]
    if len(known) == len(real):
        require(known, architectures, what)
    # The notes of a builder stay only with all that they are about.
    if all(_suits_any(each, architectures) for each in real):
        return data
    return without(data, [each for each in descriptors if not _suits_any(each, architectures)])


def without(data: bytes, dropped: Sequence[Descriptor]) -> bytes:
    """An index without some of its manifests.

    Where nothing is left out, it is the same bytes, so it keeps its digest. Where something is, the
    new index tells the digest of the old one in its annotation `io.kubexm.image.trimmed-from`.
    """
    if not dropped:
        return data
    digests = {each.digest for each in dropped}
    # Fields that we don't know stay as they are.
    document = msgspec.json.decode(data)
    kept = [each for each in document["manifests"] if each["digest"] not in digests]
    annotations = {TRIMMED_FROM: digest_of(data), **(document.get("annotations") or {})}
    return encoded(
        {
            "schemaVersion": 2,
            "mediaType": OCI_INDEX,
            "manifests": kept,
            "annotations": annotations,
        }
    )


def origin(root: Descriptor, store: Store) -> str:
    """The digest that an image has where it came from; another than here if it was trimmed."""
    if root.media_type not in INDEXES:
        return root.digest
    return (index(root, store).annotations or {}).get(TRIMMED_FROM, root.digest)


def require(found: Sequence[Platform], architectures: Sequence[str], what: str) -> None:
    """Refuse an image that is not for all these machines."""
    lacking = [name for name in architectures if not any(each.suits(name) for each in found)]
    if lacking:
        there = ", ".join(sorted({str(each) for each in found})) or "no machine"
        message = f"{what} is not for {', '.join(lacking)}; it is for {there}"
        raise Refused(message, hint="name another image, or leave these architectures out")


def _document(digest: str, store: Store) -> bytes:
    with store.open(digest) as file:
        data = file.read(LARGEST_DOCUMENT + 1)
    if len(data) > LARGEST_DOCUMENT:
        raise InvalidFile(f"document sha256:{digest} is too large: more than {len(data) - 1} bytes")
    if (found := sha256(data).hexdigest()) != digest:
        raise _damaged(digest, found, store)
    return data


def _damaged(digest: str, found: str, store: Store) -> Refused:
    """Bytes in the store are not what they were; they make room for the right ones."""
    store.discard(digest)
    message = f"sha256:{digest} is damaged in the store: found sha256:{found}"
    hint = "it was thrown away; do the same once more, and it is pulled or read anew"
    return Refused(message, where=str(store.path(digest)), hint=hint)


def _documents(root: Descriptor, store: Store, depth: int) -> Iterator[Descriptor]:
    """The root and all documents below it, the root last."""
    if root.media_type in INDEXES:
        if not depth:
            raise InvalidFile(f"index {root.digest} is too deep in other indexes")
        for child in index(root, store).manifests:
            yield from _documents(child, store, depth - 1)
    elif root.media_type not in MANIFESTS:
        raise InvalidFile(
            f"{root.digest} is of a kind that is no image: `{root.media_type}`",
            hint="only images of OCI and of Docker's schema 2 can be used",
        )
    yield root


def _is_for_machines(descriptor: Descriptor) -> bool:
    """Builders add notes on how they built it as manifests for an unknown platform."""
    return descriptor.platform is None or descriptor.platform.os != "unknown"


def _suits_any(descriptor: Descriptor, architectures: Sequence[str]) -> bool:
    if descriptor.platform is None:
        return True  # who knows; whoever has its configuration looks there
    return any(descriptor.platform.suits(architecture) for architecture in architectures)
