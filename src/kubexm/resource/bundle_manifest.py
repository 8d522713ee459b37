"""What a bundle says of itself: what is in it, by which name, and what each of its files is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import msgspec

from kubexm.errors import InvalidFile, Problem, UnsupportedFormat
from kubexm.resource import manifests
from kubexm.resource.entries import Sha256
from kubexm.resource.manifests import Descriptor

API_VERSION = "kubexm.io/v1alpha1"
KIND = "Bundle"
_OTHER = "ask whoever made it, or take the kubexm that made it"

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
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        message = f"its manifest can't be read: {error}"
        raise InvalidFile(message, where=where, hint="get the bundle anew") from error
    found = f"`{head.kind}` of `{head.api_version}`"
    message = f"found {found}, want a `{KIND}` of `{API_VERSION}`"
    raise UnsupportedFormat(message, where=where, hint=_OTHER)


def _required(manifest: Manifest, where: str) -> Manifest:
    problems = [*_contradictions(manifest)]
    if problems:
        message = "its manifest contradicts itself"
        raise InvalidFile(message, problems=problems, where=where, hint=_OTHER)
    return manifest


def _contradictions(manifest: Manifest) -> Iterator[Problem]:
    if list(manifest.blobs) != sorted(manifest.blobs):
        yield Problem("its blobs are in no order")
    for key, file in manifest.artifacts.items():
        if manifest.blobs.get(file.sha256) != file.size:
            yield Problem(f"`{key}` is a blob that is not there: sha256 {file.sha256}")
    for name, image in manifest.images.items():
        roots = {manifests.sha256_of(each.digest) for each in _documents(image)}
        for sha256 in sorted(roots.union(image.blobs) - manifest.blobs.keys()):
            yield Problem(f"`{name}` has a blob that is not there: sha256 {sha256}")


def _documents(image: BundledImage) -> tuple[Descriptor, ...]:
    return (image.root, *image.architectures.values())
