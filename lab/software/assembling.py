"""Files as their projects publish them, and images, out of the parts."""

from __future__ import annotations

import hashlib
import platform
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from lab.errors import LabError
from lab.software import archives, catalog, debian, programs, recipe, tarballs
from lab.software.building import Workshop
from lab.software.choosing import Choice
from lab.software.progress import Told
from lab.software.recipe import FileRecipe, ImageRecipe
from lab.software.tarballs import Directory, Entry, Link

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_BUSYBOX = "usr/bin/busybox"
_USERS = ("root:x:0:0::/root:/bin/sh", "www-data:x:33:33::/:", "nobody:x:65534:65534::/:")
_GROUPS = ("root:x:0:", "www-data:x:33:", "nogroup:x:65534:")
_EVERYWHERE: dict[str, Entry] = {
    "etc/passwd": "".join(f"{line}\n" for line in _USERS).encode(),
    "etc/group": "".join(f"{line}\n" for line in _GROUPS).encode(),
    "tmp": Directory(0o1777),
}
_MERGED: dict[str, Entry] = {name: Link(f"usr/{name}") for name in ("bin", "sbin", "lib", "lib64")}


@dataclass(frozen=True, slots=True)
class Made:
    """A file that was made, as the catalog calls it."""

    choice: Choice
    name: str
    address: str
    sha256: str


def architecture() -> str:
    """What this machine is called by those who publish programs."""
    found = _ARCHITECTURES.get(platform.machine())
    if found is None:
        raise LabError(
            f"found a machine of the kind `{platform.machine()}`, want x86_64 or aarch64"
        )
    return found


def files(workshop: Workshop, root: Path) -> list[Made]:
    """Have all files in a directory, each at the path that it has at its site."""
    return [
        _file(workshop, each, choice, root)
        for each in recipe.FILES
        for choice in workshop.choices.of(each.component)
    ]


def place(address: str, root: Path) -> Path:
    """Where a file lies that is published at an address."""
    parts = urlsplit(address)
    return root / parts.netloc / parts.path.removeprefix("/")


def images(workshop: Workshop, root: Path, told: Told) -> None:
    """Have all images in a directory, as archives."""
    root.mkdir()
    for number, each in enumerate(recipe.IMAGES, 1):
        name = image_name(workshop, each)
        told(f"image {number} of {len(recipe.IMAGES)}: {name}")
        file = root / archives.file_name(name)
        archives.write(file, name, architecture(), each.start, contents(workshop, each))


def image_name(workshop: Workshop, image: ImageRecipe) -> str:
    """The name by which the product asks for it."""
    choices = workshop.choices
    version = choices.etcd if image.component == "etcd" else choices.version(image.component)
    busybox = choices.version("busybox")
    return catalog.read().image(image.component, image.name, version, busybox=busybox)


def contents(workshop: Workshop, image: ImageRecipe) -> dict[str, Entry]:
    """What is in the root directory of an image."""
    found = dict(_EVERYWHERE)
    if image.built:
        part = workshop.part(_choice(workshop, image))
        found |= {target: part / name for target, name in image.built.items()}
    if image.debian or image.has_shell:
        found |= _MERGED
    for path in (*image.debian, *_loaded(workshop.debian, image)):
        found |= _with_libraries(workshop.debian, path)
    if image.has_shell:
        found |= _shell(workshop.debian)
    found |= {name: Link(target) for name, target in image.links.items()}
    found |= {name: Directory() for name in image.directories}
    return found | {name: text.encode() for name, text in image.texts.items()}


def _file(workshop: Workshop, file: FileRecipe, choice: Choice, root: Path) -> Made:
    part, arch = workshop.part(choice), architecture()
    address = catalog.read().address(file.component, file.name, choice.version, arch)
    target = place(address, root)
    target.parent.mkdir(parents=True, exist_ok=True)
    if "" in file.members:
        shutil.copyfile(part / file.members[""], target)
        target.chmod(0o755)
    else:
        values = {"version": choice.version, "arch": arch}
        members = {name.format(**values): part / each for name, each in file.members.items()}
        tarballs.write_packed(target, members)
    return Made(choice, file.name, address, _sha256(target))


def _choice(workshop: Workshop, image: ImageRecipe) -> Choice:
    """Of etcd there may be two: the image is of the one that kubeadm runs."""
    first, *others = workshop.choices.of(image.component)
    wanted = workshop.choices.etcd
    return next((each for each in others if each.version == wanted), first) if others else first


def _with_libraries(root: Path, path: str) -> dict[str, Entry]:
    """A program of Debian, or what one loads, with its libraries."""
    link = debian.loader_link(root)
    found: dict[str, Entry] = {path: root / path, _in(root, link): Link(str(link.readlink()))}
    return found | {_in(root, each): each for each in debian.libraries(root, root / path)}


def _shell(root: Path) -> dict[str, Entry]:
    names = programs.run(root / _BUSYBOX, "--list").split()
    links = {f"usr/bin/{name}": Link("busybox") for name in names}
    return {**links, _BUSYBOX: root / _BUSYBOX, "usr/sbin": Directory(), "usr/lib": Directory()}


def _loaded(root: Path, image: ImageRecipe) -> Iterator[str]:
    for pattern in image.loaded:
        yield from (_in(root, path) for path in root.glob(pattern))


def _in(root: Path, path: Path) -> str:
    return str(path.relative_to(root))


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
