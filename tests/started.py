"""Programs that a test starts: they end with it, also where it fails while they are at work."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def started(words: Sequence[str | Path], **settings: Any) -> Iterator[subprocess.Popen[str]]:
    """A process that is gone when the block ends, whatever ends it."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen(words, **{**pipes, **settings})
    try:
        yield process
    finally:
        process.kill()
        process.communicate()
