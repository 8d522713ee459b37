"""All of it: versions are chosen, parts built, files and images assembled, a bundle made."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lab.errors import LabError
from lab.requirements import Missing
from lab.software import assembling, bundles, catalog, choosing, fetching, overlay, parts, recipe
from lab.software.building import Workshop
from lab.software.choosing import Asked, Choices
from lab.software.debian import Archive
from lab.software.progress import Told

PROGRAMS = {
    "go": "golang-go, or from go.dev: as new as Kubernetes asks for",
    "gcc": "gcc",
    "pkg-config": "pkg-config",
    "apt-get": "apt",
    "dpkg-deb": "dpkg",
}
"""What it is made with, and the package that has it."""
_RECIPE = 2
"""Counts up when the same parts are put together in another way."""
_FETCHED = 3
"""The same of what is fetched."""
_MARK = "software.json"
_UPSTREAM = "KUBEXM_LAB_UPSTREAM"


def from_upstream() -> bool:
    """Whether the environment wants everything from the sites of the projects."""
    return os.environ.get(_UPSTREAM, "") not in ("", "0")


@dataclass(frozen=True, slots=True)
class Wish:
    """What somebody asked for."""

    kubernetes: str = ""
    """A version, a release line, or nothing for the newest."""
    extra: tuple[str, ...] = ()
    upstream: bool = field(default_factory=from_upstream)
    """Whether it is fetched from the sites of its projects; nothing is made then."""
    to: Path | None = None
    renews: bool = False
    """Whether the newest is looked for anew after a day. Tests don't: `make test-lab` has, before
    it made the software, and none of them has the time to make it."""


def make(wish: Wish, told: Told) -> Path:
    """Have the software in a directory; what is there is not made again."""
    root = parts.home()
    begun = time.monotonic()
    bundles.kubexm()  # now, and not after all the rest
    with parts.locked(root, told):
        place = _upstream(wish, root, told) if wish.upstream else _ours(wish, root, told)
    told(f"the software is there after {time.monotonic() - begun:.0f} s, in {place}")
    return place


def _ours(wish: Wish, root: Path, told: Told) -> Path:
    _require_programs()
    workshop = _workshop(wish, root, told)
    told(f"Kubernetes {workshop.choices.kubernetes}")
    for line in workshop.choices.deviations:
        told(f"deviation: {line}")
    key = _key(workshop.choices)
    place = wish.to or root / key
    if not _is_there(place, key):
        workshop.make(told)
        parts.make(place, lambda half: _assemble(workshop, (half, place), wish.extra, key, told))
    bundles.build(place, told, "--catalog", place / "catalog.toml", "--images", place / "images")
    return place


def _workshop(wish: Wish, root: Path, told: Told) -> Workshop:
    """With versions that can be had, unless nothing has to be had any more."""
    archive = Archive(root / "apt")
    asked = Asked(wish.kubernetes, wish.extra, archive, root / "choices")
    choices = choosing.renewed(asked, told) if wish.renews else choosing.chosen(asked)
    found = Workshop(root, choices, archive)
    key = _key(choices)
    if _is_made(wish.to or root / key, key) or found.debian.exists():
        return found
    if archive.has(choices.packages):
        return found
    told("Debian has its packages in other versions by now: versions are chosen again")
    return Workshop(root, choosing.again(asked), archive)


def _upstream(wish: Wish, root: Path, told: Told) -> Path:
    """From the sites of the projects: the product's own catalog says where."""
    kubernetes = catalog.read().newest(wish.kubernetes)
    told(f"Kubernetes {kubernetes}")
    key = f"upstream-{kubernetes}-{parts.digest(_FETCHED, wish.extra, catalog.read())}"
    place = wish.to or root / key

    home = root / "fetching"

    def build(half: Path) -> None:
        _begin(half, key, kubernetes, wish.extra)
        fetching.fetch(half, home, told)

    if not _is_there(place, key):
        parts.make(place, build)
        shutil.rmtree(home)
    return place


def _assemble(
    workshop: Workshop, places: tuple[Path, Path], extra: Sequence[str], key: str, told: Told
) -> None:
    """Put everything into a directory that is going to be at another place."""
    half, place = places
    choices = workshop.choices
    _begin(half, key, choices.kubernetes, extra)
    (half / "deviations.txt").write_text("".join(f"{line}\n" for line in choices.deviations))
    told("files: begin")
    made = assembling.files(workshop, half / "files")
    (half / "images").rmdir()
    assembling.images(workshop, half / "images", told)
    text = overlay.text(choices, made, place / "files", assembling.architecture())
    (half / "catalog.toml").write_text(text)


def _begin(half: Path, key: str, kubernetes: str, extra: Sequence[str]) -> None:
    """What every directory of software has, wherever it comes from."""
    for name in ("files", "images"):
        (half / name).mkdir()
    (half / "catalog.toml").write_text("# Nothing is otherwise than in kubexm's own catalog.\n")
    (half / "deviations.txt").write_text("")
    bundles.write_cluster(half, kubernetes, extra)
    (half / _MARK).write_text(json.dumps({"key": key, "kubernetes": kubernetes}))


def _key(choices: Choices) -> str:
    of_all = (choices, recipe.GO, recipe.FILES, recipe.IMAGES, catalog.read().components)
    return f"{choices.kubernetes}-{parts.digest(_RECIPE, *of_all)}"


def _is_there(place: Path, key: str) -> bool:
    """Whether it was made; what was made otherwise is removed, what others made is not."""
    if _is_made(place, key):
        return True
    if (place / _MARK).exists():
        shutil.rmtree(place)
    elif place.exists() and any(place.iterdir()):
        raise LabError(f"`{place}` is neither empty nor software of the lab")
    return False


def _is_made(place: Path, key: str) -> bool:
    mark = place / _MARK
    return mark.exists() and bool(json.loads(mark.read_text())["key"] == key)


def _require_programs() -> None:
    lacking = [name for name in PROGRAMS if shutil.which(name) is None]
    if lacking:
        hints = [f"`{name}`: {PROGRAMS[name]}" for name in lacking]
        raise Missing([f"the program `{name}`" for name in lacking], hints)
