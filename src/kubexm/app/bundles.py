"""Use cases of bundles: all that a cluster needs in one file, made, looked at and used."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import msgspec

from kubexm.app import addon_images
from kubexm.app.bills import BillParams, billed, sources, unlocked
from kubexm.common.paths import Home
from kubexm.common.secrets import SecretRef, is_reference
from kubexm.common.threads import in_thread
from kubexm.errors import InvalidInput, KubexmError, Problem, StepFailed
from kubexm.resource import (
    bundle,
    bundle_archive,
    bundle_build,
    bundle_changes,
    bundle_push,
    http,
)
from kubexm.resource.bundle_archive import Damage
from kubexm.resource.bundle_changes import Difference
from kubexm.resource.bundle_gather import gather, take_images
from kubexm.resource.bundle_manifest import Manifest
from kubexm.resource.bundle_push import Pushed, Target
from kubexm.resource.fetch import Progress
from kubexm.resource.http import Login
from kubexm.resource.store import Store
from kubexm.runtime.secrets import SecretVault


class BuildParams(msgspec.Struct, frozen=True):
    """What a bundle is for, and where it goes."""

    wanted: BillParams
    output: Path
    images: tuple[Path, ...] = ()
    """Archives and layouts of images, which are taken in place of registries."""


class Built(msgspec.Struct, frozen=True):
    """A bundle that was written."""

    path: Path
    size: int
    manifest: Manifest
    warnings: tuple[Problem, ...]


class PushParams(msgspec.Struct, frozen=True, kw_only=True):
    """A bundle, and the registry that gets its images."""

    bundle: Path
    registry: str
    plain_http: bool = False
    ca: Path | None = None
    username: str = ""
    password: str = ""
    """A reference to it."""


async def build(
    params: BuildParams, home: Home, vault: SecretVault, progress: Progress | None = None
) -> Built:
    """Fetch what is not in the store of artifacts, and write all of it into one file."""
    found = await in_thread(partial(billed, params.wanted, is_bundled=True))
    await in_thread(_require_place, params.output)
    places, store = sources(found.cluster, vault), Store(home.artifacts)
    extra = await in_thread(take_images, params.images, store)
    await gather(found.bill, store, places, progress, extra)
    manifest = await bundle_build.build(found.bill, store, params.output, extra, progress)
    size = await in_thread(lambda: params.output.stat().st_size)
    warnings = _warnings(found.bill.warnings, unlocked(found.bill))
    noted = () if found.cluster is None else addon_images.notes(found.cluster)
    return Built(params.output, size, manifest, (*warnings, *noted))


def show(path: Path) -> Manifest:
    """What is in a bundle, as it says itself."""
    return bundle.contents(path)


async def verify(path: Path, progress: Progress | None = None) -> list[Damage]:
    """Whatever of a bundle is damaged or missing."""
    return await bundle.verify(path, progress)


def diff(old: Path, new: Path) -> list[Difference]:
    """In what two bundles differ."""
    return bundle_changes.differences(bundle.contents(old), bundle.contents(new))


def check(path: Path, wanted: BillParams) -> list[Problem]:
    """What a bundle lacks for a cluster."""
    return bundle.missing(bundle.contents(path), billed(wanted, is_bundled=True).bill)


def notes(wanted: BillParams) -> list[Problem]:
    """What nobody can tell of a bundle for a cluster, and what helps no pod though it is there."""
    cluster = billed(wanted).cluster
    return [] if cluster is None else [*addon_images.notes(cluster)]


async def push(
    params: PushParams, home: Home, vault: SecretVault, progress: Progress | None = None
) -> list[Pushed]:
    """Bring all images of a bundle into a registry."""
    # Before somebody is asked for a password, and the network for anything.
    await in_thread(bundle.contents, params.bundle)
    target = Target(
        registry=params.registry,
        plain_http=params.plain_http,
        ca_file=params.ca,
        login=_login(params, vault),
    )
    await _require_registry(target)
    store = Store(home.artifacts)
    manifest = await bundle.load(params.bundle, store, progress)
    return await bundle_push.push_images(manifest, store, target, progress)


async def _require_registry(target: Target) -> None:
    try:
        await bundle_push.require_registry(target)
    except StepFailed as error:
        if not http.speaks_no_tls(error):
            raise
        raise StepFailed(error.message, hint="if that is meant so, add --plain-http") from error


def _require_place(path: Path) -> None:
    """Before hours of downloads it can still be named otherwise."""
    try:
        if path.is_dir() or not path.absolute().parent.is_dir():
            reason = "it is a directory" if path.is_dir() else "its directory is not there"
            message = f"can't write `{path}`: {reason}"
            raise InvalidInput(message, hint="name a file in a directory that is there")
        _require_no_other(path)
        bundle_archive.require_place(path)
    except OSError as error:
        message = f"can't write `{path}`: {error.strerror}"
        raise InvalidInput(message, hint="name a file where this user may write") from error


def _require_no_other(path: Path) -> None:
    """A bundle is written over; whatever else is there somebody may still need."""
    if not path.exists() or (path.is_file() and not path.stat().st_size):
        return
    try:
        bundle_archive.head(path)
    except KubexmError as error:
        message = f"`{path}` is there already, and is no bundle that this kubexm can read"
        raise InvalidInput(message, hint="name another file, or remove it first") from error


def _warnings(untested: Sequence[str], unknown: Sequence[str]) -> tuple[Problem, ...]:
    found = [Problem(message) for message in untested]
    if unknown:
        message = f"the catalog has no checksums of {', '.join(unknown)}: what came was taken"
        hint = (
            "hold fast what was fetched: kubexm catalog lock -f FILE -o LOCK, then --catalog LOCK"
        )
        found.append(Problem(message, hint=hint))
    return tuple(found)


def _login(params: PushParams, vault: SecretVault) -> Login | None:
    if bool(params.username) != bool(params.password):
        message = "found one of `--username` and `--password-ref`, want both or none"
        raise InvalidInput(message, hint="add the other one, or leave it out")
    if not params.username:
        return None
    if not is_reference(params.password):
        message = "`--password-ref` is no reference"  # it may be the password, so it is not shown
        raise InvalidInput(message, hint="write `env://NAME`, `file:///PATH` or `prompt://NAME`")
    return Login(params.username, vault.reveal(SecretRef(params.password)))
