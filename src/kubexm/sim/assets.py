"""The files and images of a simulated world: stand-ins, kept with it, and no network anywhere."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import IO
from urllib.parse import quote

from kubexm.common.assets import RegistryAccess, Wanted
from kubexm.errors import StepFailed
from kubexm.sim import ctr, registries, stored
from kubexm.sim.registries import Serving
from kubexm.sim.shell import Shell
from kubexm.sim.world import World

_DIRECTORY = "assets"
_CONTROL_NODE = "control-node"
_NOT_THERE = "sites outside of this simulated world do not answer"
_LET = "set `outside: true` in `simulate`, or `bundled: true` for a world that has everything"
Progress = Callable[[int, int], None]


class SimAssets:
    """What a world has at hand; what was fetched stays, also for who opens the world again."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._directory = world.path / _DIRECTORY

    def digest(self, key: str) -> str | None:
        """The sha256 of the stand-in under this key; None if nobody has fetched it yet."""
        if not self._world.settings.bundled and not self._mark(key).exists():
            return None
        return self._kept(key)

    def path(self, digest: str) -> Path:
        """Where a stand-in lies on this machine."""
        return self._directory / digest

    async def fetch(self, wanted: Wanted, progress: Progress) -> str:
        """Have a stand-in; it has a sha256 of its own, whatever the real file has."""
        if (known := self.digest(wanted.key)) is not None:
            return known
        if not wanted.urls:
            raise StepFailed(f"`{wanted.file}` is not at hand, and nobody may be asked", hint=_LET)
        tried = ", ".join(wanted.urls)
        return self._fetched(wanted.key, f"`{wanted.file}` from {tried}", progress)

    async def fetch_chart(
        self, name: str, version: str, repository: str, outside: bool, progress: Progress
    ) -> str:
        """The same for a chart."""
        key = f"{stored.CHART}{repository}/{name}/{version}"
        if (known := self.digest(key)) is not None:
            return known
        if not outside:
            raise StepFailed(f"chart `{name}` is not at hand, and nobody may be asked", hint=_LET)
        return self._fetched(key, f"chart `{name}` from {repository}", progress)

    def has_image(self, name: str, arch: str) -> bool:
        """Whether an image was fetched for an architecture."""
        return self._world.settings.bundled or self._mark(f"{name}@{arch}").exists()

    async def fetch_image(
        self, name: str, architectures: Sequence[str], progress: Progress
    ) -> None:
        """Have an image."""
        missing = [arch for arch in architectures if not self.has_image(name, arch)]
        if missing and not self._world.settings.outside:
            raise StepFailed(f"can't pull `{name}`: {_NOT_THERE}", hint=_LET)
        for arch in missing:
            self._note(f"{name}@{arch}", "")
        progress(len(architectures), len(architectures))

    def image_digest(self, name: str, arch: str) -> str:
        """What tells an image from any other."""
        if not self.has_image(name, arch):
            raise StepFailed(f"image `{name}` for {arch} is not at hand")
        return f"sha256:{sha256(ctr.image_text(name, arch).encode()).hexdigest()}"

    def write_image(self, name: str, arch: str, as_name: str, file: IO[bytes]) -> None:
        """Write a stand-in for the archive of an image."""
        self.image_digest(name, arch)
        file.write(ctr.image_text(as_name, arch).encode())

    async def pushed(
        self, name: str, registry: RegistryAccess, architectures: Sequence[str]
    ) -> bool:
        """Whether a registry of the world has an image."""
        there, serving = self._registry(registry)
        path = _tag_path(serving, name)
        if there.files.lookup(path) is None:
            return False
        return set(architectures) <= set(there.files.read(path).decode().split())

    async def push(
        self, name: str, as_name: str, registry: RegistryAccess, progress: Progress
    ) -> None:
        """Bring an image into a registry of the world."""
        known = [arch for arch in ("amd64", "arm64") if self.has_image(name, arch)]
        if not known:
            raise StepFailed(f"image `{name}` is not at hand")
        there, serving = self._registry(registry)
        path = _tag_path(serving, as_name)
        there.files.make_directory(path.rpartition("/")[0], parents=True)
        there.files.write(path, f"{' '.join(known)}\n".encode())
        self._world.commit()
        progress(1, 1)

    def _registry(self, registry: RegistryAccess) -> tuple[Shell, Serving]:
        """The host that runs a registry, as the machine that runs kubexm reaches it."""
        host, _, port = registry.address.rpartition(":")
        here = self._world.host(_CONTROL_NODE)
        for name in here.reached(host.strip("[]"), int(port)):
            there = self._world.shell_of(name)
            serving = None if there is None else registries.serving(there, int(port))
            if there is not None and serving is not None:
                _require_trust(registry, serving)
                return there, serving
        raise StepFailed(
            f"no registry answers at {registry.address}",
            hint="start it in a step before this one",
        )

    def _fetched(self, key: str, what: str, progress: Progress) -> str:
        if not self._world.settings.outside:
            raise StepFailed(f"can't fetch {what}: {_NOT_THERE}", hint=_LET)
        digest = self._kept(key)
        self._note(key, digest)
        size = self.path(digest).stat().st_size
        progress(size, size)
        return digest

    def _kept(self, key: str) -> str:
        """Have the stand-in of a key on disk."""
        data = stored.content(key)
        digest = sha256(data).hexdigest()
        if not self.path(digest).exists():
            self._write(self.path(digest), data)
        return digest

    def _note(self, what: str, text: str) -> None:
        self._write(self._mark(what), text.encode())

    def _mark(self, what: str) -> Path:
        return self._directory / "had" / quote(what, safe="")

    def _write(self, path: Path, data: bytes) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name[:100]}.{os.getpid()}")
        temporary.write_bytes(data)
        temporary.replace(path)


def _tag_path(serving: Serving, image: str) -> str:
    _, repository, tag = registries.parts(image)
    return registries.tag_path(serving, repository, tag)


def _require_trust(registry: RegistryAccess, serving: Serving) -> None:
    if serving.tls == registry.plain_http:
        spoken = "TLS" if serving.tls else "no TLS"
        raise StepFailed(f"the registry at {registry.address} speaks {spoken}")
    if serving.tls and not registry.ca:
        raise StepFailed(
            f"nobody vouches for the registry at {registry.address}",
            hint="give the certificate of its authority",
        )
