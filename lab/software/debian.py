"""Packages of Debian, unpacked and not installed: apt with a state of its own, nothing of the
machine's is touched.
"""

from __future__ import annotations

import subprocess
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from lab import mirror
from lab.errors import LabError
from lab.software import programs
from lab.software.recipe import SUITE

_KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"


class Archive:
    """Debian's archive of packages, as apt knows it in a directory."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._settings = {"APT_CONFIG": str(place / "apt.conf")}
        self._is_new = False

    def update(self) -> None:
        """Get the lists of packages, once."""
        if self._is_new:
            return
        for name in ("lists/partial", "cache/archives/partial"):
            (self._place / name).mkdir(parents=True, exist_ok=True)
        # Nothing is installed as far as this apt knows, so all that something depends on comes.
        (self._place / "status").write_text("")
        source = f"deb [signed-by={_KEYS}] {mirror.mirror()} {SUITE} main\n"
        (self._place / "sources.list").write_text(source)
        (self._place / "apt.conf").write_text(_settings(self._place))
        self._apt("apt-get", "--quiet", "update")
        self._is_new = True

    def versions(self, packages: Collection[str]) -> dict[str, str]:
        """The versions of packages that are installed if one asks for them, in the same order."""
        said = self._apt("apt-cache", "show", "--no-all-versions", *packages)
        stanzas = [dict(_fields(stanza)) for stanza in said.split("\n\n")]
        there = {each["Package"]: each["Version"] for each in stanzas if each}
        if lacking := [name for name in packages if name not in there]:
            raise LabError(f"Debian {SUITE} has no package {', '.join(lacking)}")
        return {name: there[name] for name in packages}

    def has(self, packages: Iterable[str]) -> bool:
        """Whether these are the versions that can be had: an archive keeps no older ones."""
        self.update()
        wanted = dict(_pair(package) for package in packages)
        return self.versions(wanted) == wanted

    def unpack(self, packages: Iterable[str], root: Path) -> None:
        """Have packages in a directory, with all that they depend on."""
        self._apt("apt-get", "--quiet", "--yes", "--download-only", "install", *packages)
        found = sorted((self._place / "cache/archives").glob("*.deb"))
        for package in found:
            programs.run("dpkg-deb", "--extract", package, root)
            package.unlink()

    def _apt(self, *words: str) -> str:
        return programs.run(*words, variables=self._settings)


def libraries(root: Path, program: Path) -> Iterator[Path]:
    """The libraries of a program, and what loads them, in an unpacked system."""
    (places,) = {path.parent for path in root.glob("usr/lib/*/ld-linux-*.so.*")}
    (loader,) = places.glob("ld-linux-*.so.*")
    said = subprocess.run(
        [loader, "--library-path", places, "--list", program],
        capture_output=True,
        text=True,
        check=False,
    )
    if said.returncode != 0:
        raise LabError(f"`{program.name}` lacks a library: {said.stdout}{said.stderr}")
    for line in said.stdout.splitlines():
        found = line.rpartition("=> ")[2].split()[0]
        if found.startswith(f"{places}/"):
            yield Path(found)


def loader_link(root: Path) -> Path:
    """Where programs look for their loader."""
    (found,) = root.glob("usr/lib*/ld-linux-*.so.*")
    return found


def _pair(package: str) -> tuple[str, str]:
    name, _, version = package.partition("=")
    return name, version


def _fields(stanza: str) -> Iterator[tuple[str, str]]:
    for line in stanza.splitlines():
        name, colon, value = line.partition(": ")
        if colon and not line.startswith(" "):
            yield name, value


def _settings(place: Path) -> str:
    settings = {
        "Dir::Etc::SourceList": str(place / "sources.list"),
        "Dir::Etc::SourceParts": "/dev/null",
        "Dir::State::Lists": str(place / "lists"),
        "Dir::State::Status": str(place / "status"),
        "Dir::Cache": str(place / "cache"),
        "Acquire::Languages": "none",
        "APT::Update::Error-Mode": "any",
        "APT::Install-Recommends": "false",
        # As root apt would hand downloads to a user who can't reach this directory.
        "APT::Sandbox::User": "root",
    }
    return "".join(f'{name} "{value}";\n' for name, value in settings.items())
