"""Images in files: OCI layouts, as a directory or a tar, and the archives of `docker save`.

All of it reads and writes files, so it belongs off the loop.
"""

from __future__ import annotations

import gzip
import tarfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from posixpath import dirname, normpath
from typing import IO, Protocol
from zlib import error as BadCompression  # noqa: N812 what it is called says nothing

import msgspec

from kubexm.errors import InvalidFile, InvalidInput, KubexmError, Problem, StepFailed
from kubexm.resource import images, kinds, manifests
from kubexm.resource.images import Image, Reference
from kubexm.resource.manifests import Descriptor, Index, Manifest
from kubexm.resource.store import Store, opened

CONTAINERD_NAME = "io.containerd.image.name"
"""The annotation from which `ctr images import` takes the name of an image."""
OCI_NAME = "org.opencontainers.image.ref.name"
_VERSION = manifests.encoded({"imageLayoutVersion": "1.0.0"})
_PIECE = 1 << 20
_MOST_LINKS = 10
_PACKED = ((b"\x1f\x8b", "+gzip"), (b"\x28\xb5\x2f\xfd", "+zstd"))
"""How the bytes of a compressed layer begin, and what is added to its kind."""
_ANEW = "export the image anew"
_WITHOUT_TAR = "it is {}, want a whole tar, plain or packed by gzip, bzip2 or xz"
_NAME = "name an OCI layout, or what `docker save` or `ctr images export` wrote"


def read(path: Path, store: Store) -> tuple[Image, ...]:
    """Take the images of a layout or an archive, which may be compressed, into a store."""
    with _opened(path) as files:
        if files.has("index.json"):
            return _oci_images(files, store)
        if files.has("manifest.json"):
            return _docker_images(files, store)
        is_whole = files.is_whole()
    if not is_whole:
        raise InvalidFile("it is no whole tar: it is cut off", where=str(path), hint=_ANEW)
    raise InvalidFile(
        "found neither `index.json` nor `manifest.json` in it, so it holds no images",
        where=str(path),
        hint=_NAME,
    )


def write_archive(found: Sequence[Image], store: Store, file: IO[bytes]) -> None:
    """Write images as the tar of an OCI layout: the same images, the same bytes."""
    _write_tar(_oci_entries(found, store), store, file)


class _Files(Protocol):
    """A directory or an archive, as names of files."""

    where: str

    def has(self, name: str) -> bool: ...

    def open(self, name: str) -> IO[bytes]: ...

    def place(self, name: str) -> int:
        """What is read in this order is read fast."""

    def is_whole(self) -> bool:
        """Whether what is not in it may not have been cut off."""


class _Directory:
    def __init__(self, root: Path) -> None:
        self.where = str(root)
        self._root = root

    def has(self, name: str) -> bool:
        return (self._root / name).is_file()

    def open(self, name: str) -> IO[bytes]:
        try:
            return (self._root / name).open("rb")
        except OSError as error:
            message = f"can't read `{name}`: {error.strerror}"
            raise InvalidFile(message, where=self.where, hint=_ANEW) from error

    def place(self, name: str) -> int:
        return 0

    def is_whole(self) -> bool:
        return True


class _Archive:
    def __init__(self, path: Path, tar: tarfile.TarFile) -> None:
        self.where = str(path)
        self._tar = tar
        self._members = {normpath(member.name): member for member in tar}

    def has(self, name: str) -> bool:
        return self._member(name) is not None

    def open(self, name: str) -> IO[bytes]:
        member = self._member(name)
        file = None if member is None else self._tar.extractfile(member)
        if file is None:
            raise InvalidFile(f"there is no `{name}` in it", where=self.where, hint=_ANEW)
        return file

    def place(self, name: str) -> int:
        member = self._member(name)
        return 0 if member is None else member.offset_data

    def is_whole(self) -> bool:
        file = self._tar.fileobj
        assert file is not None
        file.seek(self._tar.offset)
        return file.read(tarfile.BLOCKSIZE) == bytes(tarfile.BLOCKSIZE)

    def _member(self, name: str) -> tarfile.TarInfo | None:
        """The file of this name; Docker writes a layer once, and links for its other uses."""
        name = normpath(name)
        for _ in range(_MOST_LINKS):
            member = self._members.get(name)
            if member is None or member.isreg():
                return member
            if member.issym():
                name = normpath(f"{dirname(name)}/{member.linkname}")
            elif member.islnk():
                name = normpath(member.linkname)
            else:
                return None
        return None


class _Entry(msgspec.Struct, frozen=True):
    """A file that is written: bytes that we have made, or some of the store."""

    name: str
    content: bytes | Descriptor

    @property
    def size(self) -> int:
        return len(self.content) if isinstance(self.content, bytes) else self.content.size

    @contextmanager
    def opened(self, store: Store) -> Iterator[IO[bytes]]:
        """Its bytes, if they are what they have to be."""
        if isinstance(self.content, bytes):
            yield BytesIO(self.content)
            return
        # Beforehand: what is in a stream can't be taken back.
        manifests.require_sound(self.content, store)
        with store.open(manifests.sha256_of(self.content.digest)) as file:
            yield file


class _Saved(msgspec.Struct, frozen=True, rename="pascal"):
    """One image in the `manifest.json` of an archive."""

    config: str
    layers: tuple[str, ...]
    repo_tags: tuple[str, ...] | None = None


class _RootFs(msgspec.Struct, frozen=True):
    diff_ids: tuple[str, ...] = ()


class _Config(msgspec.Struct, frozen=True):
    rootfs: _RootFs = _RootFs()


class _Layer(msgspec.Struct, frozen=True):
    descriptor: Descriptor
    diff_id: str
    """Of what is packed in it; empty if we can't unpack it."""


@contextmanager
def _opened(path: Path) -> Iterator[_Files]:
    if path.is_dir():
        yield _Directory(path)
        return
    try:
        with _file(path) as file, _tar(path, file) as tar:
            yield _Archive(path, tar)
    except (tarfile.TarError, BadCompression, EOFError) as error:
        raise InvalidFile(f"it is no whole tar: {error}", where=str(path), hint=_ANEW) from error
    except OSError as error:
        message = f"can't read it: {error.strerror or error}"
        raise InvalidFile(message, where=str(path), hint=_ANEW) from error


def _file(path: Path) -> IO[bytes]:
    try:
        return opened(path)
    except StepFailed as error:
        raise InvalidFile(error.message, where=str(path), hint=error.hint) from error


def _tar(path: Path, file: IO[bytes]) -> tarfile.TarFile:
    try:
        return tarfile.open(fileobj=file)
    except tarfile.ReadError as error:
        file.seek(0)
        message = _WITHOUT_TAR.format(found := kinds.called(file.read(tarfile.BLOCKSIZE)))
        if found == kinds.ZSTD:
            message += "; out of a bundle no images are taken"
        raise InvalidFile(message, where=str(path), hint=_NAME) from error


def _oci_images(files: _Files, store: Store) -> tuple[Image, ...]:
    index = manifests.decoded(_small(files, "index.json"), Index, f"`index.json` of {files.where}")
    found = tuple(
        Image(_taken(each, files, store, manifests.DEEPEST), _name_in(each))
        for each in index.manifests
    )
    leaves = manifests.contents([image.root for image in found], store).blobs
    for leaf in sorted(leaves, key=lambda leaf: files.place(_blob(leaf.digest))):
        _take(files, _blob(leaf.digest), leaf.digest, store)
    return found


def _taken(root: Descriptor, files: _Files, store: Store, depth: int) -> Descriptor:
    """Take a document and those below it; what was exported for one platform lacks the others."""
    _take(files, _blob(root.digest), root.digest, store)
    root = msgspec.structs.replace(root, annotations=None)
    if root.media_type not in manifests.INDEXES or not depth:
        return root
    data = manifests.read(root, store)
    children = manifests.index(root, store).manifests
    lacking = [child for child in children if not files.has(_blob(child.digest))]
    if lacking == list(children) and children:
        raise InvalidFile(f"no manifest of {root.digest} is in it", where=files.where, hint=_ANEW)
    for child in children:
        if child not in lacking:
            _taken(child, files, store, depth - 1)
    data = manifests.without(data, lacking)
    return manifests.kept(data, manifests.OCI_INDEX, store) if lacking else root


def _name_in(descriptor: Descriptor) -> Reference | None:
    """The name in the annotations; many tools write the tag alone, which names nothing."""
    annotations = descriptor.annotations or {}
    name = annotations.get(CONTAINERD_NAME) or annotations.get(OCI_NAME, "")
    return images.parse(name) if "/" in name or ":" in name else None


def _docker_images(files: _Files, store: Store) -> tuple[Image, ...]:
    data = _small(files, "manifest.json")
    try:
        saved = msgspec.json.decode(data, type=tuple[_Saved, ...])
    except (msgspec.DecodeError, RecursionError) as error:
        message = f"`manifest.json` can't be read: {error}"
        raise InvalidFile(message, where=files.where, hint=_ANEW) from error
    names = sorted({name for each in saved for name in each.layers}, key=files.place)
    layers = {name: _layer(files, name, store) for name in names}
    return tuple(image for each in saved for image in _saved_images(each, layers, files, store))


def _saved_images(
    saved: _Saved, layers: dict[str, _Layer], files: _Files, store: Store
) -> Iterator[Image]:
    """One image of an archive, once for each of its names."""
    config = _small(files, saved.config)
    own = [layers[name] for name in saved.layers]
    _require_layers(config, own, saved, files.where)
    manifest = Manifest(
        manifests.kept(config, manifests.OCI_CONFIG, store),
        tuple(layer.descriptor for layer in own),
    )
    root = manifests.kept(manifests.encoded(manifest), manifests.OCI_MANIFEST, store)
    for tag in saved.repo_tags or (None,):
        yield Image(root, None if tag is None else images.parse(tag))


def _require_layers(config: bytes, layers: Sequence[_Layer], saved: _Saved, where: str) -> None:
    """The configuration tells what is in each layer; nobody can unpack the image otherwise."""
    wanted = manifests.decoded(config, _Config, f"`{saved.config}` of {where}").rootfs.diff_ids
    if len(wanted) != len(layers):
        message = f"`{saved.config}` tells of {len(wanted)} layers, found {len(layers)}"
        raise InvalidFile(message, where=where, hint=_ANEW)
    problems = [
        Problem(f"`{name}` is damaged: found {layer.diff_id}, want {diff_id}")
        for name, layer, diff_id in zip(saved.layers, layers, wanted, strict=True)
        if layer.diff_id not in ("", diff_id)
    ]
    if problems:
        message = "its layers are not what its configuration tells"
        raise InvalidFile(message, problems=problems, where=where, hint=_ANEW)


def _layer(files: _Files, name: str, store: Store) -> _Layer:
    with files.open(name) as file:
        packed = next((kind for magic, kind in _PACKED if _begins(file, magic)), "")
        digest = _digest_of(file)
        size = file.tell()
    _take(files, name, digest, store)
    descriptor = Descriptor(manifests.OCI_LAYER + packed, digest, size)
    return _Layer(descriptor, _diff_id(digest, packed, store))


def _diff_id(digest: str, packed: str, store: Store) -> str:
    if packed == "+gzip":
        with gzip.open(store.path(manifests.sha256_of(digest))) as file:
            return _digest_of(file)
    return "" if packed else digest


def _begins(file: IO[bytes], magic: bytes) -> bool:
    file.seek(0)
    found = file.read(len(magic))
    file.seek(0)
    return found == magic


def _take(files: _Files, name: str, digest: str, store: Store) -> None:
    """Bring a file into the store, if it is what it has to be."""
    if store.has(manifests.sha256_of(digest)):
        return
    with files.open(name) as file:
        if (found := _digest_of(file)) != digest:
            message = f"`{name}` is damaged: found {found}"
            raise InvalidFile(message, where=files.where, hint=_ANEW)
        file.seek(0)
        manifests.keep(_pieces(file), digest, store)


def _small(files: _Files, name: str) -> bytes:
    with files.open(name) as file:
        data = file.read(manifests.LARGEST_DOCUMENT + 1)
    if len(data) > manifests.LARGEST_DOCUMENT:
        message = f"`{name}` is larger than {manifests.LARGEST_DOCUMENT} bytes"
        raise InvalidFile(message, where=files.where, hint=_ANEW)
    return data


def _oci_entries(found: Sequence[Image], store: Store) -> Iterator[_Entry]:
    """The files of a layout; the index, without which it is none, comes last."""
    inside = manifests.contents([image.root for image in found], store)
    every = {each.digest: each for each in (*inside.documents, *inside.blobs)}
    yield _Entry("oci-layout", _VERSION)
    for digest in sorted(every):
        yield _Entry(_blob(digest), every[digest])
    yield _Entry("index.json", manifests.encoded(_named_index(found)))


def _named_index(found: Sequence[Image]) -> Index:
    named = {name: image.root for image in found for name in _names(image)}
    if len(named) != sum(len(_names(image)) for image in found):
        raise _twice(found)
    return Index(
        tuple(
            msgspec.structs.replace(root, annotations=_annotations(name))
            for name, root in sorted(named.items())
        )
    )


def _names(image: Image) -> tuple[str, ...]:
    """What it is looked up by; containerd leaves the tag out where there is a digest."""
    if (name := image.name) is None:
        return (image.root.digest,)
    forms = ((name.tag, ""), ("", name.digest))
    return tuple(
        str(msgspec.structs.replace(name, tag=tag, digest=digest))
        for tag, digest in forms
        if tag or digest
    )


def _annotations(name: str) -> dict[str, str] | None:
    if name.startswith("sha256:"):
        return None
    return {CONTAINERD_NAME: name, OCI_NAME: name.rpartition("/")[2].rpartition(":")[2]}


def _twice(found: Sequence[Image]) -> KubexmError:
    names = [name for image in found for name in _names(image)]
    problems = [Problem(f"`{name}`") for name in sorted(set(names)) if names.count(name) > 1]
    return InvalidInput(
        "several images have the same name", problems=problems, hint="name each of them once"
    )


def _write_tar(entries: Iterator[_Entry], store: Store, file: IO[bytes]) -> None:
    with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for entry in entries:
            # Time, owner and mode are those of nobody in particular, and always the same.
            header = tarfile.TarInfo(entry.name)
            header.size = entry.size
            with entry.opened(store) as source:
                tar.addfile(header, source)


def _blob(digest: str) -> str:
    return f"blobs/{digest.replace(':', '/')}"


def _digest_of(file: IO[bytes] | gzip.GzipFile) -> str:
    digest = sha256()
    for piece in _pieces(file):
        digest.update(piece)
    return f"sha256:{digest.hexdigest()}"


def _pieces(file: IO[bytes] | gzip.GzipFile) -> Iterator[bytes]:
    return iter(lambda: file.read(_PIECE), b"")
