"""What every connector offers: commands as argument lists, files, and one way to close.

A connector raises `ConnectionLost` when the channel broke and `HostUnreachable` when it can't be
opened; a command's own failure is an exit code, never an exception.

What may change the host is `put`, `upload`, and `exec` of a command whose `changes` is true:
`batch`, `get`, `download` and `stat` only look. A connector that acts on a `Claim` takes the lock
of the host before its first change and asks for leave before every other; `holder.py` says what
lies on the host for that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

import msgspec

from kubexm.connector.source import Source
from kubexm.errors import CommandFailed, StepFailed

LineSink = Callable[[str, str], None]
"""Takes a stream name (`stdout` or `stderr`) and a line as it comes."""
Progress = Callable[[int, int], None]
"""Takes the bytes so far, and all of them."""


class Command(msgspec.Struct, frozen=True):
    """A program and its arguments; quoted once, by the connector, if it must be."""

    argv: tuple[str, ...]
    stdin: bytes = b""
    env: Mapping[str, str] = msgspec.field(default_factory=dict)
    cwd: str | None = None
    sudo: bool = False
    user: str | None = None
    timeout: float | None = None
    changes: bool = True
    """Whether it may change the host; one that only looks needs no right to."""
    uninterruptible: bool = False
    """Whoever takes over the host waits for it instead of ending it."""


class Script(Command, frozen=True):
    """A script of ours with its words, as an argument list.

    A connector that has a shell at hand may have that run it, without another process.
    """

    @property
    def text(self) -> str:
        return self.argv[2]

    @property
    def words(self) -> tuple[str, ...]:
        return self.argv[4:]


def script(text: str, *words: str, **settings: Any) -> Script:
    """The command that runs a script; it finds the words as `$1` and so on."""
    return Script(("sh", "-c", text, "sh", *words), **settings)


class Claim(msgspec.Struct, frozen=True):
    """On whose behalf a connector changes hosts.

    Of the runs of a name a later one has a greater token; from its first change on, a host obeys
    no earlier one.
    """

    name: str
    token: int
    task: str
    who: str
    """The process that works on it, for people."""


class Completed(msgspec.Struct, frozen=True):
    """How a command ended."""

    exit: int
    stdout: bytes = b""
    stderr: bytes = b""

    @property
    def ok(self) -> bool:
        return self.exit == 0

    @property
    def text(self) -> str:
        """Standard output as text without its last newline."""
        return self.stdout.decode(errors="replace").removesuffix("\n")

    @property
    def error_text(self) -> str:
        return self.stderr.decode(errors="replace").removesuffix("\n")


class FileStat(msgspec.Struct, frozen=True):
    """What is at a path; links are not followed. An id without a name is its own name."""

    kind: Literal["file", "directory", "link", "other"]
    mode: int
    owner: str
    group: str
    size: int
    uid: int = 0
    gid: int = 0

    def owned_by(self, user: str) -> bool:
        """Whether the owner has this name, or this number."""
        return user in (self.owner, str(self.uid))

    def in_group(self, group: str) -> bool:
        """Whether the group has this name, or this number."""
        return group in (self.group, str(self.gid))


C_LOCALE: Mapping[str, str] = {"LC_ALL": "C"}
"""Answers that are read by a program come in one language."""

STAT = ("stat", "-c", "%F|%a|%U|%u|%G|%g|%s", "--")
"""The command, but for the path, whose answer `read_stat` reads; it wants `C_LOCALE`."""

_KINDS: Mapping[str, Literal["file", "directory", "link"]] = {
    "regular file": "file",
    "regular empty file": "file",
    "directory": "directory",
    "symbolic link": "link",
}


def read_stat(answer: Completed) -> FileStat | None:
    """What `STAT` found; None if there is nothing at the path."""
    if answer.ok:
        kind, mode, owner, uid, group, gid, size = answer.text.split("|")
        return FileStat(
            kind=_KINDS.get(kind, "other"),
            mode=int(mode, 8),
            owner=uid if owner == "UNKNOWN" else owner,
            group=gid if group == "UNKNOWN" else group,
            size=int(size),
            uid=int(uid),
            gid=int(gid),
        )
    if is_missing(answer):
        return None
    raise CommandFailed(STAT, answer.exit, stderr=answer.error_text)


def reading(path: str, size: int, *, start: int = 0, count: int | None = None) -> tuple[str, ...]:
    """The command that prints a file, or `count` blocks of a size from block `start` on.

    Unlike `cat` and `head` it never waits at a pipe for somebody to write into it. It wants
    `C_LOCALE`; `read_content` reads its answer.
    """
    part = (f"skip={start}",) if start else ()
    part = (*part, f"count={count}") if count is not None else part
    return ("dd", f"if={path}", f"bs={size}", *part, *READING)


READING = ("iflag=nonblock,fullblock", "status=none")
"""How such a command ends."""


def digesting(*paths: str) -> tuple[str, ...]:
    """The command that prints the sha256 of files; of what is no file, nothing.

    At a pipe `sha256sum` would wait for somebody to write into it.
    """
    return ("find", "-L", *paths, *DIGESTING)


DIGESTING = ("-maxdepth", "0", "-type", "f", "-exec", "sha256sum", "--", "{}", "+")
"""How such a command ends."""


BOOT = ("cat", "/proc/sys/kernel/random/boot_id")
"""Asks since which boot the host runs; a connector may know without a process."""


def read_content(answer: Completed, path: str) -> bytes:
    """What `reading` found; `FileNotFoundError` if there is nothing at the path."""
    if answer.ok:
        return answer.stdout
    if is_missing(answer):
        raise FileNotFoundError(path)
    raise StepFailed(f"can't read `{path}`: {answer.error_text}")


def is_missing(answer: Completed) -> bool:
    """Whether a command failed because there is nothing at the path it was given."""
    return not answer.ok and any(
        answer.stderr.rstrip().endswith(reason)
        for reason in (b"No such file or directory", b"Not a directory")
    )


class Connector(Protocol):
    """One connection to one host."""

    async def open(self) -> None:
        """Connect, or connect again after a loss; idempotent."""

    async def exec(self, command: Command, sink: LineSink | None = None) -> Completed:
        """Run a command; when cancelled or timed out, its whole process group is ended.

        `TimedOut` after `command.timeout` seconds.
        """

    async def batch(self, commands: Sequence[Command]) -> list[Completed]:
        """Run short commands that only look in one round trip; an answer for each, in order."""

    async def put(
        self,
        path: str,
        data: bytes,
        *,
        mode: int | None = None,
        owner: str | None = None,
        group: str | None = None,
        sudo: bool = False,
    ) -> None:
        """Write a file atomically: a temporary one beside it, then a rename.

        What is not given stays as it is; a new file gets 0644 and belongs to who writes it.
        """

    async def get(self, path: str, *, sudo: bool = False) -> bytes:
        """The content of a file; `FileNotFoundError` if there is none."""

    async def upload(
        self,
        source: Source,
        path: str,
        *,
        mode: int | None = None,
        owner: str | None = None,
        group: str | None = None,
        sudo: bool = False,
        progress: Progress | None = None,
    ) -> bool:
        """Write a file atomically that may be large; False if it was there already.

        A small one may be sent all the same. What has arrived is gone on with after a loss. Of a
        file that was there already, nothing is changed, its mode and owner neither.
        """

    async def download(
        self, path: str, to: Path, *, sudo: bool = False, progress: Progress | None = None
    ) -> bool:
        """Bring a file to this machine, in the same way; `FileNotFoundError` if there is none."""

    async def stat(self, path: str, *, sudo: bool = False) -> FileStat | None:
        """What is at a path, or None."""

    def here(self, path: Path) -> Path:
        """Where a file lies that came from the host to this path of the machine we run on."""

    async def close(self) -> None:
        """Release everything; what still runs is ended."""
