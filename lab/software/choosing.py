"""Which versions are made: those of the product's catalog, or the nearest that can be had."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from lab import site
from lab.errors import LabError
from lab.software import catalog, golang, recipe, versions
from lab.software.debian import Archive
from lab.software.progress import Told

KUBERNETES = "kubernetes"
_AT_ONCE = 8
_LASTS = 24 * 60 * 60.0
"""Seconds for which the newest is taken for the newest."""
STAND_IN = "-lab"
"""After the version of something that is not what its name says."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A component in the version that is made of it."""

    component: str
    version: str
    wanted: str
    package: str = ""
    """The version of the package of Debian that it comes from."""

    @property
    def told(self) -> str:
        """In words, where it is not what the catalog wants."""
        if self.version == self.wanted:
            return ""
        if self.version.endswith(STAND_IN):
            return f"{self.component} {self.wanted}: can't be built; a stand-in says so instead"
        return f"{self.component} {self.wanted}: can't be had; {self.version} in its place"


@dataclass(frozen=True, slots=True)
class Choices:
    """All that is made for a version of Kubernetes."""

    kubernetes: str
    etcd: str
    """The one that kubeadm runs as a pod."""
    all: tuple[Choice, ...]
    packages: tuple[str, ...]
    """The packages of Debian with their versions."""

    def version(self, component: str) -> str:
        """That of a component; of etcd the one that is a service of its own."""
        found = [each.version for each in self.all if each.component == component]
        return found[-1]

    def of(self, component: str) -> Iterator[Choice]:
        return (each for each in self.all if each.component == component)

    @property
    def deviations(self) -> tuple[str, ...]:
        return tuple(each.told for each in self.all if each.told)


@dataclass(frozen=True, slots=True)
class Asked:
    """What versions are chosen for, with which packages, and where choices are remembered."""

    kubernetes: str
    extra: tuple[str, ...]
    archive: Archive
    memory: Path

    @property
    def place(self) -> Path:
        """Where the choice is for this recipe and catalog."""
        about = (self.kubernetes, sorted(self.extra), recipe.GO, recipe.PACKAGES, catalog.read())
        return self.memory / f"{hashlib.sha256(repr(about).encode()).hexdigest()[:12]}.json"

    @property
    def is_due(self) -> bool:
        """Whether the newest is wanted, and may be another by now."""
        age = time.time() - self.place.stat().st_mtime
        return age > _LASTS and not versions.is_whole(self.kubernetes)


def chosen(asked: Asked) -> Choices:
    """The choice that was made once, else a new one."""
    if not asked.place.exists():
        return again(asked)
    return _read(json.loads(asked.place.read_text()))


def renewed(asked: Asked, told: Told) -> Choices:
    """The same, made again if it is due; where nobody can be asked the old one stays."""
    if asked.place.exists() and asked.is_due:
        try:
            return again(asked)
        except LabError as error:
            told(f"whether there are newer versions can't be known now: {error}")
            # Who is cut off need not wait for that each time.
            os.utime(asked.place)
    return chosen(asked)


def again(asked: Asked) -> Choices:
    """A new choice, which is the one from now on."""
    asked.memory.mkdir(parents=True, exist_ok=True)
    asked.archive.update()
    _ask_for_versions()
    found = _choose(_kubernetes(asked.kubernetes), asked.extra, asked.archive)
    site.write(asked.place, json.dumps(dataclasses.asdict(found), indent=2))
    return found


def _ask_for_versions() -> None:
    """All at once: an answer takes a second or two, and is remembered."""
    modules = [module for part in recipe.GO.values() for module in part.modules]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(golang.known, modules))


def _choose(kubernetes: str, extra: Iterable[str], archive: Archive) -> Choices:
    left_out = set(recipe.OPTIONAL) - set(extra)
    stacked = _go("etcd", _of_tag(catalog.read().expected(kubernetes)))
    built = [_go(name, _default(name, kubernetes)) for name in recipe.GO if name not in left_out]
    # Of etcd there is one for pods and one for services, which may be the same.
    others = [each for each in built if (each.component, each.version) != ("etcd", stacked.version)]
    packages = archive.versions(recipe.PACKAGES)
    every = (stacked, *others, *_others(kubernetes, packages))
    named = tuple(f"{name}={version}" for name, version in packages.items())
    return Choices(kubernetes, stacked.version, every, named)


def _of_tag(tag: str) -> str:
    """Of the tag of an image of etcd the last part counts its builds."""
    return f"v{tag.partition('-')[0]}"


def _kubernetes(wanted: str) -> str:
    """A version, the newest of a release line, or the newest of all that the catalog knows."""
    (module,) = recipe.GO[KUBERNETES].modules
    lines = catalog.read().lines
    there = [each for each in golang.known(module) if versions.line(each) in lines]
    plain = f"v{versions.bare(wanted)}" if wanted else ""
    fitting = [each for each in there if not wanted or plain in (each, versions.line(each))]
    if not fitting:
        raise LabError(f"there is no Kubernetes `{wanted}` to build, only: {', '.join(there)}")
    return fitting[-1]


def _default(component: str, kubernetes: str) -> str:
    return kubernetes if component == KUBERNETES else catalog.read().default(component, kubernetes)


def _go(component: str, wanted: str) -> Choice:
    """All modules of a component have to be there in the same version."""
    known = [set(golang.known(module)) for module in recipe.GO[component].modules]
    there = versions.nearest(wanted, set.intersection(*known))
    # Some components are called without the `v` that every module has.
    return Choice(component, there if wanted.startswith("v") else versions.bare(there), wanted)


def _others(kubernetes: str, packages: Mapping[str, str]) -> Iterator[Choice]:
    for name in ("haproxy", "nginx"):
        wanted = catalog.read().default(name, kubernetes)
        yield _packed(name, wanted, packages)
    provisioner = catalog.read().default("local-path", kubernetes)
    uses = catalog.read().components["local-path"]["versions"][provisioner]["uses"]
    yield _packed("busybox", uses["busybox"], packages)
    pause = catalog.read().default("pause", kubernetes)
    yield Choice("pause", pause, pause)
    crictl = catalog.read().default("crictl", kubernetes)
    yield Choice("crictl", f"{crictl}{STAND_IN}", crictl)


def _packed(component: str, wanted: str, packages: Mapping[str, str]) -> Choice:
    package = packages[recipe.DEBIAN[component]]
    return Choice(component, versions.of_package(package), wanted, package)


def _read(known: dict[str, object]) -> Choices:
    every, packages = known["all"], known["packages"]
    assert isinstance(every, list)
    assert isinstance(packages, list)
    choices = tuple(Choice(**each) for each in every)
    return Choices(str(known["kubernetes"]), str(known["etcd"]), choices, tuple(packages))
