"""Which file system a path lies on, for SQLite works on local ones only."""

from __future__ import annotations

import re
from pathlib import Path

# Their locks or shared memory do not hold between machines: two writers would ruin the file.
NETWORKED = frozenset(
    ("afs", "cifs", "fuse.glusterfs", "fuse.sshfs", "ncpfs", "nfs", "nfs4", "smb3", "smbfs")
)

_ESCAPED = re.compile(r"\\([0-7]{3})")


def network_filesystem(path: Path, mounts: Path = Path("/proc/mounts")) -> str | None:
    """The type of the network file system that holds this path; None if it is a local one."""
    try:
        text = mounts.read_text(errors="surrogateescape")
    except OSError:
        return None  # no such list on this system: nothing can be told
    found = _type_of(path.resolve(), text)
    return found if found in NETWORKED else None


def _type_of(path: Path, mounts: str) -> str:
    best, found = -1, ""
    for line in mounts.splitlines():
        _device, point, kind, *_rest = line.split()
        where = Path(_ESCAPED.sub(lambda code: chr(int(code[1], 8)), point))
        # A later line hides an earlier one on the same mount point.
        if path.is_relative_to(where) and len(where.parts) >= best:
            best, found = len(where.parts), kind
    return found
