"""Where everything of a lab lies, and what is known of it: one directory.

What is made outside this directory (cgroups) or on top of it (mounts) follows from the files in
it, and those are written first. So whoever takes the lab down finds all there may be.
"""

from __future__ import annotations

import dataclasses
import fcntl
import json
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path

from lab import cgroups, processes
from lab.cgroups import Groups
from lab.errors import LabError
from lab.roster import Entry, Host, Suite

_SPEAKABLE = re.compile(r"[\w./+@-]+")


@dataclass(frozen=True, slots=True)
class Home:
    """The directory of one host."""

    path: Path

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def record(self) -> Path:
        """What the host is; there before anything else of it is made."""
        return self.path / "host.json"

    @property
    def image(self) -> Path:
        """Its disk, as a file with holes."""
        return self.path / "disk.img"

    @property
    def disk(self) -> Path:
        """Where its disk is mounted."""
        return self.path / "disk"

    @property
    def root(self) -> Path:
        """Its root directory: the image of its suite below, its disk above."""
        return self.path / "root"

    @property
    def netns(self) -> Path:
        return self.path / "netns"

    @property
    def keeper(self) -> Path:
        return self.path / "keeper.json"

    @property
    def console(self) -> Path:
        return self.path / "console.log"

    @property
    def faults(self) -> Path:
        return self.path / "faults.json"

    @property
    def mounts(self) -> tuple[Path, ...]:
        """All that is ever mounted for a host, in the order of unmounting."""
        return (self.root, self.disk, self.netns)


@dataclass(frozen=True, slots=True)
class Site:
    """A lab: its directory, its name and its groups."""

    path: Path
    id: str
    boot: str
    groups: Groups

    @property
    def netns(self) -> Path:
        return self.path / "netns"

    @property
    def keys(self) -> Path:
        return self.path / "keys"

    @property
    def passwords(self) -> Path:
        return self.path / "passwords"

    @property
    def known_hosts(self) -> Path:
        return self.path / "known_hosts"

    @property
    def ssh_config(self) -> Path:
        return self.path / "ssh_config"

    def home(self, name: str) -> Home:
        return Home(self.path / "hosts" / name)

    def machine(self, name: str) -> str:
        """What nspawn calls the host: unlike that of any other lab."""
        return f"kxm-{self.id}-{name}"

    def hosts(self) -> tuple[Host, ...]:
        """The hosts that have a record, in the order of their addresses."""
        records = (self.path / "hosts").glob("*/host.json")
        hosts = (_host(json.loads(record.read_text())) for record in records)
        return tuple(sorted(hosts, key=lambda host: IPv4Address(host.address)))

    def host(self, name: str) -> Host:
        for host in self.hosts():
            if host.name == name:
                return host
        known = ", ".join(host.name for host in self.hosts()) or "none"
        raise LabError(f"there is no host `{name}` in this lab, only: {known}")

    def add(self, host: Host) -> Home:
        """Write down a host that is about to be made."""
        home = self.home(host.name)
        home.path.mkdir(parents=True, exist_ok=True)
        write(home.record, json.dumps(dataclasses.asdict(host)))
        return home


def default_place() -> str:
    """`KUBEXM_LAB`, or `.lab` in the directory the command is given in."""
    return os.environ.get("KUBEXM_LAB") or ".lab"


def place(text: str) -> Path:
    """A directory as the kernel's list of mounts shows it: absolute, without links."""
    return Path(text).resolve()


def find(path: Path) -> Site | None:
    """The lab in a directory; None if there is none."""
    record = path / "lab.json"
    if not record.exists():
        return None
    known = json.loads(record.read_text())
    controllers = tuple(Path(one) for one in known["controllers"])
    return Site(path, known["id"], known["boot"], Groups(Path(known["unified"]), controllers))


def require(path: Path) -> Site:
    """The lab in a directory, made since the machine was started."""
    found = find(path)
    if found is None:
        raise LabError(f"there is no lab in `{path}`: `python -m lab up` makes one")
    if found.boot != processes.boot():
        raise LabError(f"the lab in `{path}` ended with the machine: `python -m lab down` first")
    return found


def found_new(path: Path) -> Site:
    """Begin a lab in a directory that has none; the first thing that is written of it."""
    if path.exists() and any(one.name != "lock" for one in path.iterdir()):
        raise LabError(f"`{path}` is neither empty nor a lab")
    if not _SPEAKABLE.fullmatch(str(path)):
        raise LabError(f"`{path}` has characters that mount options can't: take another directory")
    path.mkdir(parents=True, exist_ok=True)
    name = secrets.token_hex(3)
    begun = Site(path, name, processes.boot(), cgroups.own_now().below(f"kxm-{name}"))
    write(path / "lab.json", json.dumps(_known(begun)))
    return begun


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Only one command at a time makes or unmakes things; the others wait."""
    handle = _lock(path)
    try:
        yield
    finally:
        os.close(handle)


def write(path: Path, text: str, mode: int = 0o644) -> None:
    """Write a file as a whole or not at all."""
    half = path.with_name(f".{path.name}.half")
    half.unlink(missing_ok=True)
    handle = os.open(half, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(handle, "w") as file:
        file.write(text)
    half.rename(path)


def _lock(path: Path) -> int:
    while True:
        path.mkdir(parents=True, exist_ok=True)
        handle = os.open(path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(handle, fcntl.LOCK_EX)
        # Who held it before may have removed the lab, and this file with it.
        if os.fstat(handle).st_nlink:
            return handle
        os.close(handle)


def _known(site: Site) -> dict[str, object]:
    return {
        "id": site.id,
        "boot": site.boot,
        "unified": str(site.groups.unified),
        "controllers": [str(one) for one in site.groups.controllers],
    }


def _host(known: dict[str, str]) -> Host:
    kinds = {"suite": Suite(known["suite"]), "entry": Entry(known["entry"])}
    return Host(**(known | kinds))  # type: ignore[arg-type] # the values are of these kinds
