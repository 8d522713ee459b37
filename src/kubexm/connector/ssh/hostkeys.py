"""Keys of hosts: looked up in files that are read once, refused with what to do, or accepted."""

from __future__ import annotations

import fcntl
import os
import shlex
from pathlib import Path
from typing import BinaryIO

import asyncssh

from kubexm.connector.ssh.target import SSH_PORT, HostKeys, Target
from kubexm.errors import HostUnreachable

Known = asyncssh.SSHKnownHosts


class KeyBook:
    """The known hosts of some files."""

    def __init__(self, settings: HostKeys) -> None:
        self._settings = settings
        texts = [path.read_text() for path in settings.files if path.exists()]
        self.known = asyncssh.import_known_hosts("".join(_ended(text) for text in texts))
        self._accepted: dict[str, str] = {}

    def accepts(self, target: Target, key: asyncssh.SSHKey) -> bool:
        """Whether the key of a host that is in no file is believed; if so, it is from now on."""
        if self._settings.trust != "first-use" or self._knows(target):
            return False
        name, line = _name(target), _line(target, key)
        if name not in self._accepted:
            self._accepted[name] = line
            _append(self._settings.files[0], line)
        return self._accepted[name] == line

    def refusal(self, target: Target, key: asyncssh.SSHKey | None) -> HostUnreachable:
        """Why a key is not believed, and how to accept it."""
        if key is None:
            return HostUnreachable(f"{target} has no host key that is known")
        shown = f"{key.get_algorithm()} {key.get_fingerprint()}"
        file = self._settings.files[0] if self._settings.files else Path("~/.ssh/known_hosts")
        # What a file does not end, an `echo` would glue this key to.
        echo = "echo" if _is_ended(file) else r"printf '\n%s\n'"
        add = f"{echo} {shlex.quote(_line(target, key))} >> {shlex.quote(str(file))}"
        if not self._knows(target):
            return HostUnreachable(
                f"the host key of {target} is not known: {shown}",
                hint=f"compare it with what the host itself shows; if it is the same: {add}",
            )
        forget = f"ssh-keygen -R {shlex.quote(_name(target))} -f {shlex.quote(str(file))}"
        return HostUnreachable(
            f"the host key of {target} is not the one that is known: it shows {shown}",
            hint="somebody may stand in between; if the host was made anew, and shows the same"
            f" key itself: {forget} && {add}",
        )

    def _knows(self, target: Target) -> bool:
        keys, *_ = self.known.match(target.address, "", target.port or SSH_PORT)
        return bool(keys)


def _ended(text: str) -> str:
    return text if text.endswith("\n") or not text else f"{text}\n"


def _name(target: Target) -> str:
    if target.port in (None, SSH_PORT):
        return target.address
    return f"[{target.address}]:{target.port}"


def _line(target: Target, key: asyncssh.SSHKey) -> str:
    algorithm, encoded, *_ = key.export_public_key().decode().split()
    return f"{_name(target)} {algorithm} {encoded}"


def _append(file: Path, line: str) -> None:
    """Add a line, durable, on its own also where the last one was not ended."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with file.open("ab+") as known:
        # Another run may add a line too: between the look at the end and the writing, it waits.
        fcntl.flock(known, fcntl.LOCK_EX)
        lead = "" if _ends(known) else "\n"
        known.write(f"{lead}{line}\n".encode())
        known.flush()
        os.fsync(known)


def _is_ended(file: Path) -> bool:
    try:
        with file.open("rb") as known:
            return _ends(known)
    except FileNotFoundError:
        return True


def _ends(known: BinaryIO) -> bool:
    """Whether a file has no last line that is not ended."""
    size = known.seek(0, os.SEEK_END)
    known.seek(max(size - 1, 0))
    return known.read(1) in (b"", b"\n")
