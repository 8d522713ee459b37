"""Files of the machine we run on, to which files of hosts come: as they were, and so again."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

from kubexm.connector.source import part_beside
from kubexm.errors import StepFailed
from kubexm.runner.priors import Prior


def digest(path: Path) -> str | None:
    """The sha256 of a file; None if there is none."""
    if not path.exists():
        return None
    if not path.is_file():
        raise StepFailed(f"`{path}` is no file", hint="name a file of this machine in `to`")
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def make_room(path: Path) -> None:
    """Make the directories above a path that are missing."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        above = path.parent
        raise StepFailed(f"can't make `{above}` on this machine: {error.strerror}") from error


def capture(path: Path, copy: str) -> Prior:
    """All that is needed to restore what is at a path; a file is kept beside itself."""
    if not os.path.lexists(path):
        made = [str(above) for above in path.parents if not above.exists()]
        return {"kind": "absent", "made": made}
    kept = path.with_name(f".{path.name}.kubexm-{copy}")
    kept.unlink(missing_ok=True)
    _named_twice(path, kept)
    return {"kind": "file", "copy": str(kept)}


def restore(path: Path, prior: Prior) -> None:
    """Bring back what was there before."""
    Path(part_beside(str(path))).unlink(missing_ok=True)
    if prior["kind"] == "file":
        _bring_back(path, Path(prior["copy"]))
        return
    path.unlink(missing_ok=True)
    for above in map(Path, prior["made"]):
        if not above.is_dir() or any(above.iterdir()):
            return  # what others have put there meanwhile is not ours
        above.rmdir()


def _bring_back(path: Path, kept: Path) -> None:
    beside = path.with_name(f".{path.name}.kubexm")
    beside.unlink(missing_ok=True)
    _named_twice(kept, beside)
    beside.replace(path)
    # A rename onto another name of the same file does nothing.
    beside.unlink(missing_ok=True)


def _named_twice(path: Path, other: Path) -> None:
    """Keep a file under a second name: what comes takes its place and does not write into it."""
    try:
        os.link(path, other, follow_symlinks=False)
    except OSError:  # not every file system can, and not every file of others may be
        shutil.copy2(path, other, follow_symlinks=False)
