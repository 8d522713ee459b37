"""Simulated programs that look at files and change them."""

from __future__ import annotations

import errno
import re
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from posixpath import basename, join

from kubexm.connector.base import STAT, Completed
from kubexm.sim.shell import OK, Program, Shell, failed, options, said
from kubexm.sim.state import Inode

_STAT_FORMAT = STAT[2]
_KINDS = {"file": "regular file", "directory": "directory", "link": "symbolic link"}


def stat(shell: Shell, args: Sequence[str]) -> Completed:
    given, paths = options(shell, args, flags="L", valued="c")
    if given.get("c") == f"{_STAT_FORMAT}|%n":
        return _each(shell, "stat", paths, lambda path, name: _named(shell, path, name))
    if given.get("c") != _STAT_FORMAT:
        raise shell.unexpected()
    lines = []
    for path in map(shell.path, paths):
        found = shell.files.find(shell.files.resolve(path) if "L" in given else path)
        lines.append(_described(shell, found))
    return said("".join(lines))


def _named(shell: Shell, path: str, name: str) -> bytes:
    return _described(shell, shell.files.find(path)).rstrip().encode() + f"|{name}\n".encode()


def _described(shell: Shell, found: Inode) -> str:
    kind = _KINDS[found.kind]
    if found.kind == "file" and not found.size:
        kind = "regular empty file"
    uid, gid = shell.user_id(found.owner) or 0, shell.group_id(found.group) or 0
    return f"{kind}|{found.mode:o}|{found.owner}|{uid}|{found.group}|{gid}|{found.size}\n"


def test(shell: Shell, args: Sequence[str]) -> Completed:
    match list(args):
        case ["!", *rest]:
            return Completed(0 if test(shell, rest).exit else 1)
        case [("-n" | "-z") as sign, text]:
            return Completed(int(bool(text) == (sign == "-z")))
        case [first, ("=" | "!=") as sign, second]:
            return Completed(int((first == second) != (sign == "=")))
        case [("-e" | "-f" | "-d" | "-L" | "-h" | "-s" | "-r" | "-w" | "-x") as sign, path]:
            return Completed(0 if _holds(shell, sign, shell.path(path)) else 1)
    raise shell.unexpected()


def _holds(shell: Shell, sign: str, path: str) -> bool:
    itself = shell.files.lookup(path)
    if sign in ("-L", "-h"):
        return itself is not None and itself.kind == "link"
    found = shell.files.lookup(shell.files.resolve(path))
    if found is None:
        return False
    kinds = {"-f": "file", "-d": "directory"}
    if sign in kinds:
        return found.kind == kinds[sign]
    if sign == "-s":
        return found.size > 0
    return bool(found.mode & 0o111) if sign == "-x" else True


def cat(shell: Shell, args: Sequence[str]) -> Completed:
    _, paths = options(shell, args)
    if not paths:
        return Completed(0, shell.command.stdin)
    return _each(shell, "cat", paths, lambda path, _: shell.files.read(path))


def head(shell: Shell, args: Sequence[str]) -> Completed:
    given, paths = options(shell, args, valued="c")
    if "c" not in given or len(paths) != 1:
        raise shell.unexpected()
    return Completed(0, shell.files.read(shell.path(paths[0]))[: int(given["c"])])


def tail(shell: Shell, args: Sequence[str]) -> Completed:
    given, paths = options(shell, args, valued="c")
    if "c" not in given or len(paths) != 1:
        raise shell.unexpected()
    return Completed(0, shell.files.read(shell.path(paths[0]))[-int(given["c"]) :])


def dd(shell: Shell, args: Sequence[str]) -> Completed:
    given = dict(arg.partition("=")[::2] for arg in args)
    if not given.keys() <= {"if", "bs", "skip", "count", "iflag", "status"} or "if" not in given:
        raise shell.unexpected()
    data = shell.files.read(shell.path(given["if"]))
    size = int(given.get("bs", "512"))
    start = size * int(given.get("skip", "0"))
    stop = start + size * int(given["count"]) if "count" in given else None
    return Completed(0, data[start:stop])


def find(shell: Shell, args: Sequence[str]) -> Completed:
    """Only as it is called for the checksums of what is a file, and for files that are new."""
    match list(args):
        case ["-L", *paths, "-maxdepth", "0", "-type", "f", "-exec", "sha256sum", "--", "{}", "+"]:
            pass
        case [top, "-mindepth", least, "-maxdepth", most, "-name", name, "-mmin", _] if (
            least == most
        ):
            # No file of a world has a time, so all are new.
            paths = [path for path in _below(shell, top, int(least)) if fnmatchcase(path, name)]
            return said("".join(f"{path}\n" for path in paths))
        case _:
            raise shell.unexpected()
    missing = [path for path in paths if not _holds(shell, "-e", shell.path(path))]
    summed = sha256sum(shell, [path for path in paths if _holds(shell, "-f", shell.path(path))])
    complaints = "".join(f"find: '{path}': No such file or directory\n" for path in missing)
    return Completed(1 if missing else 0, summed.stdout, complaints.encode())


def _below(shell: Shell, path: str, depth: int) -> list[str]:
    """What lies so deep below a directory."""
    if depth == 0:
        return [path]
    names = shell.files.children(shell.path(path))
    return [found for name in names for found in _below(shell, f"{path}/{name}", depth - 1)]


def sha256sum(shell: Shell, args: Sequence[str]) -> Completed:
    _, paths = options(shell, args)
    return _each(
        shell,
        "sha256sum",
        paths,
        lambda path, given: f"{shell.files.digest(path)}  {given}\n".encode(),
    )


def _each(
    shell: Shell, program: str, paths: Sequence[str], read: Callable[[str, str], bytes]
) -> Completed:
    """What can be read of some files, and a complaint for each that can't."""
    out, complaints = [], []
    for given in paths:
        try:
            out.append(read(shell.path(given), given))
        except OSError as error:
            complaints.append(f"{program}: {given}: {error.strerror}\n")
    return Completed(1 if complaints else 0, b"".join(out), "".join(complaints).encode())


def grep(shell: Shell, args: Sequence[str]) -> Completed:
    """Lines that match: a basic pattern, an extended one with -E, plain text with -F."""
    given, (text, *paths) = options(shell, args, flags="cEFhHiqsvx")
    matches = _matcher(shell, given, text)
    named = "H" in given or (len(paths) > 1 and "h" not in given)
    found: list[str] = []
    complaints: list[str] = []
    any_match = False
    for path in paths or ("-",):
        try:
            data = shell.files.read(shell.path(path)) if paths else shell.command.stdin
        except OSError as error:
            complaints.append(f"grep: {path}: {error.strerror}\n")
            continue
        lines = [line for line in _lines(data) if matches(line) != ("v" in given)]
        any_match = any_match or bool(lines)
        shown = [str(len(lines))] if "c" in given else lines
        found += [f"{path}:{line}\n" if named else f"{line}\n" for line in shown]
    quiet = "q" in given
    code = 2 if complaints and not (quiet and any_match) else int(not any_match)
    stderr = "" if "s" in given else "".join(complaints)
    return Completed(code, b"" if quiet else "".join(found).encode(), stderr.encode())


def _lines(data: bytes) -> list[str]:
    return data.decode(errors="replace").removesuffix("\n").split("\n") if data else []


def _matcher(shell: Shell, given: Mapping[str, str], text: str) -> Callable[[str], bool]:
    if "[:" in text and "F" not in given:
        raise shell.unexpected()  # classes of characters
    source = re.escape(text) if "F" in given else text if "E" in given else _as_extended(text)
    try:
        pattern = re.compile(source, re.IGNORECASE if "i" in given else 0)
    except re.error:
        raise shell.unexpected() from None
    search = pattern.fullmatch if "x" in given else pattern.search
    return lambda line: search(line) is not None


def _as_extended(basic: str) -> str:
    """In a basic pattern these are plain, and mean something behind a backslash."""
    return re.sub(
        r"\\?[(){}+?|]",
        lambda found: found[0][1:] if found[0][0] == "\\" else f"\\{found[0]}",
        basic,
    )


def mkdir(shell: Shell, args: Sequence[str]) -> Completed:
    given, paths = options(shell, args, flags="p", valued="m")
    mode = int(given.get("m", "755"), 8)
    for path in paths:
        shell.files.make_directory(shell.path(path), mode, parents="p" in given)
    return OK


def rm(shell: Shell, args: Sequence[str]) -> Completed:
    given, paths = options(shell, args, flags="rRf")
    recursive = bool({"r", "R"} & given.keys())
    for path in map(shell.path, paths):
        found = shell.files.lookup(path)
        if found is None and "f" in given:
            continue
        if recursive:
            shell.files.remove_tree(path)
        elif found is not None and found.kind == "directory":
            return failed(f"rm: cannot remove '{path}': Is a directory")
        else:
            shell.files.remove(path)
    return OK


def rmdir(shell: Shell, args: Sequence[str]) -> Completed:
    lenient = "--ignore-fail-on-non-empty" in args
    _, paths = options(shell, [arg for arg in args if arg != "--ignore-fail-on-non-empty"])
    for path in map(shell.path, paths):
        if shell.files.find(path).kind != "directory":
            return failed(f"rmdir: failed to remove '{path}': Not a directory")
        try:
            shell.files.remove(path)
        except OSError as error:
            if not (lenient and error.errno == errno.ENOTEMPTY):
                raise
    return OK


def mv(shell: Shell, args: Sequence[str]) -> Completed:
    given, paths = options(shell, args, flags="fT")
    source, target = map(shell.path, paths)
    shell.files.rename(source, target if "T" in given else _into(shell, source, target))
    return OK


def cp(shell: Shell, args: Sequence[str]) -> Completed:
    given, paths = options(shell, args, flags="apfTrRd")
    source, target = map(shell.path, paths)
    found = shell.files.find(source)
    if found.kind == "directory" and not {"a", "r", "R"} & given.keys():
        return failed(f"cp: -r not specified; omitting directory '{source}'")
    place = target if "T" in given else _into(shell, source, target)
    shell.files.copy(source if {"a", "d"} & given.keys() else shell.files.resolve(source), place)
    return OK


def _into(shell: Shell, source: str, target: str) -> str:
    found = shell.files.lookup(shell.files.resolve(target))
    if found is not None and found.kind == "directory":
        return join(target, basename(source.rstrip("/")))
    return target


def chmod(shell: Shell, args: Sequence[str]) -> Completed:
    _, (mode, *paths) = options(shell, args)
    if not re.fullmatch("[0-7]{3,5}", mode):
        raise shell.unexpected()
    for path in paths:
        shell.files.change(shell.path(path), mode=int(mode, 8))
    return OK


def chown(shell: Shell, args: Sequence[str]) -> Completed:
    given, (who, *paths) = options(shell, args, flags="h")
    owner, _, group = who.partition(":")
    for path in paths:
        shell.files.change(
            shell.path(path), owner=owner or None, group=group or None, follow="h" not in given
        )
    return OK


def chgrp(shell: Shell, args: Sequence[str]) -> Completed:
    _, (group, *paths) = options(shell, args)
    return chown(shell, ("--", f":{group}", *paths))


def touch(shell: Shell, args: Sequence[str]) -> Completed:
    _, paths = options(shell, args)
    for path in map(shell.path, paths):
        if shell.files.lookup(path) is None:
            shell.files.write(path, b"")
    return OK


def ln(shell: Shell, args: Sequence[str]) -> Completed:
    given, (target, path) = options(shell, args, flags="sfnT")
    if "s" not in given:
        raise shell.unexpected()
    shell.files.make_link(target, shell.path(path), force="f" in given)
    return OK


def readlink(shell: Shell, args: Sequence[str]) -> Completed:
    given, (path,) = options(shell, args, flags="fn")
    if "f" in given:
        return said(f"{shell.files.resolve(shell.path(path))}\n")
    found = shell.files.find(shell.path(path))
    return said(f"{found.target}\n") if found.kind == "link" else Completed(1)


def ls(shell: Shell, args: Sequence[str]) -> Completed:
    given, paths = options(shell, args, flags="A1")
    path = shell.path(paths[0] if paths else ".")
    found = shell.files.lookup(shell.files.resolve(path))
    if found is None:
        return failed(f"ls: cannot access '{path}': No such file or directory", 2)
    if found.kind != "directory":
        return said(f"{paths[0]}\n")
    names = shell.files.children(shell.files.resolve(path))
    shown = [name for name in names if "A" in given or not name.startswith(".")]
    return said("".join(f"{name}\n" for name in shown))


PROGRAMS: Mapping[str, Program] = {
    "cat": cat,
    "chgrp": chgrp,
    "chmod": chmod,
    "chown": chown,
    "cp": cp,
    "dd": dd,
    "find": find,
    "grep": grep,
    "head": head,
    "ln": ln,
    "ls": ls,
    "mkdir": mkdir,
    "mv": mv,
    "readlink": readlink,
    "rm": rm,
    "rmdir": rmdir,
    "sha256sum": sha256sum,
    "stat": stat,
    "tail": tail,
    "test": test,
    "touch": touch,
}
