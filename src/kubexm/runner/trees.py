"""Many files below a directory of a host: looked at, sent and put in place all together."""

from __future__ import annotations

import os
import tarfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import IO, Any

import msgspec

from kubexm.common.trees import PUT_IN_PLACE
from kubexm.connector.base import C_LOCALE, STAT, Completed, read_stat
from kubexm.errors import CommandFailed, StepFailed
from kubexm.runner import causes, files, priors
from kubexm.runner.host import Command, FileStat, Host, Progress
from kubexm.runner.priors import Prior

WORDS = 64 << 10
"""Bytes of names that one command takes."""
_STAT_NAMED = (*STAT[:2], f"{STAT[2]}|%n", *STAT[3:])
_FIELDS = STAT[2].count("|") + 1
_MISSING = ("No such file or directory", "Not a directory")


class Wanted(msgspec.Struct, frozen=True):
    """A file as it has to be."""

    mode: int
    digest: str


class Found(msgspec.Struct, frozen=True):
    """What is there of some paths."""

    stats: Mapping[str, FileStat]
    digests: Mapping[str, str]


def look_commands(
    host: Host, paths: Sequence[str], contents: Sequence[str], *, sudo: bool | None = None
) -> list[Command]:
    """Ask what is at paths, and for the sha256 of some of them; `found` reads the answers."""
    looks = [
        host.command(*_STAT_NAMED, *some, sudo=sudo, env=C_LOCALE) for some in _portions(paths)
    ]
    return [
        *looks,
        *(files.checksum_command(host, *some, sudo=sudo) for some in _portions(contents)),
    ]


def found(answers: Sequence[Completed], paths: Sequence[str]) -> Found:
    """What is there; `paths` are those that were asked about."""
    looks = len(list(_portions(paths)))
    stats: dict[str, FileStat] = {}
    digests: dict[str, str] = {}
    for answer in answers:
        _require_read(answer)
    for line in _lines(answers[:looks]):
        *about, name = line.split("|", _FIELDS)
        if (stat := read_stat(Completed(0, "|".join(about).encode()))) is not None:
            stats[name] = stat
    for line in _lines(answers[looks:]):
        digest, _, name = line.partition("  ")
        digests[name] = digest
    return Found(stats, digests)


async def send(
    host: Host,
    source: str,
    path: str,
    wanted: Mapping[str, Wanted],
    directories: Mapping[str, int],
    known: Found,
    *,
    owner: str | None = None,
    group: str | None = None,
    sudo: bool | None = None,
    progress: Progress | None = None,
) -> None:
    """Bring files of this machine below a directory, in one stream, each put in place whole."""
    members = [_member(path, name, file, known) for name, file in wanted.items()]
    folders = [(name, mode) for name, mode in directories.items() if name != "."]
    archive = _archive(host, path)
    await files.make_directory(host, archive.rpartition("/")[0], mode=0o700, sudo=sudo)

    def pack(file: IO[bytes]) -> None:
        _pack(Path(source), members, folders, file)

    key = (source, tuple(members), tuple(folders))
    await host.upload_made(key, pack, archive, mode=0o600, sudo=sudo, progress=progress)
    mode = f"{directories.get('.', 0o755):04o}"
    try:
        await _put_in_place(host, path, archive, owner, group, mode, sudo)
    except StepFailed:
        await files.remove(host, archive, sudo=sudo)
        raise
    await files.remove(host, archive, sudo=sudo)


async def capture(
    host: Host,
    path: str,
    names: Sequence[str],
    directories: Sequence[str],
    copy: str,
    known: Found,
    *,
    sudo: bool | None = None,
) -> Prior:
    """All that is needed to restore these names below a directory."""
    there = {name: None for name in names if f"{path}/{name}" in known.stats}
    above = await files.missing(host, path, sudo=sudo)
    missing = [f"{path}/{name}" for name in directories if name != "."]
    made = sorted((one for one in missing if one not in known.stats), reverse=True)
    prior: dict[str, Any] = {
        "kind": "files",
        "absent": [name for name in names if name not in there],
        "made": [*made, *above],
    }
    if there:
        prior["copy"] = await priors.keep_names(host, path, list(there), copy, sudo=sudo)
    return prior


async def restore(host: Host, path: str, prior: Prior, *, sudo: bool | None = None) -> str | None:
    """Bring back what was there; if something may not be touched, why it is left."""
    await files.remove_part(host, _archive(host, path), sudo=sudo)
    if copy := prior.get("copy"):
        await _put_in_place(host, path, copy, None, None, "", sudo)
    for some in _portions([f"{path}/{name}" for name in prior["absent"]]):
        await host.run("rm", "-f", "--", *some, sudo=sudo)
    for directory in prior["made"]:
        # What others have put there meanwhile is not ours: such a directory stays.
        if not await files.remove_empty(host, directory, sudo=sudo):
            return f"`{directory}` is not empty"
    return None


def _archive(host: Host, path: str) -> str:
    """Where the files that go below a directory arrive on the host."""
    return f"{host.state_dir}/trees/{sha256(path.encode()).hexdigest()[:32]}.tar"


async def _put_in_place(
    host: Host,
    path: str,
    archive: str,
    owner: str | None,
    group: str | None,
    mode: str,
    sudo: bool | None,
) -> None:
    words = (path, archive, owner or "", group or "", mode)
    command = host.script(PUT_IN_PLACE, *words, sudo=sudo, env=C_LOCALE)
    done = await host.execute(command)
    if not done.ok:
        # The first complaint is the reason; those after it follow from it.
        reason = (done.error_text.splitlines() or ["no reason given"])[0]
        hint = causes.hint_for(("tar",), done)
        raise StepFailed(f"can't put files below `{path}`: {reason}", hint=hint)


_Member = tuple[str, Wanted, int, int]
"""A name, the file, and the numbers of whom it belongs to."""


def _member(path: str, name: str, file: Wanted, known: Found) -> _Member:
    there = known.stats.get(f"{path}/{name}")
    return (name, file, 0, 0) if there is None else (name, file, there.uid, there.gid)


def _pack(
    source: Path, members: Iterable[_Member], folders: Iterable[tuple[str, int]], file: IO[bytes]
) -> None:
    with tarfile.open(fileobj=file, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for name, mode in folders:
            folder = _info(name, mode)
            folder.type = tarfile.DIRTYPE
            archive.addfile(folder)
        for name, wanted, uid, gid in members:
            info = _info(name, wanted.mode)
            info.uid, info.gid = uid, gid
            _add(archive, info, source / name, wanted)


def _info(name: str, mode: int) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.mode = mode
    return info


def _add(archive: tarfile.TarFile, info: tarfile.TarInfo, path: Path, wanted: Wanted) -> None:
    try:
        with path.open("rb") as file:
            info.size = os.fstat(file.fileno()).st_size
            read = _Digesting(file)
            archive.addfile(info, read)
    except OSError as error:
        raise StepFailed(f"can't read `{path}`: {error.strerror}") from error
    if read.digest.hexdigest() != wanted.digest:
        raise StepFailed(
            f"`{path}` has changed since it was planned",
            hint="run the pipeline anew, or bring the file back and resume",
        )


class _Digesting:
    """A file that is hashed as it is read."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.digest = sha256()

    def read(self, size: int = -1, /) -> bytes:
        data = self._file.read(size)
        self.digest.update(data)
        return data


def _portions(names: Sequence[str]) -> Iterator[list[str]]:
    """The names in lists that fit into a command each."""
    some: list[str] = []
    size = 0
    for name in names:
        if some and size + len(name) > WORDS:
            yield some
            some, size = [], 0
        some.append(name)
        size += len(name)
    if some:
        yield some


def _lines(answers: Sequence[Completed]) -> Iterator[str]:
    for answer in answers:
        yield from answer.text.splitlines()


def _require_read(answer: Completed) -> None:
    """Raise unless all that went wrong is that something is not there."""
    if any(not line.endswith(_MISSING) for line in answer.error_text.splitlines()):
        raise CommandFailed(("stat",), answer.exit, stderr=answer.error_text)
