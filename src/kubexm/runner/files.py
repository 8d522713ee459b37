"""Files of a host: what is there, what is in it, and how to change either.

What only looks comes in two halves, a command and a reading of its answer, so that many looks
can travel together.
"""

from __future__ import annotations

from pathlib import PurePosixPath

from kubexm.connector.base import C_LOCALE, CHECKSUM, HEAD, STAT, is_missing, read_stat
from kubexm.errors import StepFailed
from kubexm.runner import causes
from kubexm.runner.host import Command, Completed, FileStat, Host

SHOWN = 1 << 16
"""Files up to this size are read to be compared, larger ones by their checksum."""
EDITED = 1 << 19
"""Files up to this size can be edited line by line."""


def stat_command(host: Host, path: str, *, sudo: bool | None = None) -> Command:
    """Ask what is at a path; `seen` reads the answer."""
    return host.command(*STAT, path, sudo=sudo, env=C_LOCALE)


def content_command(host: Host, path: str, limit: int, *, sudo: bool | None = None) -> Command:
    """Ask for the beginning of a file; `content` reads the answer."""
    return host.command(*HEAD, str(limit), "--", path, sudo=sudo, env=C_LOCALE)


def checksum_command(host: Host, *paths: str, sudo: bool | None = None) -> Command:
    """Ask for the sha256 of files; `checksum_of` and `digest_of` read the answer."""
    return host.command(*CHECKSUM, *paths, sudo=sudo, env=C_LOCALE)


def seen(answer: Completed) -> FileStat | None:
    """What is at the path; None if nothing is."""
    return read_stat(answer)


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
    try:
        await host.put(path, data, mode=mode, owner=owner, group=group, sudo=sudo)
    except StepFailed as error:
        if error.hint or not (hint := await _remedy(host, path, error, sudo)):
            raise
        raise StepFailed(error.message, hint=hint) from error


async def _remedy(host: Host, path: str, error: StepFailed, sudo: bool | None) -> str:
    """What to do about a file that could not be written; nothing if nobody knows."""
    if hint := causes.hint_for_error(error):
        return hint
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
