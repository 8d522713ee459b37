"""Looks of the same kind at several things, made by one process.

Starting a process is most of what a short look costs a host, and some programs take several names.
Prechecks that travel together are mostly such looks. What one process said is taken apart again;
whenever that could go wrong (a name that is not there, another number of lines), the looks are
made singly: nobody sees a difference.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from kubexm.connector.base import (
    DIGESTING,
    READING,
    STAT,
    Command,
    Completed,
    FileStat,
    digesting,
    read_stat,
    reading,
)

Seen = Mapping[str, FileStat]
Split = Callable[[bytes, Sequence[str], Seen], Sequence[bytes]]
"""Takes apart what was said of things of these names; another number of parts if it can't."""
Argv = tuple[str, ...]

# The first $1 bytes of each of the files that follow, one after the other. At a pipe it would wait.
_BEGINNINGS = """size=$1; shift
for file do [ -f "$file" ] || exit 1; done
exec head -q -c "$size" -- "$@"
"""


_DIGEST = "digest"


class Kind(msgspec.Struct, frozen=True):
    """Looks that differ only in the thing that they look at."""

    words: Hashable
    several: Callable[[Sequence[str]], Argv]
    """The command that looks at several."""
    split: Split


class Look(msgspec.Struct, frozen=True):
    """A command that stands for some of those that were asked for."""

    command: Command
    askers: Mapping[str, Sequence[int]]
    """By name of a thing the numbers of the commands that ask for it."""
    split: Split | None

    @property
    def is_stat(self) -> bool:
        return self.command.argv[: len(STAT)] == STAT

    def apart(self, said: Completed, seen: Seen) -> Iterable[tuple[str, Completed]]:
        """What was said of each thing, as far as that is certain."""
        names = [*self.askers]
        if len(names) == 1:
            return ((names[0], said),)
        assert self.split is not None, "only looks that can be told apart are fused"
        whole = said.ok and not said.stderr
        parts = self.split(said.stdout, names, seen) if whole else ()
        if len(parts) != len(names):
            return ()
        return zip(names, (Completed(0, part) for part in parts), strict=True)


def fused(commands: Sequence[Command]) -> list[Look]:
    """These commands, which only look, in as few processes as can be."""
    if len(commands) == 1:
        return [Look(commands[0], {"": (0,)}, None)]
    kinds = [_kind(command) for command in commands]
    alike: dict[Hashable, list[int]] = {}
    for number, (command, (kind, _)) in enumerate(zip(commands, kinds, strict=True)):
        alike.setdefault(_alike(command, kind) or number, []).append(number)
    return [_look(commands, kinds, members) for members in alike.values()]


def answers(looks: Sequence[Look], said: Sequence[Completed]) -> dict[int, Completed]:
    """What was said to each of the commands; those that are missing have to be asked singly."""
    known: dict[int, Completed] = {}
    if all(look.split is None for look in looks):
        for look, answer in zip(looks, said, strict=True):
            known.update((asker, answer) for askers in look.askers.values() for asker in askers)
        return known
    seen: dict[str, FileStat] = {}
    # Contents are told apart by the sizes that were seen, so these come first.
    for look, answer in sorted(zip(looks, said, strict=True), key=lambda pair: not pair[0].is_stat):
        for name, part in look.apart(answer, seen):
            known.update((asker, part) for asker in look.askers[name])
            if look.is_stat and part.ok and (found := read_stat(part)) is not None:
                seen[name] = found
    return known


def place_of(command: Command) -> str | None:
    """The path at which a command looks that says nothing but that, if there is nothing."""
    match command.argv:
        case (*words, path) if (*words,) == STAT:
            pass
        case ("find", "-L", path, *_) if command.argv == digesting(path):
            pass
        case _:
            return None
    is_plain = path.startswith("/") and not path.endswith("/") and command.cwd is None
    return path if is_plain else None


def only_reads(command: Command) -> bool:
    """Whether what it prints is all that there is to know, if it succeeds."""
    match argv := command.argv:
        case ("stat", *_):
            return argv[: len(STAT)] == STAT
        case ("dd", *_):
            return argv[-len(READING) :] == READING
        case ("find", "-L", *_):
            return argv[-len(DIGESTING) :] == DIGESTING
        case ("sh", "-c", text, *_):
            return text == _BEGINNINGS
    return False


def _look(
    commands: Sequence[Command], kinds: Sequence[tuple[Kind | None, str]], members: Sequence[int]
) -> Look:
    first = commands[members[0]]
    kind, _ = kinds[members[0]]
    askers: dict[str, list[int]] = {}
    for number in members:
        askers.setdefault(kinds[number][1], []).append(number)
    if kind is None or len(askers) == 1:
        return Look(first, askers, None)
    return Look(replace(first, argv=kind.several([*askers])), askers, kind.split)


def _alike(command: Command, kind: Kind | None) -> tuple[Hashable, ...] | None:
    """What looks have in common that one process can make; None if it can't."""
    if kind is None or command.stdin:
        return None
    env = tuple(command.env.items())
    return kind.words, env, command.sudo, command.user, command.cwd, command.timeout


def _kind(command: Command) -> tuple[Kind | None, str]:
    """What kind of look this is, and at what."""
    match argv := command.argv:
        case (*words, name) if (*words,) == STAT or words[:2] == ["systemctl", "show"]:
            split = _lines if argv[0] == "stat" else _blocks
            return Kind((*words,), lambda names: (*words, *names), split), name
        case ("find", "-L", name, *_) if argv == digesting(name):
            return Kind(_DIGEST, lambda names: digesting(*names), _lines), name
        case ("dd", source, block, *_):
            name, size = source.removeprefix("if="), block.removeprefix("bs=")
            if size.isdecimal() and argv == reading(name, int(size), count=1):
                return Kind(("content", size), lambda names: _beginnings(size, names), _cut), name
    return None, ""


def _beginnings(size: str, names: Sequence[str]) -> Argv:
    return ("sh", "-c", _BEGINNINGS, "sh", size, *names)


def _lines(said: bytes, _names: Sequence[str], _seen: Seen) -> Sequence[bytes]:
    return said.splitlines(keepends=True)


def _blocks(said: bytes, _names: Sequence[str], _seen: Seen) -> Sequence[bytes]:
    return [block + b"\n" for block in said.removesuffix(b"\n").split(b"\n\n")]


def _cut(said: bytes, names: Sequence[str], seen: Seen) -> Sequence[bytes]:
    """Contents by their sizes; one that is longer than what was asked for is no whole one."""
    sizes = [seen[name].size for name in names if name in seen and seen[name].kind == "file"]
    if len(sizes) != len(names) or sum(sizes) != len(said):
        return ()
    ends = [sum(sizes[: place + 1]) for place in range(len(sizes))]
    return [said[end - size : end] for end, size in zip(ends, sizes, strict=True)]
