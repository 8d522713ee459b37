"""Whose changes a host obeys: of the runs of a name, the one with the greatest token.

On the host lies, per name, a directory with

- `holder`: one line, `TOKEN TASK SINCE WHO` with tabs between, replaced by a rename while the
  directory is flocked exclusively. It stays when the run has ended: the last token seen.
- `groups.TOKEN`: what the holder of that token runs; see `groups.py`.

Whoever becomes the holder first lays down its token, then sees to it that nothing of an earlier
token runs, and only then changes something. Whoever starts a command first records its group,
then looks at `holder`, and only then lets it begin: of two that meet, one sees the other. Whoever
writes a file itself looks and moves it into place under a shared flock: in between nobody can
become the holder.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

import msgspec

from kubexm.connector.base import Claim
from kubexm.errors import Refused, StepFailed, TimedOut

FLOCK_SECONDS = 10.0
"""A flock is held for microseconds; whoever has it for longer stands still."""


class Holder(msgspec.Struct, frozen=True):
    """Whom a host obeys, and since when."""

    token: int
    task: str
    since: str
    who: str

    def __str__(self) -> str:
        return f"task {self.task} ({self.who}) since {self.since}"


def name_of(claim: Claim) -> str:
    """The directory of a name among those of all names."""
    return quote(claim.name, safe="")


def line_of(claim: Claim) -> str:
    """What says that the host obeys this claim from now on."""
    now = datetime.now(UTC)
    return f"{claim.token}\t{claim.task}\t{now:%Y-%m-%d %H:%M:%S} UTC\t{claim.who}"


def read(line: str, path: str) -> Holder:
    """Whom the host obeys, by such a line."""
    try:
        token, task, since, who = line.rstrip("\n").split("\t")
        return Holder(int(token), task, since, who)
    except ValueError:
        raise StepFailed(
            f"`{path}` is damaged: {line!r}",
            hint="see that nobody works on the host, and remove it",
        ) from None


def refusal(claim: Claim, found: Holder | None, directory: str) -> Refused:
    """Why a claim is not obeyed."""
    mine = f"token {claim.token} of task {claim.task} is refused"
    if found is None:
        return Refused(f"{mine}: the lock in `{directory}` was removed meanwhile")
    return Refused(
        f"{mine}: the host obeys token {found.token}, {found}",
        hint=f"see how it goes on there; if it never will, remove `{directory}` on the"
        " host and run the pipeline anew",
    )


class HolderFile:
    """The holder of one name on one host, as one claimant sees it."""

    def __init__(self, directory: Path, claim: Claim) -> None:
        self.directory = directory / name_of(claim)
        self._path = self.directory / "holder"
        self._claim = claim
        self._seen: tuple[int, int] | None = None

    def lay(self) -> None:
        """Become the holder; `Refused` if the host obeys a greater token."""
        try:
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            with self._flocked(fcntl.LOCK_EX):
                found = self._found()
                if found is not None and not self._yields(found):
                    raise self._refusal(found)
                self._write()
        except OSError as error:
            raise StepFailed(
                f"can't lock the host in `{self.directory}`: {error.strerror}"
            ) from error

    @property
    def stands(self) -> bool:
        """Whether nothing has happened to it since it was laid down or looked at."""
        return self._seen is not None and self._state() == self._seen

    def require(self) -> None:
        """Raise `Refused` unless the host obeys us."""
        if self.stands:
            return
        state, found = self._state(), self._found()
        if found is None or (found.token, found.task) != (self._claim.token, self._claim.task):
            raise self._refusal(found)
        self._seen = state

    @contextmanager
    def required(self) -> Iterator[None]:
        """The same, and nobody else can become the holder meanwhile; for an instant only."""
        with self._flocked(fcntl.LOCK_SH):
            self.require()
            yield

    def _yields(self, found: Holder) -> bool:
        """Whether who is found has to give way."""
        same = found.task == self._claim.task
        return found.token < self._claim.token or (found.token == self._claim.token and same)

    def _refusal(self, found: Holder | None) -> Refused:
        return refusal(self._claim, found, str(self.directory))

    def _write(self) -> None:
        # One name for all is enough: who writes it has the flock.
        temporary = self._path.with_suffix(".new")
        with temporary.open("w") as file:
            file.write(f"{line_of(self._claim)}\n")
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(self._path)
        self._seen = self._state()

    def _found(self) -> Holder | None:
        try:
            line = self._path.read_text(errors="replace")
        except FileNotFoundError:
            return None
        return read(line, str(self._path))

    def _state(self) -> tuple[int, int] | None:
        try:
            found = self._path.stat()
        except FileNotFoundError:
            return None
        return found.st_ino, found.st_mtime_ns

    @contextmanager
    def _flocked(self, how: int) -> Iterator[None]:
        try:
            descriptor = os.open(self.directory, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:
            raise self._refusal(None) from None
        try:
            self._await_flock(descriptor, how)
            yield
        finally:
            os.close(descriptor)

    def _await_flock(self, descriptor: int, how: int) -> None:
        until = time.monotonic() + FLOCK_SECONDS
        while True:
            try:
                return fcntl.flock(descriptor, how | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= until:
                    raise self._stuck() from None
            time.sleep(0.005)

    def _stuck(self) -> TimedOut:
        found = self._found()
        who = f"; the host obeys token {found.token}, {found}" if found is not None else ""
        return TimedOut(
            f"somebody has kept `{self.directory}` locked for {FLOCK_SECONDS:g} s{who}",
            hint=f"end or wake the process that stands still: fuser {self.directory}",
        )
