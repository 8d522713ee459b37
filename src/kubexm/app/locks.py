"""The use case of locks: sums of files that the catalog does not have, held fast in another."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from kubexm.app.bills import BillParams, billed, sources
from kubexm.common.paths import Home
from kubexm.common.threads import in_thread
from kubexm.errors import InvalidInput
from kubexm.resource import keys, lock
from kubexm.resource.bundle_gather import fetch_files
from kubexm.resource.fetch import Progress
from kubexm.resource.lock import Locked
from kubexm.resource.materials import Binary
from kubexm.resource.store import Store
from kubexm.runtime.secrets import SecretVault


class LockParams(msgspec.Struct, frozen=True):
    """What is locked, and the file that says so."""

    wanted: BillParams
    output: Path
    overwrite: bool = False
    """Whether a lock is made though there is one, and out of what there is now."""


async def hold_fast(
    params: LockParams, home: Home, vault: SecretVault, progress: Progress | None = None
) -> list[Locked]:
    """Fetch all files whose sums the catalog lacks, and write one with the sums of all files.

    The answer is what was not known before; if there is nothing, no file is written.
    """
    found = await in_thread(billed, params.wanted)
    unknown = [file for file in found.bill.binaries if not file.sha256]
    if not unknown:
        return []
    await in_thread(_require_place, params)
    options = sources(found.cluster, vault).options
    fetched = await fetch_files(
        unknown, Store(home.artifacts), options, progress, anew=params.overwrite
    )
    sums = {each.name: each.sha256 for each in fetched}
    everything = [_locked(file, sums) for file in found.bill.binaries]
    await in_thread(_write, params, lock.text(everything))
    return [_locked(file, sums) for file in unknown]


def _locked(file: Binary, sums: Mapping[str, str]) -> Locked:
    digest = file.sha256 or sums[keys.of_file(file)]
    return Locked(file.component, file.version, file.name, file.arch, digest)


def _require_place(params: LockParams) -> None:
    if params.output.exists() and not params.overwrite:
        message = f"`{params.output}` is there already"
        raise InvalidInput(message, hint="name another file, or add --force")


def _write(params: LockParams, text: str) -> None:
    try:
        with params.output.open("w" if params.overwrite else "x") as file:
            file.write(text)
    except OSError as error:
        message = f"can't write `{params.output}`: {error.strerror}"
        raise InvalidInput(message, hint="name another file") from error
