"""Files and images out of the store of artifacts; what it lacks is brought there first."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO

from kubexm.common.assets import RegistryAccess, Wanted
from kubexm.common.threads import in_thread
from kubexm.errors import StepFailed
from kubexm.resource import bundle_gather, charts, fetch, images, keys, layout, manifests
from kubexm.resource import registry as registries
from kubexm.resource.bundle_gather import Sources
from kubexm.resource.catalog import ChartRelease
from kubexm.resource.fetch import Advance, Artifact
from kubexm.resource.http import Login
from kubexm.resource.images import Image, Reference
from kubexm.resource.manifests import Descriptor, Index
from kubexm.resource.registries import Way, reached
from kubexm.resource.registry import Registry
from kubexm.resource.store import Store
from kubexm.runtime.assets import Progress

_USUAL = Sources()
_BRING = "import a bundle that has it, or let kubexm fetch it"


class StoreAssets:
    """What a store has, and the ways to what it lacks."""

    def __init__(self, store: Store, sources: Sources = _USUAL, *, outside: bool = True) -> None:
        """`outside`: whether anybody may be asked; if not, all has come out of a bundle."""
        self._store = store if outside else store.loaded()
        self._sources = sources
        self._outside = outside

    def digest(self, key: str) -> str | None:
        """The sha256 of the file that is kept under this key; None if there is none."""
        return self._store.find(key)

    def path(self, digest: str) -> Path:
        """Where the file with this sha256 lies."""
        return self._store.path(digest)

    async def fetch(self, wanted: Wanted, progress: Progress) -> str:
        """Have a file in the store under its key, from the first of its sources that has it."""
        if (found := await in_thread(self._kept, wanted)) is not None:
            return found
        if not wanted.urls or not self._outside:
            raise self._lacking(f"`{wanted.file}` ({wanted.key})")
        artifact = Artifact(
            name=wanted.key, sources=wanted.urls, sha256=wanted.sha256 or None, kind="file"
        )
        options, tell = self._sources.options, _telling(progress)
        (fetched,) = await fetch.fetch([artifact], self._store, options, tell)
        return fetched.sha256

    async def fetch_chart(
        self, name: str, version: str, repository: str, outside: bool, progress: Progress
    ) -> str:
        """Have a Helm chart in the store under its key."""
        chart = ChartRelease(name=name, version=version, repository=repository)
        options, tell = self._sources.options, _telling(progress)
        if outside and self._outside:
            async with reached(self._sources.registries, options.web) as giving:
                await charts.fetch_chart(chart, self._store, options, giving, tell)
        if (found := self._store.find(keys.of_chart(chart))) is None:
            raise self._lacking(f"chart `{name}` `{version}` of {repository}")
        return found

    def has_image(self, name: str, arch: str) -> bool:
        """Whether the store has an image of this name for this architecture."""
        return arch in bundle_gather.machines(images.parse(name), self._store)

    async def fetch_image(
        self, name: str, architectures: Sequence[str], progress: Progress
    ) -> None:
        """Have an image in the store; the architectures that it is there for stay."""
        reference, tell = images.parse(name), _telling(progress)
        there = await in_thread(bundle_gather.machines, reference, self._store)
        if there.issuperset(architectures):
            return
        if not self._outside:
            raise self._lacking(f"image `{name}` for {', '.join(architectures)}")
        async with reached(self._sources.registries, self._sources.options.web) as giving:
            await bundle_gather.fetch_image(reference, architectures, self._store, giving, tell)

    def image_digest(self, name: str, arch: str) -> str:
        """The digest of the image's manifest for this architecture."""
        return self._manifest(name, arch).digest

    def write_image(self, name: str, arch: str, as_name: str, file: IO[bytes]) -> None:
        """Write an archive with the image for one architecture."""
        alone = Image(self._manifest(name, arch), images.parse(as_name))
        layout.write_archive([alone], self._store, file)

    async def pushed(
        self, name: str, registry: RegistryAccess, architectures: Sequence[str]
    ) -> bool:
        """Whether the registry has an image of this name for all of these architectures."""
        reference = images.parse(name)
        async with self._spoken_to(registry, reference) as there:
            if await there.digest(reference.repository, reference.wanted) is None:
                return False
            root, data = await there.document(reference.repository, reference.wanted)
        if root.media_type not in manifests.INDEXES:
            return True  # an image without an index is for the machines that it is for
        found = [each.platform for each in manifests.decoded(data, Index, f"`{name}`").manifests]
        return all(
            any(platform is None or platform.suits(arch) for platform in found)
            for arch in architectures
        )

    async def push(
        self, name: str, as_name: str, registry: RegistryAccess, progress: Progress
    ) -> None:
        """Bring an image of the store into the registry, for all that it is there for."""
        image = await in_thread(self._image, name)
        reference, tell = images.parse(as_name), _telling(progress)
        async with self._spoken_to(registry, reference) as there:
            await registries.push(there, image, self._store, reference, progress=tell)

    def _kept(self, wanted: Wanted) -> str | None:
        """What the store has of a file, by its key, or else by its digest."""
        found = self._store.find(wanted.key)
        if found is not None and wanted.sha256 in ("", found):
            return found
        if wanted.sha256 and self._store.claim(wanted.key, wanted.sha256):
            return wanted.sha256
        return None

    def _manifest(self, name: str, arch: str) -> Descriptor:
        found = manifests.platforms(self._image(name).root, self._store)
        suiting = (each for platform, each in found if platform.suits(arch))
        if (first := next(suiting, None)) is None:
            raise self._lacking(f"image `{name}` for {arch}")
        return first

    def _image(self, name: str) -> Image:
        image = images.find(images.parse(name), self._store)
        if image is None:
            raise self._lacking(f"image `{name}`")
        return image

    @asynccontextmanager
    async def _spoken_to(self, access: RegistryAccess, name: Reference) -> AsyncIterator[Registry]:
        login = Login(access.username, access.password) if access.username else None
        with _as_file(access.ca) as ca_file:
            way = Way(ca_file=ca_file, plain_http=access.plain_http, login=login)
            async with reached({access.address: way}, self._sources.options.web) as giving:
                (there,) = giving(name)
                yield there

    def _lacking(self, what: str) -> StepFailed:
        return StepFailed(
            f"{what} is not in the store of artifacts", where=str(self._store.root), hint=_BRING
        )


@contextmanager
def _as_file(text: str) -> Iterator[Path | None]:
    """A text in a file that is gone afterwards; None for nothing."""
    if not text:
        yield None
        return
    with NamedTemporaryFile(prefix="kubexm-", suffix=".pem") as file:
        file.write(text.encode())
        file.flush()
        yield Path(file.name)


def _telling(progress: Progress) -> fetch.Progress:
    """Tells how far something has come, as long as it is known how far there is to go."""

    def tell(advance: Advance) -> None:
        if advance.total is not None:
            progress(advance.done, advance.total)

    return tell
