"""All that a bill of materials names, gathered in a store: files, charts and images at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from kubexm.common.secrets import Discreet
from kubexm.common.threads import in_thread
from kubexm.errors import InvalidFile, InvalidInput, Refused, StepFailed
from kubexm.resource import charts, fetch, images, keys, layout, manifests, registry
from kubexm.resource.entries import ARCHES
from kubexm.resource.fetch import Artifact, Fetched, Options, Progress
from kubexm.resource.images import Image, Reference, parse
from kubexm.resource.materials import BillOfMaterials, Binary
from kubexm.resource.registries import Giving, Way, reached
from kubexm.resource.store import Store
from kubexm.resource.together import Job, failures, in_turn

AT_ONCE = 3
"""Images and charts that are on their way at the same time; files have slots of their own."""
_HINT = "correct these sources or add others; what has arrived is kept for the next attempt"
_LAYOUTS = ("index.json", "manifest.json")
"""One of them is in every directory that holds images."""


class Sources(Discreet, frozen=True, kw_only=True):
    """Where things come from, as far as a bill does not say it."""

    hidden = frozenset()

    options: Options = Options()
    registries: Mapping[str, Way] = {}
    """How registries are reached, by the names that images call them by."""


async def gather(
    bill: BillOfMaterials,
    store: Store,
    sources: Sources,
    progress: Progress | None = None,
    own: Sequence[Image] = (),
) -> None:
    """Have all of a bill in the store; what is there, or among `own` images, is not fetched.

    One thing that can't be had does not stop the others; at the end all that failed are named.
    """
    options = sources.options
    async with reached(sources.registries, options.web) as giving:
        files = partial(fetch_files, bill.binaries, store, options, progress)
        jobs: list[Job] = [
            partial(charts.fetch_chart, chart, store, options, giving, progress)
            for chart in bill.charts
        ]
        jobs += [
            partial(fetch_image, parse(image.name), image.architectures, store, giving, progress)
            for image in bill.images
            if covering(own, image.name, image.architectures, store) is None
        ]
        failed = await failures([files, *in_turn(jobs, AT_ONCE)])
    if failed:
        lines = [f"  {line}" for failure in failed for line in failure.splitlines()]
        raise StepFailed("\n".join(("can't get all that is needed:", *lines)), hint=_HINT)


async def fetch_files(
    files: Sequence[Binary],
    store: Store,
    options: Options,
    progress: Progress | None = None,
    *,
    anew: bool = False,
) -> tuple[Fetched, ...]:
    """Have files of the catalog in the store, under their keys.

    `anew`: those without a checksum are fetched though something is there.
    """
    artifacts = [
        Artifact(
            name=keys.of_file(file),
            sources=file.urls,
            sha256=file.sha256,
            kind="" if file.sha256 else file.kind,
            anew=anew,
        )
        for file in files
    ]
    return await fetch.fetch(artifacts, store, options, progress)


async def fetch_image(
    name: Reference,
    architectures: Iterable[str],
    store: Store,
    giving: Giving,
    progress: Progress | None = None,
) -> None:
    """Have an image in the store, under its name, for at least these architectures."""
    there = await in_thread(machines, name, store)
    if there.issuperset(architectures):
        return
    wanted = sorted(there.union(architectures))
    image = await registry.pull(giving(name), name, store, wanted, progress)
    await in_thread(images.record, image, store)


def machines(name: Reference, store: Store) -> frozenset[str]:
    """The architectures for which an image is in the store, all of it."""
    try:
        image = images.find(name, store)
    except (InvalidFile, Refused, StepFailed):  # its root is damaged
        return frozenset()
    return frozenset() if image is None else _machines_of(image, store)


def covering(
    found: Iterable[Image], name: str, architectures: Iterable[str], store: Store
) -> Image | None:
    """The last of some images that has a name and is for all these architectures."""
    named = next((image for image in reversed([*found]) if str(image.name) == name), None)
    if named is None or not _machines_of(named, store).issuperset(architectures):
        return None
    return named


def _machines_of(image: Image, store: Store) -> frozenset[str]:
    try:
        inside = manifests.contents([image.root], store)
        found = [platform for platform, _ in manifests.platforms(image.root, store)]
    except (InvalidFile, Refused, StepFailed):  # a document is missing or damaged
        return frozenset()
    if not all(store.has(manifests.sha256_of(blob.digest)) for blob in inside.blobs):
        return frozenset()
    return frozenset(arch for arch in ARCHES if any(each.suits(arch) for each in found))


def take_images(paths: Iterable[Path], store: Store) -> tuple[Image, ...]:
    """Have the images of archives and layouts in the store.

    They get no names there: what one command is given is no business of the next.
    """
    found: list[Image] = []
    for file in (file for path in paths for file in _files_of(path)):
        for image in layout.read(file, store):
            if image.name is None:
                message = f"the image {image.root.digest} has no name"
                raise InvalidFile(message, where=str(file), hint="export it by its name")
            images.record(Image(image.root), store)
            found.append(image)
    return tuple(found)


def _files_of(path: Path) -> Iterator[Path]:
    """What is read: the path itself, or all that lies in a directory of archives."""
    if not path.is_dir() or any((path / name).exists() for name in _LAYOUTS):
        yield path
        return
    files = sorted(file for file in path.iterdir() if file.name[0] != ".")
    if not files:
        raise InvalidInput("this directory is empty", where=str(path), hint="name one with images")
    yield from files
