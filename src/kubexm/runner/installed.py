"""Files of artifacts on a host: how they get to their places, and what the host knows of them.

A host remembers which artifact lies where, so that whoever has never seen its checksum can tell.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from hashlib import sha256
from posixpath import basename, dirname, normpath

import msgspec

from kubexm.common.counting import few
from kubexm.errors import StepFailed
from kubexm.runner import archives, files, priors
from kubexm.runner.host import Command, Completed, FileStat, Host
from kubexm.runner.priors import Prior

_LONGEST = 1 << 18
"""Bytes that a record may have."""


class Record(msgspec.Struct, frozen=True, omit_defaults=True):
    """What lies at a place, as the host remembers it."""

    key: str
    """What the store calls the artifact."""
    digest: str
    """Its sha256."""
    members: dict[str, str] = {}
    """Of an archive: which of its files go where, as it was asked for."""
    files: dict[str, int] = {}
    """Of an archive: the size of each file that came out of it, by its path."""


def record_command(host: Host, place: str, *, sudo: bool | None = None) -> Command:
    """Ask what the host remembers of a place; `recorded` reads the answer."""
    return files.content_command(host, _record_path(host, place), _LONGEST, sudo=sudo)


def recorded(answer: Completed) -> Record | None:
    """What the host remembers; None if that is nothing, or can't be read."""
    return _decoded(_text(answer))


async def told(host: Host, place: str, *, sudo: bool | None = None) -> str:
    """The text of what the host remembers of a place; nothing if it has no record of it."""
    (answer,) = await host.batch((record_command(host, place, sudo=sudo),))
    return _text(answer)


async def remember(host: Host, place: str, record: Record, *, sudo: bool | None = None) -> None:
    """Have the host remember what lies at a place."""
    await _keep(host, place, msgspec.json.encode(record).decode(), sudo)


async def make_room(host: Host, *, sudo: bool | None = None) -> None:
    """Have the directory in which records and archives lie."""
    await files.make_directory(host, _directory(host), sudo=sudo)


def archive_path(host: Host, place: str) -> str:
    """Where an archive lies on the host while files for this place come out of it."""
    return f"{_record_path(host, place)}.archive"


def places(names: Sequence[str], members: Mapping[str, str]) -> dict[str, str]:
    """Where files of an archive go, by their names in it; `StepFailed` if it lacks some.

    What is named goes where that is said, and only the rest where a `*` says.
    """
    named = sorted(members.items(), key=lambda member: "*" in member[0])
    found: dict[str, str] = {}
    lacking = []
    for wanted, target in named:
        chosen = [name for name in names if _is(name, wanted)]
        lacking += [wanted] * (not chosen)
        for name in chosen:
            path = target + basename(name) if target.endswith("/") else target
            found.setdefault(normpath(name), path)
    if lacking:
        what = f"the archive has no {few(lacking)}; it has {few(names)}"
        raise StepFailed(what, hint="correct the names of its members")
    return found


async def put(
    host: Host, archive: str, targets: Mapping[str, str], mode: int, *, sudo: bool | None = None
) -> dict[str, int]:
    """Put files of an archive at their places, each whole or not at all; their sizes by path."""
    above = sorted({dirname(path) for path in targets.values()})
    await _require_directories(host, above, sudo)
    beside = f"{above[0]}/.{basename(archive)}"
    try:
        await archives.unpack(host, archive, beside, sudo=sudo)
        sources = {f"{beside}/{name}": path for name, path in targets.items()}
        await host.run("chmod", "--", f"{mode:05o}", *sources, sudo=sudo)
        found = await _stats(host, sources, sudo)
        for source, path in sources.items():
            # What runs goes on with the file that it has.
            await host.run("mv", "-fT", "--", source, path, sudo=sudo)
    finally:
        await files.remove(host, beside, recursive=True, sudo=sudo)
    return {sources[source]: one.size for source, one in found.items() if one is not None}


async def altered(host: Host, record: Record, mode: int, *, sudo: bool | None = None) -> list[str]:
    """Which files are not as they came out of their archive."""
    found = await _stats(host, record.files, sudo)
    return [
        f"`{path}` {reason}"
        for path, one in found.items()
        if (reason := _altered(one, record.files[path], mode))
    ]


async def capture(
    host: Host, place: str, paths: Iterable[str], copy: str, *, sudo: bool | None = None
) -> Prior:
    """What is at these paths, and what the host remembers of the place that they belong to."""
    there = await _stats(host, paths, sudo)
    found: dict[str, Prior] = dict.fromkeys(there, priors.ABSENT)
    held = [path for path, one in there.items() if one is not None]
    if held:
        # All copies in one directory of the name that is given, so that they go together.
        await files.make_directory(host, priors.kept_at(host, copy), mode=0o700, sudo=sudo)
    for number, path in enumerate(held):
        found[path] = await priors.capture(host, path, f"{copy}/{number}", sudo=sudo)
    return {"files": found, "record": await told(host, place, sudo=sudo)}


async def restore(host: Host, place: str, prior: Prior, *, sudo: bool | None = None) -> None:
    """Bring back what was there; what a later version has added is removed."""
    now = _decoded(await told(host, place, sudo=sudo))
    before = _decoded(prior["record"])
    known = {*prior["files"], *(before.files if before else ())}
    for path in now.files if now else ():
        if path not in known:
            await files.remove(host, path, sudo=sudo)
    for path, one in prior["files"].items():
        await priors.restore(host, path, one, sudo=sudo)
    await _keep(host, place, prior["record"], sudo)


async def restore_record(host: Host, place: str, prior: Prior, *, sudo: bool | None = None) -> None:
    """Let the host remember of a place what it did before."""
    await _keep(host, place, prior.get("record", ""), sudo)


async def _require_directories(host: Host, paths: Sequence[str], sudo: bool | None) -> None:
    found = await _stats(host, paths, sudo)
    missing = [path for path, one in found.items() if one is None]
    if missing:
        hint = "make it with a `directory` step before this one"
        raise StepFailed(f"there is no directory {few(missing)}", hint=hint)


async def _stats(host: Host, paths: Iterable[str], sudo: bool | None) -> dict[str, FileStat | None]:
    wanted = [*paths]
    answers = await host.batch([files.stat_command(host, path, sudo=sudo) for path in wanted])
    return {path: files.seen(answer) for path, answer in zip(wanted, answers, strict=True)}


def _altered(found: FileStat | None, size: int, mode: int) -> str:
    if found is None:
        return "does not exist"
    if found.kind != "file":
        return f"is a {found.kind}, want a file"
    if found.size != size:
        return f"has {found.size:,} bytes, want {size:,}"
    return "" if found.mode == mode else f"mode {found.mode:04o}, want {mode:04o}"


def _is(name: str, wanted: str) -> bool:
    """Whether a name of an archive is a file that is wanted; `./a` is `a`."""
    if name.endswith("/"):
        return False
    name, wanted = normpath(name), normpath(wanted)
    return name == wanted or (
        wanted.endswith("*") and dirname(name) == dirname(wanted) and fnmatchcase(name, wanted)
    )


async def _keep(host: Host, place: str, text: str, sudo: bool | None) -> None:
    path = _record_path(host, place)
    if not text:
        await files.remove(host, path, sudo=sudo)
        return
    await make_room(host, sudo=sudo)
    await files.write(host, path, text.encode(), mode=0o644, sudo=sudo)


def _text(answer: Completed) -> str:
    return files.content(answer, "the record of an artifact").decode(errors="replace")


def _decoded(text: str) -> Record | None:
    try:
        return msgspec.json.decode(text, type=Record) if text else None
    except msgspec.DecodeError:
        return None


def _record_path(host: Host, place: str) -> str:
    return f"{_directory(host)}/{sha256(place.encode()).hexdigest()[:32]}"


def _directory(host: Host) -> str:
    return f"{host.state_dir}/artifacts"
