"""Use cases of the catalog: what there is, and what goes with what."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from kubexm.resource import catalog
from kubexm.resource.catalog import KUBERNETES, Catalog, ChartRelease, Download
from kubexm.resource.entries import Arch

ARCHITECTURES: tuple[Arch, ...] = ("amd64", "arm64")


class Listed(msgspec.Struct, frozen=True):
    """A component of the catalog."""

    name: str
    about: str
    versions: Sequence[str]


class Shown(msgspec.Struct, frozen=True, rename="camel"):
    """One version of a component."""

    name: str
    version: str
    downloads: Sequence[Download]
    images: Sequence[str]
    charts: Sequence[ChartRelease]
    goes_with: dict[str, str]
    """Of Kubernetes: the versions of other components that are taken with it."""
    stacked_etcd: str = ""
    """Of Kubernetes: the etcd that kubeadm runs; among the others is that of a service."""
    fits: Sequence[str] = ()
    """Of another component: the release lines of Kubernetes that it goes with, if that matters."""


def listed(files: Sequence[Path] = ()) -> list[Listed]:
    """Every component with its versions, the newest first."""
    known = catalog.load(files)
    return [
        Listed(name, known.component(name).about, known.versions(name)[::-1])
        for name in sorted(known.entries.components)
    ]


def shown(name: str, version: str | None, files: Sequence[Path] = ()) -> Shown:
    """One version of a component; if none is named, the one that goes with the usual Kubernetes."""
    known = catalog.load(files)
    usual = known.component(KUBERNETES).default
    found = known.version(name, version or known.default(name, usual))
    beside = known.line(found).defaults if name == KUBERNETES else {}
    return Shown(
        name=name,
        version=found,
        downloads=[*_downloads(known, name, found)],
        images=[*dict.fromkeys(known.images(name, found).values())],
        charts=known.charts(name, found),
        goes_with=dict(beside),
        stacked_etcd=known.stacked_etcd(found) if name == KUBERNETES else "",
        fits=[*_fits(known, name, found)],
    )


def _fits(known: Catalog, name: str, version: str) -> Iterable[str]:
    for minor in known.minors:
        is_judged = name in known.entries.kubernetes[minor].fits
        if is_judged and known.verdict(minor, name, version).level == "fits":
            yield minor


def _downloads(known: Catalog, name: str, version: str) -> Iterable[Download]:
    """The files for all architectures; what serves any of them is told once."""
    return dict.fromkeys(
        one for arch in ARCHITECTURES for one in known.downloads(name, version, arch)
    )
