"""The files and images that go to hosts, as steps ask for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Protocol

from kubexm.common.assets import RegistryAccess, Wanted
from kubexm.errors import StepFailed

Progress = Callable[[int, int], None]
"""Is told the bytes that are here, and how many there are."""


class Assets(Protocol):
    """Where files of the catalog, charts and images are kept, and how they get there.

    What it gives is whole and as it was wanted. Methods that are no coroutines only look at what
    is there; `write_image` belongs off the loop.
    """

    def digest(self, key: str) -> str | None:
        """The sha256 of the file that is kept under this key; None if there is none."""

    def path(self, digest: str) -> Path:
        """Where the file with this sha256 lies on this machine."""

    async def fetch(self, wanted: Wanted, progress: Progress) -> str:
        """Have a file; its sha256, which is the wanted one if that is known.

        `StepFailed` names everything that was tried.
        """

    async def fetch_chart(
        self, name: str, version: str, repository: str, outside: bool, progress: Progress
    ) -> str:
        """Have a Helm chart; its sha256. Its repository is asked only if `outside` allows it."""

    def has_image(self, name: str, arch: str) -> bool:
        """Whether an image is kept under this name, for this architecture."""

    async def fetch_image(
        self, name: str, architectures: Sequence[str], progress: Progress
    ) -> None:
        """Have an image for all of these architectures."""

    def image_digest(self, name: str, arch: str) -> str:
        """What tells the content of an image from any other; `StepFailed` if it is not kept."""

    def write_image(self, name: str, arch: str, as_name: str, file: IO[bytes]) -> None:
        """Write an archive for `ctr images import`, for one architecture, under another name.

        The same image gives the same bytes.
        """

    async def pushed(
        self, name: str, registry: RegistryAccess, architectures: Sequence[str]
    ) -> bool:
        """Whether a registry has an image of this name for all of these architectures."""

    async def push(
        self, name: str, as_name: str, registry: RegistryAccess, progress: Progress
    ) -> None:
        """Bring an image that is kept into a registry, under another name."""


class NoAssets:
    """Stands where nobody has said what there is: whatever it is asked for, it refuses."""

    def digest(self, key: str) -> str | None:
        raise _nowhere(key)

    def path(self, digest: str) -> Path:
        raise _nowhere(digest)

    async def fetch(self, wanted: Wanted, progress: Progress) -> str:
        raise _nowhere(wanted.key)

    async def fetch_chart(
        self, name: str, version: str, repository: str, outside: bool, progress: Progress
    ) -> str:
        raise _nowhere(name)

    def has_image(self, name: str, arch: str) -> bool:
        raise _nowhere(name)

    async def fetch_image(
        self, name: str, architectures: Sequence[str], progress: Progress
    ) -> None:
        raise _nowhere(name)

    def image_digest(self, name: str, arch: str) -> str:
        raise _nowhere(name)

    def write_image(self, name: str, arch: str, as_name: str, file: IO[bytes]) -> None:
        raise _nowhere(name)

    async def pushed(
        self, name: str, registry: RegistryAccess, architectures: Sequence[str]
    ) -> bool:
        raise _nowhere(name)

    async def push(
        self, name: str, as_name: str, registry: RegistryAccess, progress: Progress
    ) -> None:
        raise _nowhere(name)


NOTHING: Assets = NoAssets()


def _nowhere(what: str) -> StepFailed:
    return StepFailed(
        f"nobody has said where `{what}` is kept: this run has no store of artifacts",
        hint="give the runtime its `assets`",
    )
