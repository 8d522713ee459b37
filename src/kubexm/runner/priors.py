"""What was at a path before we changed it, as data, and how to bring it back.

Small files are data themselves. What is large, or nobody's business, is copied on the host, in
a directory that only root may read, and the data says where.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from typing import Any

from kubexm.errors import StepFailed
from kubexm.runner import files
from kubexm.runner.host import FileStat, Host

KEPT = 1 << 16
"""Content up to this size is kept as data."""

Prior = Mapping[str, Any]
"""What a resource was like before it was changed."""
ABSENT: Prior = {"kind": "absent"}


async def capture(
    host: Host, path: str, copy: str, *, private: bool = False, sudo: bool | None = None
) -> Prior:
    """All that is needed to restore what is at a path; of a directory, the directory alone.

    A copy on the host, if there has to be one, gets the name that is given.
    """
    found = await files.stat(host, path, sudo=sudo)
    if found is None:
        return ABSENT
    if found.kind == "other":
        raise lost_if_removed(path)
    prior: dict[str, Any] = {"kind": found.kind, **_attributes(found)}
    if found.kind == "link":
        prior["target"] = await _target(host, path, sudo)
    elif found.kind == "file" and (private or files.is_private(found) or found.size > KEPT):
        prior |= await _copied(host, path, copy, sudo)
    elif found.kind == "file":
        data = await host.get(path, sudo=sudo)
        prior["content"] = b64encode(data).decode()
    return prior


def lost_if_removed(path: str) -> StepFailed:
    """The error for what no rollback could bring back."""
    return StepFailed(
        f"`{path}` is neither a file nor a directory nor a link: it could not be restored",
        hint="remove it with a `command` step",
    )


async def capture_tree(host: Host, path: str, copy: str, *, sudo: bool | None = None) -> Prior:
    """The same for a directory with all that is in it."""
    return {"kind": "tree", "copy": await _copy(host, path, copy, sudo)}


async def keep_names(
    host: Host, path: str, names: Sequence[str], copy: str, *, sudo: bool | None = None
) -> str:
    """Keep these names below a directory in an archive on the host; where that is."""
    kept = f"{_directory(host)}/{copy}"
    await _make_directory(host, sudo)
    listed = b"".join(name.encode() + b"\0" for name in names)
    archive = ("--null", "--no-recursion", "-cf", f"{kept}.new", "-C", path, "-T", "-")
    await host.run("tar", *archive, stdin=listed, sudo=sudo)
    await host.run("mv", "-fT", "--", f"{kept}.new", kept, sudo=sudo)
    return kept


async def untold(host: Host, copy: str, data: Prior, *, sudo: bool | None = None) -> Prior:
    """Where this data is kept on the host, in place of it; `told` has it back."""
    kept = f"{_directory(host)}/{copy}"
    await _make_directory(host, sudo)
    await files.write(host, kept, json.dumps(data).encode(), mode=0o600, sudo=sudo)
    return {"kept": kept}


async def told(host: Host, prior: Prior, *, sudo: bool | None = None) -> Prior:
    """All of a state of which a part may be kept on the host."""
    if (kept := prior.get("kept")) is None:
        return prior
    return {**prior, **json.loads(await host.get(kept, sudo=sudo))}


def kept_at(host: Host, copy: str) -> str:
    """Where the host keeps what was given this name, if anything was."""
    return f"{_directory(host)}/{copy}"


async def restore(host: Host, path: str, prior: Prior, *, sudo: bool | None = None) -> None:
    """Bring back what was there; what is there already stays untouched."""
    match prior["kind"]:
        case "absent":
            await files.remove(host, path, sudo=sudo)
        case "file":
            await _restore_file(host, path, prior, sudo)
        case "link":
            await _restore_link(host, path, prior, sudo)
        case "directory":
            await files.make_directory(host, path, sudo=sudo)
            await files.set_attributes(host, path, **_wanted(prior), sudo=sudo)
        case "tree":
            await _restore_copy(host, path, prior["copy"], sudo)


async def _restore_file(host: Host, path: str, prior: Prior, sudo: bool | None) -> None:
    if "content" in prior:
        data = b64decode(prior["content"])
        await files.write(host, path, data, **_wanted(prior), sudo=sudo)
    elif await files.checksum(host, path, sudo=sudo) != prior["sha256"]:
        await _restore_copy(host, path, prior["copy"], sudo)
    else:
        await files.set_attributes(host, path, **_wanted(prior), sudo=sudo)


async def _restore_link(host: Host, path: str, prior: Prior, sudo: bool | None) -> None:
    if await _target(host, path, sudo) != prior["target"]:
        await files.remove(host, path, sudo=sudo)
        await host.run("ln", "-s", "--", prior["target"], path, sudo=sudo)
        await host.run("chown", "-h", "--", f"{prior['owner']}:{prior['group']}", path, sudo=sudo)


async def _target(host: Host, path: str, sudo: bool | None) -> str | None:
    answer = await host.ask("readlink", "--", path, sudo=sudo)
    return answer.text if answer.ok else None


async def _restore_copy(host: Host, path: str, copy: str, sudo: bool | None) -> None:
    beside = f"{path}.kubexm"
    await files.remove(host, beside, recursive=True, sudo=sudo)
    await host.run("cp", "-aT", "--", copy, beside, sudo=sudo)
    await files.remove(host, path, recursive=True, sudo=sudo)
    await host.run("mv", "-T", "--", beside, path, sudo=sudo)


async def _copied(host: Host, path: str, copy: str, sudo: bool | None) -> Prior:
    digest = await files.checksum(host, path, sudo=sudo)
    return {"sha256": digest, "copy": await _copy(host, path, copy, sudo)}


async def _copy(host: Host, path: str, copy: str, sudo: bool | None) -> str:
    kept = f"{_directory(host)}/{copy}"
    await _make_directory(host, sudo)
    await files.remove(host, f"{kept}.new", recursive=True, sudo=sudo)
    await host.run("cp", "-aT", "--", path, f"{kept}.new", sudo=sudo)
    await files.remove(host, kept, recursive=True, sudo=sudo)
    await host.run("mv", "-T", "--", f"{kept}.new", kept, sudo=sudo)
    return kept


async def _make_directory(host: Host, sudo: bool | None) -> None:
    await files.make_directory(host, _directory(host), mode=0o700, sudo=sudo)


def _directory(host: Host) -> str:
    return f"{host.state_dir}/priors"


def _attributes(found: FileStat) -> dict[str, Any]:
    return {"mode": f"{found.mode:04o}", "owner": found.owner, "group": found.group}


def _wanted(prior: Prior) -> dict[str, Any]:
    return {"mode": int(prior["mode"], 8), "owner": prior["owner"], "group": prior["group"]}
