"""Files of a host: what is there, what is in it, and how to change either.

What only looks comes in two halves, a command and a reading of its answer, so that many looks
can travel together.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path, PurePosixPath
from typing import Any

from kubexm.connector.base import C_LOCALE, STAT, digesting, is_missing, read_stat, reading
from kubexm.connector.source import part_beside
from kubexm.errors import StepFailed
from kubexm.runner import causes
from kubexm.runner.host import Command, Completed, FileStat, Host, Progress

SHOWN = 1 << 16
"""Files up to this size are read to be compared, larger ones by their checksum."""
EDITED = 1 << 19
"""Files up to this size can be edited line by line."""
_OF_THE_FILE_SYSTEM = "lost+found"


def stat_command(host: Host, path: str, *, sudo: bool | None = None) -> Command:
    """Ask what is at a path; `seen` reads the answer."""
    return host.command(*STAT, path, sudo=sudo, env=C_LOCALE)


def content_command(host: Host, path: str, limit: int, *, sudo: bool | None = None) -> Command:
    """Ask for the beginning of a file; `content` reads the answer."""
    return host.command(*reading(path, limit, count=1), sudo=sudo, env=C_LOCALE)


def checksum_command(host: Host, *paths: str, sudo: bool | None = None) -> Command:
    """Ask for the sha256 of files; `checksum_of` and `digest_of` read the answer."""
    return host.command(*digesting(*paths), sudo=sudo, env=C_LOCALE)


def seen(answer: Completed) -> FileStat | None:
    """What is at the path; None if nothing is."""
    return read_stat(answer)


def unlike(path: str, found: FileStat, wanted: str) -> StepFailed:
    """The error for what is there being of another kind than what is wanted."""
    if found.kind == "other":
        return StepFailed(
            f"`{path}` is neither a file nor a directory nor a link, want a {wanted}",
            hint="remove it with a `command` step first",
        )
    return StepFailed(
        f"`{path}` is a {found.kind}, want a {wanted}",
        hint="remove it with an `absent` step first",
    )


def is_private(found: FileStat) -> bool:
    """Whether what is there may not be read by everyone on the host."""
    return not found.mode & 0o004


def content(answer: Completed, path: str) -> bytes:
    """What came of reading a file; nothing if there is none."""
    if answer.ok or is_missing(answer):
        return answer.stdout
    raise StepFailed(f"can't read `{path}`: {answer.error_text}")


def checksum_of(answer: Completed, path: str) -> str | None:
    """The sha256 of one file; None if there is none."""
    # A name with a newline or a backslash in it makes the line begin with a backslash.
    return content(answer, path).decode().lstrip("\\")[:64] or None


async def stat(host: Host, path: str, *, sudo: bool | None = None) -> FileStat | None:
    """What is at a path; links are not followed."""
    return await host.stat(path, sudo=sudo)


async def exists(host: Host, path: str, *, sudo: bool | None = None) -> bool:
    """Whether anything is at a path."""
    return await host.stat(path, sudo=sudo) is not None


async def missing(host: Host, path: str, *, sudo: bool | None = None) -> list[str]:
    """Of a path and all above it those that are not there, the deepest first."""
    place = PurePosixPath(path)
    above = [str(one) for one in (place, *place.parents)][:-1]
    answers = await host.batch([stat_command(host, one, sudo=sudo) for one in above])
    return [one for one, answer in zip(above, answers, strict=True) if seen(answer) is None]


async def read(host: Host, path: str, *, sudo: bool | None = None) -> bytes | None:
    """The whole content of a file; None if there is none."""
    try:
        return await host.get(path, sudo=sudo)
    except FileNotFoundError:
        return None


async def checksum(host: Host, path: str, *, sudo: bool | None = None) -> str | None:
    """The sha256 of a file; None if there is none."""
    (answer,) = await host.batch((checksum_command(host, path, sudo=sudo),))
    return checksum_of(answer, path)


async def write(
    host: Host,
    path: str,
    data: bytes,
    *,
    mode: int | None = None,
    owner: str | None = None,
    group: str | None = None,
    sudo: bool | None = None,
) -> None:
    """Put a file in place whole or not at all; what is not given stays as it is."""
    async with _explained(host, path, sudo):
        await host.put(path, data, mode=mode, owner=owner, group=group, sudo=sudo)


async def send(
    host: Host,
    source: str,
    digest: str,
    path: str,
    *,
    mode: int | None = None,
    owner: str | None = None,
    group: str | None = None,
    sudo: bool | None = None,
    progress: Progress | None = None,
) -> None:
    """The same with a file of this machine, which has this sha256 and may be large."""
    attributes: Any = {"mode": mode, "owner": owner, "group": group, "sudo": sudo}
    async with _explained(host, path, sudo):
        if not await host.upload(Path(source), digest, path, **attributes, progress=progress):
            await set_attributes(host, path, **attributes)


async def fetch(
    host: Host,
    path: str,
    to: Path,
    *,
    sudo: bool | None = None,
    progress: Progress | None = None,
) -> bool:
    """Bring a file to this machine; False if it was there already."""
    try:
        return await host.download(path, to, sudo=sudo, progress=progress)
    except FileNotFoundError:
        raise StepFailed(
            f"there is no file `{path}`", hint="make it in a step before this one"
        ) from None


async def remove_part(host: Host, path: str, *, sudo: bool | None = None) -> None:
    """Remove what has arrived of a file that was never whole."""
    await remove(host, part_beside(path), sudo=sudo)


@asynccontextmanager
async def _explained(host: Host, path: str, sudo: bool | None) -> AsyncIterator[None]:
    """Add what to do to the failure of a write."""
    try:
        yield
    except StepFailed as error:
        if error.hint or not (hint := await _remedy(host, path, error, sudo)):
            raise
        raise StepFailed(error.message, hint=hint) from error


async def _remedy(host: Host, path: str, error: StepFailed, sudo: bool | None) -> str:
    """What to do about a file that could not be written; nothing if nobody knows."""
    if hint := causes.hint_for_error(error):
        return hint
    if "Permission denied" in error.message:
        return "let the step run as root by `sudo: true`, or the user write there"
    above = str(PurePosixPath(path).parent)
    missing = not await exists(host, above, sudo=sudo)
    return f"make `{above}` with a `directory` step before it" if missing else ""


async def set_attributes(
    host: Host,
    path: str,
    *,
    mode: int | None = None,
    owner: str | None = None,
    group: str | None = None,
    sudo: bool | None = None,
) -> None:
    """Set what is given of mode, owner and group."""
    # Owner first: a change of owner takes away set-user-id bits.
    if owner is not None or group is not None:
        who = f"{owner or ''}:{group}" if group is not None else owner or ""
        await host.run("chown", "--", who, path, sudo=sudo)
    if mode is not None:
        # With fewer digits, chmod leaves the set-id bits of a directory as they are.
        await host.run("chmod", "--", f"{mode:05o}", path, sudo=sudo)


async def make_directory(
    host: Host, path: str, *, mode: int | None = None, sudo: bool | None = None
) -> None:
    """Make a directory and all above it that are missing."""
    options = () if mode is None else ("-m", f"{mode:04o}")
    await host.run("mkdir", "-p", *options, "--", path, sudo=sudo)


async def remove(
    host: Host, path: str, *, recursive: bool = False, sudo: bool | None = None
) -> None:
    """Remove a file or a link if it is there; with `recursive`, a directory and all in it."""
    await host.run("rm", "-rf" if recursive else "-f", "--", path, sudo=sudo)


async def remove_empty(host: Host, path: str, *, sudo: bool | None = None) -> bool:
    """Remove a directory unless there is something in it; whether it is gone."""
    if await exists(host, path, sudo=sudo):
        await host.run("rmdir", "--ignore-fail-on-non-empty", "--", path, sudo=sudo)
    return not await exists(host, path, sudo=sudo)


async def is_empty(host: Host, path: str, *, sudo: bool | None = None) -> bool:
    """Whether there is nothing in a directory but what its file system has put there."""
    return not await _contents(host, path, sudo)


async def empty(host: Host, path: str, *, sudo: bool | None = None) -> None:
    """Remove all that is in a directory, and leave the directory itself."""
    found = await _contents(host, path, sudo)
    if found:
        await host.run("rm", "-rf", "--", *(f"{path}/{name}" for name in found), sudo=sudo)


async def _contents(host: Host, path: str, sudo: bool | None) -> list[str]:
    look = ("ls", "-A", "--", path)
    told = host.checked(look, await host.ask(*look, env=C_LOCALE, sudo=sudo)).text
    return [name for name in told.splitlines() if name != _OF_THE_FILE_SYSTEM]
