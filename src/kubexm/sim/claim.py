"""Who may act on the hosts of a world: of the runs of a name, the one with the greatest token."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote

from kubexm.errors import Refused


class Claim:
    """A run's token, laid down beside the hosts; a greater one takes the right away."""

    def __init__(self, directory: Path, name: str, token: int) -> None:
        self._path = directory / quote(name, safe="")
        self._token = token
        self._seen = (0, 0)

    def take(self) -> None:
        """Lay down the token, unless there is a greater one."""
        self._path.parent.mkdir(exist_ok=True)
        if self._path.exists():
            self._compare()
        temporary = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        temporary.write_text(str(self._token))
        temporary.replace(self._path)
        self._seen = self._state()

    def require(self) -> None:
        """Raise `Refused` if a later holder of the name has laid down its token since."""
        if self._state() != self._seen:
            self._compare()

    def _compare(self) -> None:
        state, found = self._state(), int(self._path.read_text())
        if found > self._token:
            raise Refused(f"these hosts obey token {found} by now, this run has {self._token}")
        self._seen = state

    def _state(self) -> tuple[int, int]:
        found = self._path.stat()
        return found.st_ino, found.st_mtime_ns
