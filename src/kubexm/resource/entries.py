"""What a catalog says, as data; a file of a user may say any part of it."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

Arch = Literal["amd64", "arm64"]
Family = Literal["apt", "rpm", "zypper"]
ARCHES: tuple[Arch, ...] = ("amd64", "arm64")
FileArch = Literal["amd64", "arm64", "any"]
"""What a file is for; `any` if it is the same on all of them."""
FAMILIES: tuple[Family, ...] = ("apt", "rpm", "zypper")

Sha256 = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z", description="64 hexadecimal digits")]
Minor = Annotated[
    str, Meta(pattern=r"^v[0-9]{1,9}\.[0-9]{1,9}\Z", description="a release line such as `v1.36`")
]
VersionName = Annotated[
    str,
    Meta(
        pattern=r"^v?[0-9]{1,9}(\.[0-9]{1,9}){0,3}([-+][0-9A-Za-z.+_-]+)?\Z",
        description="a version such as `v1.36.3`",
    ),
]
VersionOrNone = Annotated[
    str,
    Meta(
        pattern=r"^(v?[0-9]{1,9}(\.[0-9]{1,9}){0,3}([-+][0-9A-Za-z.+_-]+)?)?\Z",
        description="a version such as `v1.36.3`, or an empty text for none",
    ),
]
Name = Annotated[
    str, Meta(pattern=r"^[a-z][a-z0-9-]*\Z", description="a name such as `cni-plugins`")
]
RangeText = Annotated[
    str,
    Meta(
        pattern=r"^(>=|<=|<|>|=)[^,]+(,\s*(>=|<=|<|>|=)[^,]+)*\Z",
        description="bounds such as `>=2.1.5,<2.2`",
    ),
]
Url = Annotated[
    str,
    Meta(
        pattern=r"^(https?|file|s3)://\S+\Z", description="an address such as `https://mine.lan/`"
    ),
]


Repository = Annotated[
    str,
    Meta(
        pattern=r"^(https?|file|oci)://\S+\Z",
        description="a repository such as `https://mine.lan/charts` or `file:///srv/charts`",
    ),
]


class Artifact(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file to fetch; `{version}`, `{bare}`, `{arch}` and `{file}` are filled in."""

    file: str
    urls: Annotated[tuple[Url, ...], Meta(min_length=1)]
    kind: Literal["binary", "archive", "manifest"]
    """A manifest is the same for all architectures."""


class Chart(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A Helm chart in a repository of them."""

    repository: Repository
    """An address, or a directory of this machine with its `index.yaml`."""
    name: str
    version: str


class Trait(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is so in some versions of a component."""

    versions: RangeText
    value: str


class Release(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One version: what its files must be, and what else its templates need."""

    sha256: dict[Name, dict[FileArch, Sha256]] = {}
    uses: dict[Name, str] = {}


class Component(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Something that can be installed."""

    about: str
    digests: str = ""
    """Who has published the sha256, in words."""
    default: str = ""
    """The version to take where a release line of Kubernetes names no other."""
    artifacts: dict[Name, Artifact] = {}
    images: dict[Name, str] = {}
    charts: dict[Name, Chart] = {}
    traits: dict[Name, tuple[Trait, ...]] = {}
    versions: dict[VersionName, Release] = {}


class Expected(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What kubeadm takes by itself: tags of images, and the least etcd that it accepts."""

    etcd: str
    coredns: str
    pause: str
    least_etcd: VersionName


class Fit(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which versions of a component go with a release line of Kubernetes, and who says so."""

    versions: Annotated[tuple[RangeText, ...], Meta(min_length=1)]
    otherwise: Literal["conflicts", "untested"] = "conflicts"
    reason: str


class Line(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A release line of Kubernetes."""

    default: VersionName
    expected: dict[VersionName, Expected]
    """By the patch version from which on it holds."""
    defaults: dict[Name, VersionOrNone] = {}
    """What is taken of each component; by an empty text a catalog of a user leaves out what ours
    names."""
    fits: dict[Name, Fit] = {}


class Package(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Packages of the operating system, by what installs them."""

    about: str
    apt: tuple[str, ...]
    rpm: tuple[str, ...]
    zypper: tuple[str, ...]


class Entries(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All of a catalog."""

    mirrors: dict[Url, tuple[Url, ...]] = {}
    """Beginnings of addresses, and what is tried in their place before them."""
    kubernetes: dict[Minor, Line] = {}
    components: dict[Name, Component] = {}
    packages: dict[Name, Package] = {}
