"""Names of hosts in /etc/hosts: a block of ours, the rest of the file is not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kubexm.runner import files, text
from kubexm.runner.host import Command, Completed, Host

PATH = "/etc/hosts"


def names_command(host: Host, *, sudo: bool | None = None) -> Command:
    """Ask for the file; `has_names` reads the answer."""
    return files.content_command(host, PATH, files.EDITED, sudo=sudo)


def has_names(answer: Completed, marker: str, names: Mapping[str, Sequence[str]]) -> bool:
    """Whether the block is there with these names."""
    found = text.decoded(files.content(answer, PATH))
    return text.with_block(found, marker, block(names)) == found


def block(names: Mapping[str, Sequence[str]]) -> str:
    """The lines of a block: names by address."""
    return "".join(f"{address} {' '.join(known)}\n" for address, known in names.items())


async def set_names(
    host: Host, marker: str, names: Mapping[str, Sequence[str]], *, sudo: bool | None = None
) -> None:
    """Have the block hold these names, and no others."""
    old = text.decoded(await files.read(host, PATH, sudo=sudo) or b"")
    new = text.with_block(old, marker, block(names))
    if new != old:
        await files.write(host, PATH, text.encoded(new), sudo=sudo)


async def remove_names(host: Host, marker: str, *, sudo: bool | None = None) -> None:
    """Take the block out."""
    old = text.decoded(await files.read(host, PATH, sudo=sudo) or b"")
    new = text.replaced_block(old, marker, [])
    if new != old:
        await files.write(host, PATH, text.encoded(new), sudo=sudo)
