"""Files that one step makes together, some of them secret: read, written, and taken back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from posixpath import dirname

from kubexm.pki.cluster import SECRET, File
from kubexm.runner import files
from kubexm.runner.host import Command, Completed, Host
from kubexm.runtime.contexts import StepContext
from kubexm.step.files import FilePresent

_LARGEST = 1 << 20
"""Bytes that are read of a file; no certificate and no kubeconfig has more."""


def reading(host: Host, paths: Iterable[str], *, sudo: bool | None = None) -> list[Command]:
    """Ask for the content of files; `contents` reads the answers."""
    return [files.content_command(host, path, _LARGEST, sudo=sudo) for path in paths]


def contents(paths: Sequence[str], answers: Sequence[Completed]) -> dict[str, bytes]:
    """The files that are there, by path; one without content is as good as none."""
    pairs = zip(paths, answers, strict=True)
    read = {path: files.content(answer, path) for path, answer in pairs}
    return {path: data for path, data in read.items() if data}


async def read(host: Host, paths: Sequence[str], *, sudo: bool | None = None) -> dict[str, bytes]:
    """The same at once."""
    return contents(paths, await host.batch(reading(host, paths, sudo=sudo)))


def below(directory: str, there: Mapping[str, bytes]) -> dict[str, bytes]:
    """Those of some files that are in a directory, by their paths in it."""
    above = f"{directory}/"
    return {
        path.removeprefix(above): data for path, data in there.items() if path.startswith(above)
    }


async def write(ctx: StepContext, made: Mapping[str, File], *, sudo: bool | None = None) -> None:
    """Write files in their order, and the directories above; what was there is remembered."""
    for path in _directories(made):
        await _make(ctx, path, sudo)
    for path, file in made.items():
        await _wanted(path, file, sudo).run(ctx)


async def restore(ctx: StepContext, paths: Sequence[str], *, sudo: bool | None = None) -> None:
    """Bring back what was there; a directory goes too, unless others use it by now."""
    for path in paths:
        await FilePresent(path, sudo=sudo).rollback(ctx)
    for path in reversed(_directories(paths)):
        for made in (ctx.ledger.recall(_place(path)) or {}).get("made", ()):
            await files.remove_empty(ctx.host, made, sudo=sudo)


def resources(paths: Sequence[str]) -> tuple[str, ...]:
    """What the ledger calls these files and the directories above them."""
    own = (name for path in paths for name in FilePresent(path).resources)
    return (*own, *map(_place, _directories(paths)))


async def _make(ctx: StepContext, path: str, sudo: bool | None) -> None:
    """Make a directory that is not there; one that another step has made is that step's."""
    if made := await files.missing(ctx.host, path, sudo=sudo):
        await ctx.ledger.remember(_place(path), {"made": made})
        await files.make_directory(ctx.host, path, sudo=sudo)


def _place(path: str) -> str:
    return f"place:{path}"


def _wanted(path: str, file: File, sudo: bool | None) -> FilePresent:
    return FilePresent(
        path,
        content=file.content.decode(),
        mode=f"{file.mode:04o}",
        secret=file.mode == SECRET,
        sudo=sudo,
    )


def _directories(paths: Iterable[str]) -> list[str]:
    return sorted({dirname(path) for path in paths})
