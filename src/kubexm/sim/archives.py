"""Simulated tar: it lists archives, and unpacks them."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping, Sequence

from kubexm.connector.base import Completed
from kubexm.sim.shell import Program, Shell, failed, said

_STRIP = "--strip-components="


def tar(shell: Shell, args: Sequence[str]) -> Completed:
    match list(args):
        case ["-tf", path]:
            return _read(shell, path, None, 0)
        case ["-xf", path, "--no-same-owner", strip, "-C", into] if strip.startswith(_STRIP):
            return _read(shell, path, shell.path(into), int(strip.removeprefix(_STRIP)))
    raise shell.unexpected()


def _read(shell: Shell, path: str, into: str | None, strip: int) -> Completed:
    data = io.BytesIO(shell.files.read(shell.path(path)))
    try:
        with tarfile.open(fileobj=data) as archive:
            members = archive.getmembers()
            if into is None:
                return said("".join(f"{_shown(member)}\n" for member in members))
            for member in members:
                _unpack(shell, archive, member, f"{into}/{_stripped(member.name, strip)}")
    except (tarfile.TarError, EOFError):
        return failed("tar: This does not look like a tar archive", 2)
    return Completed(0)


def _unpack(shell: Shell, archive: tarfile.TarFile, member: tarfile.TarInfo, place: str) -> None:
    if place.endswith("/"):
        return
    if member.isdir():
        shell.files.make_directory(place, parents=True)
    elif member.issym():
        shell.files.make_link(member.linkname, place)
    elif (source := archive.extractfile(member)) is not None:
        shell.files.make_directory(place.rpartition("/")[0], parents=True)
        shell.files.write(place, source.read(), mode=member.mode)


def _shown(member: tarfile.TarInfo) -> str:
    return f"{member.name}/" if member.isdir() else member.name


def _stripped(name: str, parts: int) -> str:
    return "/".join(name.strip("/").split("/")[parts:])


PROGRAMS: Mapping[str, Program] = {"tar": tar}
