"""The images of a bundle that was loaded into a store, brought into a private registry."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import msgspec
from msgspec.structs import replace

from kubexm.common.secrets import Discreet
from kubexm.errors import StepFailed
from kubexm.resource import http, registry
from kubexm.resource.bundle_manifest import Manifest
from kubexm.resource.fetch import Progress
from kubexm.resource.http import Login, Settings
from kubexm.resource.images import Image, parse
from kubexm.resource.private_names import private, registry_apart
from kubexm.resource.registry import Registry, endpoint
from kubexm.resource.store import Store
from kubexm.resource.together import failures, in_turn

AT_ONCE = 3
"""Images that are on their way at the same time."""


class Target(Discreet, frozen=True, kw_only=True):
    """A private registry, with a folder of it if there is one, and how it is reached."""

    hidden = frozenset()

    registry: str
    """Such as `mine.lan:5000/kube`."""
    plain_http: bool = False
    ca_file: Path | None = None
    login: Login | None = None
    web: Settings = Settings()
    """How servers are reached besides."""


class Pushed(msgspec.Struct, frozen=True, rename="camel"):
    """An image that is in the registry."""

    name: str
    pushed_as: str
    """With the digest that it has there, if it is called by one."""
    was_there: bool
    not_as: str = ""
    """By this name, which has the digest of all its machines, the registry does not have it: the
    bundle has it for some of them."""


async def require_registry(target: Target) -> None:
    """Raise unless there is a registry that lets us in."""
    async with _opened(target) as place:
        await place.ping()


async def push_images(
    manifest: Manifest,
    store: Store,
    target: Target,
    progress: Progress | None = None,
) -> list[Pushed]:
    """Have all images in a registry, under the names that a cluster pulls them by there.

    One that the registry does not take does not stop the others; all that failed are named.
    """
    pushed: list[Pushed] = []
    async with _opened(target) as place:
        jobs = [
            partial(_push, Image(image.root, parse(name)), store, place, target, pushed, progress)
            for name, image in manifest.images.items()
        ]
        failed = await failures(in_turn(jobs, AT_ONCE))
    if failed:
        lines = "".join(f"\n  {failure}" for failure in failed)
        message = f"{place} does not take {len(failed)} of {len(jobs)} images:{lines}"
        raise StepFailed(message, hint="look at the log of the registry; what is there stays")
    return sorted(pushed, key=lambda each: each.name)


async def _push(
    image: Image,
    store: Store,
    place: Registry,
    target: Target,
    pushed: list[Pushed],
    progress: Progress | None,
) -> None:
    assert image.name is not None
    name = private(image.name, target.registry)
    is_new = await registry.push(place, image, store, name, progress=progress)
    there = replace(name, digest=image.root.digest) if name.digest else name
    not_as = str(name) if there != name else ""
    pushed.append(Pushed(str(image.name), str(there), not is_new, not_as))


@asynccontextmanager
async def _opened(target: Target) -> AsyncIterator[Registry]:
    host, _ = registry_apart(target.registry)
    logins = dict(target.web.logins)
    if target.login is not None:
        logins[f"http://{host}" if target.plain_http else host] = target.login
    settings = replace(target.web, logins=logins, ca_file=target.ca_file)
    async with http.client(settings) as client:
        yield Registry(client, settings, endpoint(host, encrypted=not target.plain_http))
