"""What a bundle says of itself: what is in it, by which name, and what each of its files is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated

import msgspec

from kubexm.errors import InvalidFile, InvalidInput, Problem, UnsupportedFormat
from kubexm.resource import images, manifests
from kubexm.resource.entries import Sha256
from kubexm.resource.manifests import Descriptor

API_VERSION = "kubexm.io/v1alpha1"
KIND = "Bundle"
_OTHER = "ask whoever made it, or take the kubexm that made it"

_VERSION = r"v?[0-9][0-9A-Za-z.+_-]*"
_NAME = "[a-z][a-z0-9-]*"
_KEY = re.compile(rf"chart/[^/].*/[^/]+/[^/]*|{_NAME}/{_VERSION}/{_NAME}(?:/[a-z0-9]+)?")
"""See `kubexm.resource.keys`."""
Size = Annotated[int, msgspec.Meta(ge=0)]


class BundledFile(msgspec.Struct, frozen=True):
    """A program, an archive or a chart."""

    sha256: Sha256
    size: Size
    file: str
    """What it is called where it comes from."""


class BundledImage(msgspec.Struct, frozen=True):
    """An image: the root under its name, its manifest for each architecture, and all its blobs."""

    root: Descriptor
    architectures: dict[str, Descriptor]
    blobs: tuple[Sha256, ...]


class Manifest(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """All of a bundle."""

    api_version: str = API_VERSION
    kind: str = KIND
    kubernetes: tuple[str, ...]
    architectures: tuple[str, ...]
    artifacts: dict[str, BundledFile]
    """By the keys of `kubexm.resource.keys`."""
    images: dict[str, BundledImage]
    """By their full names."""
    brought: tuple[str, ...] = ()
    """The images that no cluster file names, and somebody brought nevertheless."""
    blobs: dict[Sha256, Size]
    """Every file that follows, in this order."""

    @property
    def size(self) -> int:
        """Bytes of all that is in it, unpacked."""
        return sum(self.blobs.values())

    def users(self, sha256: str) -> tuple[str, ...]:
        """The keys of files and the names of images that a blob is of."""
        files = (key for key, file in self.artifacts.items() if file.sha256 == sha256)
        images = (name for name, image in self.images.items() if sha256 in image.blobs)
        return (*files, *images)


class _Head(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str = ""
    kind: str = ""


def encoded(manifest: Manifest) -> bytes:
    """A manifest as bytes, always the same ones."""
    return msgspec.json.format(msgspec.json.encode(manifest, order="sorted"), indent=1) + b"\n"


def decoded(data: bytes, where: str) -> Manifest:
    """A manifest out of its bytes, if it is one that names all that it needs."""
    try:
        head = msgspec.json.decode(data, type=_Head)
        if (head.api_version, head.kind) == (API_VERSION, KIND):
            return _required(msgspec.json.decode(data, type=Manifest), where)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        message = f"its manifest can't be read: {error}"
        raise InvalidFile(message, where=where, hint="get the bundle anew") from error
    found = f"{quoted(head.kind)} of {quoted(head.api_version)}"
    message = f"found {found}, want a `{KIND}` of `{API_VERSION}`"
    raise UnsupportedFormat(message, where=where, hint=_OTHER)


def quoted(text: str) -> str:
    """What somebody else wrote, as a terminal can show it."""
    shown = "".join(
        letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text
    )
    return f"`{shown[:300]}`"


def _required(manifest: Manifest, where: str) -> Manifest:
    problems = [*_contradictions(manifest)]
    if problems:
        message = "its manifest contradicts itself"
        raise InvalidFile(message, problems=problems, where=where, hint=_OTHER)
    return manifest


def _contradictions(manifest: Manifest) -> Iterator[Problem]:
    if list(manifest.blobs) != sorted(manifest.blobs):
        yield Problem("its blobs are in no order")
    for text in (*manifest.kubernetes, *manifest.architectures):
        if not text.isprintable():
            yield Problem(f"found {quoted(text)}, which can't be shown")
    for name in sorted(set(manifest.brought) - manifest.images.keys()):
        yield Problem(f"{quoted(name)} was brought, and is not there")
    yield from _of_files(manifest)
    for name, image in manifest.images.items():
        yield from _of_image(name, image, manifest)


def _of_files(manifest: Manifest) -> Iterator[Problem]:
    for key, file in manifest.artifacts.items():
        if not (key.isprintable() and _KEY.fullmatch(key)):
            yield Problem(f"{quoted(key)} is the key of no file and no chart")
        if manifest.blobs.get(file.sha256) != file.size:
            yield Problem(f"{quoted(key)} is a blob that is not there: sha256 {file.sha256}")


def _of_image(name: str, image: BundledImage, manifest: Manifest) -> Iterator[Problem]:
    if not _is_name(name):
        yield Problem(f"{quoted(name)} is no name of an image")
    if not all(map(str.isprintable, image.architectures)):
        yield Problem(f"{quoted(name)} is for machines whose names can't be shown")
    for sha256 in sorted(set(image.blobs) - manifest.blobs.keys()):
        yield Problem(f"{quoted(name)} has a blob that is not there: sha256 {sha256}")
    yield from _of_documents(quoted(name), image)


def _of_documents(name: str, image: BundledImage) -> Iterator[Problem]:
    if image.root.media_type not in (*manifests.INDEXES, *manifests.MANIFESTS):
        yield Problem(f"{name} is none: {quoted(image.root.media_type)}")
    for document in image.architectures.values():
        if document.media_type not in manifests.MANIFESTS:
            yield Problem(f"{name} has a manifest that is none: {quoted(document.media_type)}")
    for document in (image.root, *image.architectures.values()):
        if (sha256 := manifests.sha256_of(document.digest)) not in image.blobs:
            yield Problem(f"{name} has a manifest that is none of its blobs: sha256 {sha256}")


def _is_name(text: str) -> bool:
    try:
        images.parse(text)
    except InvalidInput:
        return False
    return True
