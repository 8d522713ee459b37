"""Where in a file something was written."""

from __future__ import annotations

import msgspec


class SourceMark(msgspec.Struct, frozen=True):
    """A place in a file; lines and columns count from one."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"
