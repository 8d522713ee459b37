"""Archives of tar on a host, plain or packed with gzip, bzip2 or xz: what is in them, and out."""

from __future__ import annotations

from hashlib import sha256

from kubexm.connector.base import C_LOCALE
from kubexm.errors import StepFailed
from kubexm.runner import files
from kubexm.runner.host import Command, Completed, Host

_UNPACKERS = {"gzip": "`gzip`", "xz": "`xz-utils`, or `xz`", "bzip2": "`bzip2`"}


def list_command(host: Host, path: str, *, sudo: bool | None = None) -> Command:
    """Ask what is in an archive; `listed` reads the answer."""
    return host.command("tar", "-tf", path, sudo=sudo, env=C_LOCALE)


def listed(answer: Completed, path: str) -> tuple[str, ...]:
    """The names in an archive."""
    _require_read(answer, path)
    return tuple(answer.text.splitlines())


async def names(host: Host, path: str, *, sudo: bool | None = None) -> tuple[str, ...]:
    """The names in an archive."""
    (answer,) = await host.batch((list_command(host, path, sudo=sudo),))
    return listed(answer, path)


async def unpack(
    host: Host,
    path: str,
    directory: str,
    *,
    digest: str | None = None,
    strip: int = 0,
    sudo: bool | None = None,
) -> None:
    """Let a directory hold what is in an archive and nothing else; whole, or as it was before.

    With `digest`, its sha256, the archive is checked first; `strip` leaves out so many parts of
    each name.
    """
    if digest is not None:
        await require_digest(host, path, digest, sudo=sudo)
    new = f"{directory}.kubexm-new"
    await files.remove(host, new, recursive=True, sudo=sudo)
    await files.make_directory(host, new, sudo=sudo)
    try:
        await _extract(host, path, new, strip, sudo)
    except StepFailed:
        await files.remove(host, new, recursive=True, sudo=sudo)
        raise
    await _exchange(host, new, directory, sudo)


async def require_digest(host: Host, path: str, digest: str, *, sudo: bool | None = None) -> None:
    """Raise unless a file has this sha256."""
    found = await files.checksum(host, path, sudo=sudo)
    if found is None:
        raise StepFailed(
            f"there is no archive `{path}`", hint="bring it there in a step before this one"
        )
    if found != digest.lower():
        raise StepFailed(
            f"`{path}` has the sha256 {found}, want {digest.lower()}",
            hint="fetch it again; if it is the right one, correct the sha256",
        )


def record_path(host: Host, directory: str) -> str:
    """Where the host keeps what was unpacked into a directory."""
    return f"{host.state_dir}/archives/{sha256(directory.encode()).hexdigest()[:32]}"


async def record(host: Host, directory: str, text: str, *, sudo: bool | None = None) -> None:
    """Keep on the host what was unpacked into a directory; nothing drops the record."""
    path = record_path(host, directory)
    if not text:
        await files.remove(host, path, sudo=sudo)
        return
    await files.make_directory(host, path.rpartition("/")[0], sudo=sudo)
    await files.write(host, path, text.encode(), mode=0o644, sudo=sudo)


async def _extract(host: Host, path: str, into: str, strip: int, sudo: bool | None) -> None:
    options = ("--no-same-owner", f"--strip-components={strip}", "-C", into)
    command = host.command("tar", "-xf", path, *options, sudo=sudo, env=C_LOCALE)
    _require_read(await host.execute(command), path)


async def _exchange(host: Host, new: str, directory: str, sudo: bool | None) -> None:
    """Put a directory in the place of another: two renames, and what is half done can be seen."""
    old = f"{directory}.kubexm-old"
    if await files.exists(host, directory, sudo=sudo):
        await files.remove(host, old, recursive=True, sudo=sudo)
        await host.run("mv", "-T", "--", directory, old, sudo=sudo)
    await host.run("mv", "-T", "--", new, directory, sudo=sudo)
    await files.remove(host, old, recursive=True, sudo=sudo)


def _require_read(done: Completed, path: str) -> None:
    for program, package in _UNPACKERS.items():
        if f"{program}: Cannot exec" in done.error_text:
            raise StepFailed(
                f"can't read `{path}`: the host has no `{program}`",
                hint=f"install the package {package} there",
            )
    Host.checked(("tar", path), done)
