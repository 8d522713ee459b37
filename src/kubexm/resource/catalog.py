"""The catalog: which versions there are, where they come from, and what goes with what.

The catalog of the program is in the TOML files beside this module. A catalog of a user has the
same form and says only what it adds or changes; a lock is one too. Nothing is read before
somebody asks for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, reduce
from hashlib import sha256
from pathlib import Path
from typing import Literal, TypeVar

import msgspec
from msgspec.structs import replace

from kubexm.common.nearest import did_you_mean
from kubexm.errors import InvalidFile, InvalidInput, Problem
from kubexm.resource import reading, versions
from kubexm.resource.entries import (
    Arch,
    Component,
    Entries,
    Expected,
    Family,
    FileArch,
    Fit,
    Line,
    Package,
)

KUBERNETES = "kubernetes"
_ROOT = Path(__file__).with_name("catalog")
_OURS = "the catalog of kubexm"
Level = Literal["fits", "untested", "conflicts"]
_T = TypeVar("_T")


class Download(msgspec.Struct, frozen=True, kw_only=True):
    """A file of one version for one architecture or any, and where it can be had, best first."""

    component: str
    name: str
    version: str
    arch: FileArch
    kind: Literal["binary", "archive", "manifest"]
    file: str
    urls: tuple[str, ...]
    sha256: str | None


class ChartRelease(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """A Helm chart in one version."""

    name: str
    version: str
    repository: str


class Verdict(msgspec.Struct, frozen=True):
    """Whether a version goes with a Kubernetes version, who says so, and what to do if not."""

    level: Level
    reason: str = ""
    hint: str = ""


class Catalog(msgspec.Struct, frozen=True):
    """Answers out of the entries of one or more catalogs."""

    entries: Entries
    named: dict[str, dict[str, str]] = {}
    """The defaults that catalogs of users name, by release line and component."""

    @property
    def digest(self) -> str:
        """Changes when anything in it does, so that a stored graph can tell."""
        said = (self.entries, self.named) if self.named else self.entries
        return sha256(msgspec.json.encode(said, order="deterministic")).hexdigest()

    @property
    def minors(self) -> tuple[str, ...]:
        """The release lines of Kubernetes that are supported, the oldest first."""
        return tuple(sorted(self.entries.kubernetes, key=versions.parse))

    def component(self, name: str) -> Component:
        """What is known of a component; `InvalidInput` if nothing is."""
        return _one(self.entries.components, name, "component")

    def versions(self, component: str) -> tuple[str, ...]:
        """The versions of a component, the oldest first."""
        return tuple(sorted(self.component(component).versions, key=versions.parse))

    def version(self, component: str, wanted: str) -> str:
        """A version as its project writes it; of Kubernetes a release line will do: `1.36`."""
        known = self.component(component).versions
        plain = versions.bare(wanted)
        if found := next((name for name in (wanted, f"v{plain}", plain) if name in known), ""):
            return found
        line = self.entries.kubernetes.get(f"v{plain}") if component == KUBERNETES else None
        if line is None:
            raise self._unknown(component, wanted)
        return line.default

    def line(self, kubernetes: str) -> Line:
        """What is known of the release line of a Kubernetes version."""
        found = versions.parse(self.version(KUBERNETES, kubernetes))
        return self.entries.kubernetes[found.minor]

    def default(self, component: str, kubernetes: str) -> str:
        """The version of a component that is taken with a version of Kubernetes."""
        if component == KUBERNETES:
            return self.version(KUBERNETES, kubernetes)
        preferred = self.line(kubernetes).defaults.get(component, "")
        found = preferred or self.component(component).default
        if not found:
            message = f"no version of `{component}` is the default for Kubernetes `{kubernetes}`"
            raise InvalidInput(message, hint=f"name one: {_listed(self.versions(component))}")
        return found

    def has_default(self, component: str, kubernetes: str) -> bool:
        """Whether any version of a component is taken with a version of Kubernetes."""
        known = self.entries.components.get(component)
        named = self.line(kubernetes).defaults.get(component, "")
        return known is not None and bool(named or known.default)

    def stacked_etcd(self, kubernetes: str) -> str:
        """The etcd that kubeadm runs: its own choice, unless a user's catalog names a default."""
        minor = versions.parse(self.version(KUBERNETES, kubernetes)).minor
        named = self.named.get(minor, {}).get("etcd")
        return self.version("etcd", named or self.expected(kubernetes).etcd.partition("-")[0])

    def expected(self, kubernetes: str) -> Expected:
        """What the kubeadm of this version takes by itself."""
        version = self.version(KUBERNETES, kubernetes)
        since = self.line(version).expected
        holds = [name for name in since if versions.parse(name) <= versions.parse(version)]
        return since[max(holds, key=versions.parse)]

    def downloads(self, component: str, version: str, arch: Arch) -> tuple[Download, ...]:
        """The files of a version for an architecture."""
        version = self.version(component, version)
        names = self.component(component).artifacts
        return tuple(self._download(component, name, version, arch) for name in names)

    def images(self, component: str, version: str) -> dict[str, str]:
        """The full names of the images of a version, by what they are."""
        version = self.version(component, version)
        values = self._values(component, version)
        images = self.component(component).images
        return {name: template.format_map(values) for name, template in images.items()}

    def charts(self, component: str, version: str) -> tuple[ChartRelease, ...]:
        """The Helm charts of a version."""
        version = self.version(component, version)
        values = self._values(component, version)
        return tuple(
            ChartRelease(
                name=chart.name,
                version=chart.version.format_map(values),
                repository=chart.repository,
            )
            for chart in self.component(component).charts.values()
        )

    def trait(self, component: str, version: str, name: str) -> str | None:
        """What is so in a version, such as the `config-version` of containerd."""
        traits = _one(self.component(component).traits, name, f"trait of `{component}`")
        found = versions.parse(self.version(component, version))
        holds = (each.value for each in traits if found in versions.parse_range(each.versions))
        return next(holds, None)

    def verdict(self, kubernetes: str, component: str, version: str) -> Verdict:
        """Whether a version of a component goes with a version of Kubernetes."""
        fit = self.line(kubernetes).fits.get(component)
        version = self.version(component, version)
        if fit is None or _fits(fit, version):
            return Verdict("fits", fit.reason if fit else "")
        return Verdict(fit.otherwise, fit.reason, self._remedy(kubernetes, component, version))

    def package(self, name: str) -> Package:
        """What the operating systems call something that they bring."""
        return _one(self.entries.packages, name, "package")

    def packages(self, name: str, family: Family) -> tuple[str, ...]:
        """The packages to install for it."""
        by_family = msgspec.structs.asdict(self.package(name))
        return tuple(by_family[family])

    def _download(self, component: str, name: str, version: str, arch: Arch) -> Download:
        artifact = self.component(component).artifacts[name]
        own: FileArch = "any" if artifact.kind == "manifest" else arch
        values = {**self._values(component, version), "arch": own}
        file = artifact.file.format_map(values)
        urls = [url.format_map({**values, "file": file}) for url in artifact.urls]
        return Download(
            component=component,
            name=name,
            version=version,
            arch=own,
            kind=artifact.kind,
            file=file,
            urls=tuple(dict.fromkeys([*self._mirrored(urls), *urls])),
            sha256=self.component(component).versions[version].sha256.get(name, {}).get(own),
        )

    def _values(self, component: str, version: str) -> dict[str, str]:
        uses = self.component(component).versions[version].uses
        return {**uses, "version": version, "bare": versions.bare(version)}

    def _mirrored(self, urls: Sequence[str]) -> Iterator[str]:
        for url in urls:
            for beginning, mirrors in self.entries.mirrors.items():
                if url.startswith(beginning):
                    yield from (f"{mirror}{url.removeprefix(beginning)}" for mirror in mirrors)

    def _remedy(self, kubernetes: str, component: str, version: str) -> str:
        """Another version that goes with this Kubernetes, or a Kubernetes that this one fits."""
        lines = self.entries.kubernetes
        default = self.default(component, kubernetes)
        suits = _suits(self.line(kubernetes), component, default)
        others = [name for name in self.minors if _suits(lines[name], component, version)]
        ways = [f"`{component}` `{default}`"] if suits else []
        ways += [f"Kubernetes {_listed(others)}"] if others else []
        return f"take {', or '.join(ways)}" if ways else ""

    def _unknown(self, component: str, wanted: str) -> InvalidInput:
        known = self.versions(component)
        name = f"v{versions.bare(wanted)}" if known and known[-1].startswith("v") else wanted
        key = reading.written(("components", component, "versions", name))
        hint = f"if there is one, add `[{key}]` to a catalog of your own"
        if known:
            hint = f"the nearest known is `{_nearest(wanted, known)}`; {hint}"
        return InvalidInput(f"unknown version `{wanted}` of `{component}`", hint=hint)


def load(files: Sequence[Path] = ()) -> Catalog:
    """The catalog of the program, with those of the user laid over it in their order."""
    if not files:
        return _packaged()
    from kubexm.resource.consistency import contradictions  # noqa: PLC0415 ours is consistent
    from kubexm.resource.forms import mistakes  # noqa: PLC0415 and of the right form

    sources = _sources(files)
    nothing: reading.Data = {}
    theirs = reduce(reading.overlaid, (data for _, data in sources), nothing)
    whole = reading.overlaid(_packaged_data(), theirs)
    blamed = [(_OURS, _packaged_data()), *sources]
    _refuse_any(reading.problems(mistakes(whole, partial=False), blamed))
    entries = _without_left_out(msgspec.convert(whole, Entries))
    _refuse_any(reading.problems(list(contradictions(entries)), blamed))
    return Catalog(entries, _named(theirs))


def _without_left_out(entries: Entries) -> Entries:
    lines = {
        minor: replace(line, defaults=_given(line.defaults))
        for minor, line in entries.kubernetes.items()
    }
    return replace(entries, kubernetes=lines)


def _named(data: reading.Data) -> dict[str, dict[str, str]]:
    lines = data.get("kubernetes", {})
    found = {minor: _given(line.get("defaults", {})) for minor, line in lines.items()}
    return {minor: defaults for minor, defaults in found.items() if defaults}


def _given(defaults: dict[str, str]) -> dict[str, str]:
    return {component: version for component, version in defaults.items() if version}


@cache
def _packaged() -> Catalog:
    # It is of the right form and consistent: the tests of the program see to that.
    return Catalog(msgspec.convert(_packaged_data(), Entries))


@cache
def _packaged_data() -> reading.Data:
    return reduce(reading.overlaid, map(reading.read, sorted(_ROOT.glob("*.toml"))), {})


def _sources(files: Sequence[Path]) -> list[reading.Source]:
    from kubexm.resource.forms import mistakes  # noqa: PLC0415 ours are of the right form

    sources: list[reading.Source] = []
    problems: list[Problem] = []
    for file in files:
        try:
            source = (str(file), reading.read(file))
        except InvalidFile as error:
            problems.append(Problem(error.message, error.where, error.hint))
            continue
        sources.append(source)
        problems += reading.problems(mistakes(source[1], partial=True), [source])
    _refuse_any(problems)
    return sources


def _refuse_any(problems: Sequence[Problem]) -> None:
    if problems:
        message = "the catalog can't be used"
        raise InvalidFile(message, problems=problems, hint="correct what is named")


def _fits(fit: Fit, version: str) -> bool:
    return any(versions.parse(version) in versions.parse_range(text) for text in fit.versions)


def _suits(line: Line, component: str, version: str) -> bool:
    fit = line.fits.get(component)
    return fit is None or _fits(fit, version)


def _nearest(wanted: str, known: Sequence[str]) -> str:
    """The latest that is not newer, of the same release line if there is one."""
    try:
        place = versions.parse(wanted)
    except versions.BadVersion:
        return known[-1]
    alike = [name for name in known if versions.parse(name).numbers[:2] == place.numbers[:2]]
    older = [name for name in alike or known if versions.parse(name) <= place]
    return older[-1] if older else (alike or known)[0]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _one(table: dict[str, _T], name: str, what: str) -> _T:
    if name not in table:
        raise InvalidInput(f"unknown {what} `{name}`", hint=did_you_mean(name, table))
    return table[name]
