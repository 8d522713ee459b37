"""Files that a file names: where they are, and how they are opened, whatever lies there."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import BinaryIO

from kubexm.errors import InvalidInput

WHOLE_PATH = "write `~/PATH`, or the whole path"


def expanded(text: str) -> Path | None:
    """The path with the home it begins with; None if there is no such home."""
    try:
        return Path(text).expanduser()
    except RuntimeError:
        return None


def nobodys(text: str) -> str:
    """That a path begins with a home that there is not."""
    return f"`{text.partition('/')[0]}` is nobody's home"


def opened(path: Path) -> BinaryIO:
    """A regular file to be read; `OSError` or `InvalidInput` if there is none."""
    # Else opening a pipe that nobody writes to would wait for ever.
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    hint = "name a file, and no directory, pipe or device"
    raise InvalidInput(f"`{path}` is no regular file", hint=hint)
