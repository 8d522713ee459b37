"""Why a command on a host failed, as far as its last words tell, and what to do about it."""

from __future__ import annotations

from collections.abc import Sequence

from kubexm.connector.base import Completed

NO_SUCH_TOOL = 127
_HINTS = {
    "Read-only file system": "a file system of the host is mounted read-only: mount it writable, "
    "or look into `dmesg` if it became so by itself",
    "No space left on device": "a disk of the host is full: `df -h` and `df -i` say which, make "
    "room there",
    "Disk quota exceeded": "the user has used up its share of the disk: make room, or raise it",
    "a password is required": "let the user run commands by sudo without a password, or connect "
    "as root",
    "System has not been booted with systemd": "the host runs no systemd: use a `command` step",
}


def hint_for(argv: Sequence[str], done: Completed) -> str:
    """What to do about a failure; nothing if its cause is not known."""
    if done.exit == NO_SUCH_TOOL:
        return f"the host has no `{argv[0]}`: install the package that brings it"
    said = done.error_text
    return next((hint for words, hint in _HINTS.items() if words in said), "")
