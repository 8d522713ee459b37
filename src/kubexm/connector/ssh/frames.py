"""Requests to a shell as text, and its two streams cut into answers.

The shell is a plain POSIX `sh`. A request holds all that it needs: dash reads its input in blocks,
so a command that read from there would swallow the requests behind it. After each command a mark
is written to both streams, and how it ended behind the one on standard output. The mark is a
random number that the shell knows as a variable of its own, so no output holds it by chance.

Words that come from outside are quoted here, and nowhere else.
"""

from __future__ import annotations

import re
import shlex
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

_NOTHING: Mapping[str, str] = MappingProxyType({})
REFUSED = b"refused"
"""In place of an exit code: the host obeys another holder."""
ALONE = b"-"
"""Behind an exit code: there is no mark on the other stream."""

_PROGRAM = re.compile(r"[\w./+-]+", re.ASCII)
_ANEW = "hash -r 2>/dev/null; "
"""A shell that stays remembers where it has found programs, and these come and go."""
_SETTLED = frozenset(("LC_ALL",))
"""What a shell may be told of as a part of a command; others may be something to it."""
_WORDS = """
. : [ [[ ! { } alias autoload bg bind break builtin caller case cd chdir command compgen complete
compopt continue coproc declare dirs disown do done echo elif else enable esac eval exec exit export
false fc fg fi float for function functions getopts global hash help hist history if in integer jobs
kill let local logout mapfile nameref newgrp noglob popd print printf pushd pwd read readarray
readonly rehash repeat return select set setopt shift shopt sleep source suspend test then time
times trap true type typeset ulimit umask unalias unset until wait whence where which while
a c h i k q s
"""
_OF_SHELLS = frozenset(_WORDS.split())
"""Words that are no program to one shell or another, and names of what ours are told here."""

# k ENDED: the answer is complete. s, q: make the look `i`, of which nobody wants more than what it
# prints if it succeeds, for `s` a line or more; if it fails, it is made once more, to be told why.
_PRELUDE = f"""k() {{ printf '%s%s\\n' "$K" "$1"; printf '%s\\n' "$K" >&2; }}
s() {{
  if k_out=$(i 2>/dev/null)
  then printf '%s\\n%s0{ALONE.decode()}\\n' "$k_out" "$K"; else ( i ); k $?; fi
}}
q() {{ if i 2>/dev/null; then printf '%s0{ALONE.decode()}\\n' "$K"; else i; k $?; fi; }}
"""

# For shells that change the host. $D is the directory of the lock, $L the line in it that says
# that the host obeys us, $G the group of this shell, which is recorded in the file $F.
# h: it still does. a MANNER PROGRAM: record that this shell is to be ended, or awaited.
_LOCK = """h() { IFS= read -r k_line <"$D/holder" && [ "$k_line" = "$L" ]; }
a() { printf '\\n+\\t%s\\t%s\\tself\\t%s\\t%s\\n' "$G" "$1" "$A" "$2" >>"$D/$F"; }
"""

GROUP = """read -r k_line </proc/$$/stat; set -- ${k_line##*) }; k_group=$3
read -r k_line </proc/$k_group/stat; set -- ${k_line##*) }; k_start=${20}
k_line=; { read -r k_line </proc/1/stat; } 2>/dev/null; set -- ${k_line##*) }
read -r k_boot </proc/sys/kernel/random/boot_id
G="$k_group	$k_start	$k_boot ${20}"; echo "$G"; k 0
"""
"""Asks a shell for its process group, when that began, and in which boot.

A container has the boot of its machine, so when its first process began belongs to that. The name
of a process stands in parentheses, and may have blanks and others in it.
"""

EVERYONE = "cat /proc/[0-9]*/stat 2>/dev/null </dev/null; k 0\n"
"""Asks for all processes."""


def read_group(answer: str) -> tuple[str, ...]:
    """What `GROUP` says: its number, when it began, and in which boot."""
    return tuple(answer.split("\t"))


def started(mark: str) -> str:
    """What a new shell is told first."""
    return f"K={mark}\n{_PRELUDE}k 0\n"


def enrolled(directory: str, line: str, file: str, task: str) -> str:
    """Makes a shell that knows its `GROUP` one that changes the host: others may find and end it.

    If that can't be recorded, the shell exits: it must change nothing.
    """
    told = {"D": directory, "L": line, "F": file, "A": task}
    given = "".join(f"{name}={shlex.quote(value)}\n" for name, value in told.items())
    return f"{given}{_LOCK}if a ended sh; then k 0; else k 1; exit; fi\n"


def emptied(path: str) -> str:
    """Empties a file, without a process."""
    return f"printf '' >{shlex.quote(path)}; k $?\n"


DISMISSED = """printf '\\n-\\t%s\\tover\\n' "$k_group" >>"$D/$F"
"""
"""Tells that an enrolled shell is about to end, and that nobody need look for it."""


def request(argv: Sequence[str], env: Mapping[str, str] = _NOTHING, cwd: str | None = None) -> str:
    """One command that only looks; its program, never a builtin of the same name."""
    return plain(work_of(argv, env, cwd))


def plain(work: str) -> str:
    """Work that only looks."""
    return f"{work}; k $?\n"


def seen(inner: str) -> str:
    """A look for a subshell that prints a line or more if it succeeds: then all is in one piece.

    Each piece costs both sides about as much as all the rest of a short look.
    """
    return f"i() {{ {inner} </dev/null\n}}; s\n"


def quiet(work: str) -> str:
    """Work of which nobody wants more than what it prints, if it succeeds: a piece less.

    If it fails, what it had printed by then comes twice.
    """
    return f"i() {{ {work}\n}}; q\n"


def script(text: str, *words: str) -> str:
    """A script that only looks, or sees to the lock."""
    return plain(body(inside(text, words)))


def change(work: str, *, awaited: str | None = None) -> str:
    """Work that changes the host, if we may; whoever takes over waits for it if it has a name."""
    if awaited is None:
        return f"if h; then {work}; k $?; else k refused; fi\n"
    told = f"a awaited {shlex.quote(awaited)}"
    return f"if {told} && h; then {work}; k $?; else k refused; fi; a ended sh\n"


def work_of(argv: Sequence[str], env: Mapping[str, str], cwd: str | None) -> str:
    """A command without input, run by the shell itself if it takes it for nothing of its own.

    Of a subshell the system makes a copy before the program takes its place: a sixth of what a
    short command costs a host.
    """
    if cwd is not None or env.keys() - _SETTLED or not _is_program(argv[0]):
        return body(alone(argv, env, cwd))
    given = (f"{name}={shlex.quote(value)}" for name, value in env.items())
    anew = "" if "/" in argv[0] else _ANEW
    return f"{anew}{' '.join((*given, *map(shlex.quote, argv)))} </dev/null"


def _is_program(name: str) -> bool:
    return _PROGRAM.fullmatch(name) is not None and name not in _OF_SHELLS


def alone(argv: Sequence[str], env: Mapping[str, str], cwd: str | None) -> str:
    """A command for a subshell, whose place it takes."""
    return f"{_settled(env, cwd)}exec {' '.join(map(shlex.quote, argv))}"


def if_there(path: str, work: str) -> str:
    """What looks at a path, for `seen` and `quiet`; the shell knows by itself what is not there."""
    there, what = shlex.quote(path[: path.rindex("/") + 1]), shlex.quote(path)
    missing = f"[ -x {there} ] && [ ! -e {what} ] && [ ! -L {what} ]"
    told = shlex.quote(f"sh: {path}: No such file or directory")
    return f"if {missing}; then printf '%s\\n' {told} >&2; return 1; fi; {work}"


def inside(
    text: str, words: Sequence[str], env: Mapping[str, str] = _NOTHING, cwd: str | None = None
) -> str:
    """A script of ours for a subshell, which runs it itself."""
    return f"{_settled(env, cwd)}set -- {' '.join(map(shlex.quote, words))} || exit\n{text}"


def _settled(env: Mapping[str, str], cwd: str | None) -> str:
    there = f"cd -- {shlex.quote(cwd)} && " if cwd is not None else ""
    return there + "".join(f"export {name}={shlex.quote(value)} && " for name, value in env.items())


def body(inner: str, stdin: bytes = b"") -> str:
    """What is for a subshell in one, with its input."""
    if not stdin:
        return f"( {inner} ) </dev/null"
    return f"printf %s {b64encode(stdin).decode()} | base64 -d | ( {inner} )"


# c: all data has come, for whoever has read as much as there was to be.
_COMPLETE = 'c() { IFS= read -r k_line && [ "$k_line" = "$K." ]; }'
# What follows is the seal, of which `c` may have read the first line, or data that was left.
_FOLLOWS = (
    'IFS= read -r k_line; [ "$k_line" != "$K." ] || IFS= read -r k_line; '
    '[ "$k_line" = "$K" ] || exit'
)


def handed(inner: str, *, asks: bool) -> str:
    """A command that reads what comes after the answer to this: data, and behind it `sealed`.

    It has to read neither more nor less than the data, and may ask `c` whether that was all of it:
    who sent it may be gone. If it leaves any of it, the shell exits, for it must never take data
    for requests.
    """
    work = f"k 0; ( {_COMPLETE}; {inner} ); k $?; {_FOLLOWS}"
    return f"if h; then {work}; else k refused; fi\n" if asks else f"{work}\n"


def sealed(mark: bytes) -> bytes:
    """What follows data that was handed over to the end."""
    return mark + b".\n" + mark + b"\n"


def laid(path: str, piece: bytes) -> str:
    """Work that adds a piece to a file of input."""
    return f"printf %s {b64encode(piece).decode()} | base64 -d >>{shlex.quote(path)}"


def reading(path: str, handed_request: str) -> str:
    """The same request with a file as its input, which has no name any more when it begins."""
    file = shlex.quote(path)
    return f"exec <{file} && rm -f -- {file}\n{handed_request}"


def portions(requests: Iterable[str], most: int) -> Iterator[list[str]]:
    """Requests in their order, so many at a time that their texts have at most so many bytes."""
    some: list[str] = []
    size = 0
    for one in requests:
        length = len(one.encode(errors="surrogateescape"))
        if some and size + length > most:
            yield some
            some, size = [], 0
        some.append(one)
        size += length
    if some:
        yield some


class Splitter:
    """One stream, cut at the marks; what stands before a mark is handed on as it comes."""

    def __init__(
        self, mark: bytes, take: Callable[[bytes], None], end: Callable[[bytes], None]
    ) -> None:
        """`take` gets bytes of the present answer; `end` what stands between mark and newline."""
        self._mark = mark
        self._take = take
        self._end = end
        self._rest = b""

    def feed(self, data: bytes) -> None:
        """Take what came."""
        data = self._rest + data
        while (at := data.find(self._mark)) >= 0:
            stop = data.find(b"\n", at)
            if stop < 0:
                break
            if at:
                self._take(data[:at])
            self._end(data[at + len(self._mark) : stop])
            data = data[stop + 1 :]
        if data:
            certain = at if at >= 0 else len(data) - _overlap(data, self._mark)
            if certain:
                self._take(data[:certain])
            data = data[certain:]
        self._rest = data


def _overlap(data: bytes, mark: bytes) -> int:
    """How many bytes at the end may be the beginning of a mark."""
    if data[-1:] not in mark:
        return 0
    for size in range(min(len(mark) - 1, len(data)), 0, -1):
        if data.endswith(mark[:size]):
            return size
    return 0


def joined(requests: Iterable[str]) -> bytes:
    """Requests as they are written."""
    return "".join(requests).encode(errors="surrogateescape")
