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
        case ["--null", "--no-recursion", "-cf", path, "-C", below, "-T", "-"]:
            names = shell.command.stdin.decode().split("\0")[:-1]
            return _pack(shell, shell.path(path), shell.path(below), names)
    raise shell.unexpected()


def put_in_place(shell: Shell, args: Sequence[str]) -> Completed:
    """What the script for many files does: those in an archive come below a directory."""
    top, path, owner, group, mode = args
    files = shell.files
    if files.lookup(top) is None:
        files.make_directory(top, int(mode or "755", 8), parents=True)
        files.change(top, owner=owner or None, group=group or None)
    with tarfile.open(fileobj=io.BytesIO(files.read(path))) as archive:
        for member in archive.getmembers():
            place = f"{top}/{member.name}"
            if not (member.isdir() and files.lookup(place) is not None):
                _placed(shell, archive, member, place)
                who = owner or member.uname or None, group or member.gname or None
                files.change(place, owner=who[0], group=who[1], follow=False)
    return Completed(0)


def _placed(shell: Shell, archive: tarfile.TarFile, member: tarfile.TarInfo, place: str) -> None:
    found = shell.files.lookup(place)
    if found is not None and (found.kind == "link" or member.issym()):
        shell.files.remove(place)
    if member.isdir():
        shell.files.make_directory(place, member.mode)
    else:
        _unpack(shell, archive, member, place)


def _pack(shell: Shell, path: str, below: str, names: Sequence[str]) -> Completed:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        for name in names:
            found = shell.files.find(f"{below}/{name}")
            info = tarfile.TarInfo(name)
            info.mode, info.uname, info.gname = found.mode, found.owner, found.group
            if found.kind == "link":
                info.type, info.linkname = tarfile.SYMTYPE, found.target
                archive.addfile(info)
            else:
                info.size = found.size
                archive.addfile(info, io.BytesIO(shell.files.read(f"{below}/{name}")))
    shell.files.write(path, data.getvalue())
    return Completed(0)


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
