"""Files that a cluster file names: read once, and told with their places where they can't be."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from kubexm.common.digests import Digests
from kubexm.document import beside, foreign
from kubexm.document.findings import Finding
from kubexm.document.source import DataPath
from kubexm.errors import InvalidFile, InvalidInput, Problem
from kubexm.templates import formats

LARGEST = 4 << 20
"""Bytes of a text that becomes a part of the plan."""


class OperatorFiles:
    """What lies beside the cluster file; whatever is wrong with it is collected."""

    def __init__(self, directory: Path | None, digests: Digests | None = None) -> None:
        self._directory = directory
        self._digests = digests or Digests()
        self.findings: list[Finding] = []
        self.read: dict[str, str] = {}
        """The sha256 of every file that was read, by its path."""

    def text(self, written: str, place: DataPath) -> str:
        """The text of a file; nothing if it can't be read, which is noted."""
        try:
            with beside.opened(path := self.path(written)) as file:
                content = file.read(LARGEST + 1)
            if len(content) > LARGEST:
                return self.note(place, f"`{written}` has more than 4 MiB", "make it smaller")
            self.read[str(path)] = sha256(content).hexdigest()
            return content.decode()
        except (InvalidInput, OSError) as error:
            return self._unreadable(written, error, place)
        except UnicodeDecodeError:
            return self.note(place, f"`{written}` is no text", "save it as UTF-8")

    def data(self, written: str, place: DataPath) -> dict[str, Any]:
        """The mapping in a YAML file of another program; what can't be read of it is noted."""
        text = self.text(written, place)
        if not formats.says_something(text):
            return {}
        try:
            document = foreign.parse(text, str(self.path(written)))
        except InvalidFile as error:
            self._damaged(written, error.problems, place)
            return {}
        self._damaged(written, [note.problem for note in document.notes], place)
        if isinstance(document.data, dict):
            return document.data
        self.note(place, f"`{written}` holds no mapping", "write `key: value` pairs")
        return {}

    def _damaged(self, written: str, problems: Sequence[Problem], place: DataPath) -> None:
        for one in problems:
            said = f"`{written}` can't be read: {one.where}: {one.message}"
            self.note(place, said, one.hint)

    def digest(self, written: str, place: DataPath) -> str:
        """The sha256 of a file that may be large; nothing if it can't be read, which is noted."""
        try:
            with beside.opened(path := self.path(written)) as file:
                found = self.read[str(path)] = self._digests.of(file.fileno())
            return found
        except (InvalidInput, OSError) as error:
            return self._unreadable(written, error, place)

    def path(self, written: str) -> Path:
        """Where a file is that the cluster file names; `InvalidInput` if that is nowhere."""
        if (path := beside.expanded(written)) is None:
            raise InvalidInput(beside.nobodys(written), hint=beside.WHOLE_PATH)
        if "\0" in written:
            raise InvalidInput("a path with a zero byte in it", hint="no file has such a name")
        return (self._directory or Path("/")) / path

    def note(self, place: DataPath, message: str, hint: str) -> str:
        """Something that is wrong with what the cluster file names; there is no text then."""
        self.findings.append(Finding(place, message, hint))
        return ""

    def _unreadable(self, written: str, error: InvalidInput | OSError, place: DataPath) -> str:
        if isinstance(error, InvalidInput):
            return self.note(place, error.message, error.hint)
        message = f"can't read `{self.path(written)}`: {error.strerror}"
        return self.note(place, message, "see that it is there and may be read")
