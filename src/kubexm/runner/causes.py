"""Why a command on a host failed, as far as its last words tell, and what to do about it."""

from __future__ import annotations

import errno
from collections.abc import Sequence

from kubexm.connector.base import Completed
from kubexm.errors import CommandFailed, StepFailed

NO_SUCH_TOOL = 127
_READ_ONLY = (
    "a file system of the host is mounted read-only: mount it writable, or look into `dmesg` if it "
    "became so by itself"
)
_FULL = "a disk of the host is full: `df -h` and `df -i` say which, make room there"
_QUOTA = "the user has used up its share of the disk: make room, or raise it"
_ERRNOS = {errno.EROFS: _READ_ONLY, errno.ENOSPC: _FULL, errno.EDQUOT: _QUOTA}
_HINTS = {
    "Read-only file system": _READ_ONLY,
    "No space left on device": _FULL,
    "don't have enough free space": _FULL,
    "more space needed on": _FULL,
    "Disk quota exceeded": _QUOTA,
    "a password is required": "let the user run commands by sudo without a password, or connect "
    "as root",
    "System has not been booted with systemd": "the host runs no systemd: use a `command` step",
}


def hint_for(argv: Sequence[str], done: Completed) -> str:
    """What to do about a failure; nothing if its cause is not known."""
    if done.exit == NO_SUCH_TOOL:
        return f"the host has no `{argv[0]}`: install the package that brings it"
    return _hint_in(done.error_text)


def hint_for_error(error: StepFailed) -> str:
    """The same for a file that could not be written, by what the system said of it."""
    if isinstance(error, CommandFailed):
        return _hint_in(error.stderr)
    cause = error.__cause__
    found = _ERRNOS.get(cause.errno or 0, "") if isinstance(cause, OSError) else ""
    return found or _hint_in(error.message)


def _hint_in(said: str) -> str:
    return next((hint for words, hint in _HINTS.items() if words in said), "")
