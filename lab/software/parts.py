"""What was made once is kept: each part in a directory of its own, built beside it and renamed."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from lab.software.progress import Told

_HALF = ".half-"


def home() -> Path:
    """The directory of all that was made."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "kubexm-lab" / "software"


def digest(*recipe: object) -> str:
    """Tells recipes apart."""
    return hashlib.sha256(repr(recipe).encode()).hexdigest()[:12]


def make(place: Path, build: Callable[[Path], None]) -> None:
    """Have a directory, built as a whole or not at all."""
    place.parent.mkdir(parents=True, exist_ok=True)
    half = Path(tempfile.mkdtemp(prefix=_HALF, dir=place.parent))
    try:
        build(half)
        half.chmod(0o755)
        half.rename(place)
    finally:
        shutil.rmtree(half, ignore_errors=True)


@contextmanager
def locked(root: Path, told: Told) -> Iterator[None]:
    """Only one at a time makes things; what one that was killed has left is removed."""
    root.mkdir(parents=True, exist_ok=True)
    with (root / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            told("somebody else makes software already: this waits until they are done")
            fcntl.flock(file, fcntl.LOCK_EX)
        for left in root.glob(f"**/{_HALF}*"):
            shutil.rmtree(left, ignore_errors=True)
        yield
