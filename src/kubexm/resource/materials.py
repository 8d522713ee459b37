"""The bill of materials: everything that has to be at hand before a cluster can be made.

What images are called in a private registry is said in `kubexm.resource.private_names`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import ParamSpec, TypeVar

import msgspec
from msgspec.structs import asdict, replace

from kubexm.errors import InvalidInput, Problem
from kubexm.resource import images, versions
from kubexm.resource.catalog import KUBERNETES, Catalog, ChartRelease, Download
from kubexm.resource.entries import Arch, Family
from kubexm.resource.needs import NamedImage, Needs
from kubexm.resource.parts import KUBE_NODES, OWN_REGISTRY, Part, parts, system_parts
from kubexm.resource.private_names import private

KUBEADMS = ("coredns", "etcd", "kubernetes", "pause")
"""The components whose images kubeadm runs, or asks for."""
_ASKED = ("somebody asked for it",)
_P = ParamSpec("_P")
_T = TypeVar("_T")


class Binary(Download, frozen=True, kw_only=True):
    """A file to fetch: where it is used, and why."""

    used_on: tuple[str, ...]
    reasons: tuple[str, ...]

    @property
    def key(self) -> tuple[str, ...]:
        return self.component, self.version, self.name, self.arch


class Image(msgspec.Struct, frozen=True, kw_only=True):
    """An image by the name that its project gives it, and by the one that hosts pull."""

    name: str
    pulled_as: str
    component: str
    """Empty if somebody asked for the image by name."""
    version: str
    architectures: tuple[Arch, ...]
    used_on: tuple[str, ...]
    """The roles of hosts that have it by the name that they pull."""
    reasons: tuple[str, ...]
    named_on: tuple[str, ...] = ()
    """The roles of hosts that have it by the name of its project, as objects of add-ons name it."""

    @property
    def key(self) -> tuple[str, ...]:
        return self.name, self.pulled_as


class Chart(ChartRelease, frozen=True, kw_only=True):
    """A Helm chart, and why."""

    reasons: tuple[str, ...]

    @property
    def key(self) -> tuple[str, ...]:
        return self.name, self.version, self.repository


class SystemPackage(msgspec.Struct, frozen=True, kw_only=True):
    """A package of an operating system."""

    family: Family
    name: str
    used_on: tuple[str, ...]
    reasons: tuple[str, ...]

    @property
    def key(self) -> tuple[str, ...]:
        return self.family, self.name


class BillOfMaterials(msgspec.Struct, frozen=True, kw_only=True):
    """All of it, sorted, nothing twice."""

    kubernetes: tuple[str, ...]
    binaries: tuple[Binary, ...]
    images: tuple[Image, ...]
    charts: tuple[Chart, ...]
    packages: tuple[SystemPackage, ...]
    warnings: tuple[str, ...]
    """Combinations that nobody has tested."""


_Item = TypeVar("_Item", Binary, Image, Chart, SystemPackage)
_TOGETHER = ("architectures", "named_on", "reasons", "used_on")


def bill(catalog: Catalog, *needs: Needs) -> BillOfMaterials:
    """What all of these need together; `InvalidInput` with everything that can't be had."""
    plans = [_Plan(catalog, each) for each in needs]
    for plan in plans:
        plan.resolve()
    problems = list(dict.fromkeys(problem for plan in plans for problem in plan.problems))
    if problems:
        message = "the materials of the cluster can't be told"
        raise InvalidInput(message, problems=problems, hint="correct what is named")
    return BillOfMaterials(
        kubernetes=tuple(sorted({plan.kubernetes for plan in plans}, key=versions.parse)),
        binaries=_merged(item for plan in plans for item in plan.binaries),
        images=_merged(item for plan in plans for item in plan.images),
        charts=_merged(item for plan in plans for item in plan.charts),
        packages=_merged(item for plan in plans for item in plan.packages),
        warnings=tuple(sorted({warning for plan in plans for warning in plan.warnings})),
    )


class _Plan:
    """What one cluster needs, as far as it has been found out."""

    def __init__(self, catalog: Catalog, needs: Needs) -> None:
        self.kubernetes = ""
        self.binaries: list[Binary] = []
        self.images: list[Image] = []
        self.charts: list[Chart] = []
        self.packages: list[SystemPackage] = []
        self.problems: list[Problem] = []
        self.warnings: list[str] = []
        self._catalog = catalog
        self._needs = needs
        self._versions: dict[str, str | None] = {}

    def resolve(self) -> None:
        """Find out everything, and everything that is wrong."""
        needs, catalog = self._needs, self._catalog
        self.kubernetes = self._asked(catalog.version, KUBERNETES, needs.kubernetes) or ""
        if not needs.architectures:
            hint = "name `amd64`, `arm64` or both"
            self.problems.append(Problem("found no architecture, want at least one", hint=hint))
        for component in (*needs.versions, *needs.addons):
            if component == "etcd" and needs.etcd == "external":
                self._judge_external_etcd()
            elif self._asked(catalog.component, component):
                self._version(component)
        for part in parts(needs) if self.kubernetes else ():
            self._add(part)
        self.charts += [Chart(**asdict(chart), reasons=_ASKED) for chart in needs.charts]
        for text in needs.extra_images:
            self._add_image(text, Part("", (), KUBE_NODES, *_ASKED))
        for named in needs.named_images:
            self._add_named(named)
        self.packages += self._system_packages()

    def _add(self, part: Part) -> None:
        """The files, images and charts of a part in the version that was chosen."""
        if not part.needed and not self._catalog.has_default(part.component, self.kubernetes):
            return
        version = self._version(part.component)
        if version is None:
            return
        self.binaries += self._files(part, version)
        for name, image in self._catalog.images(part.component, version).items():
            if part.has(name):
                self._add_image(image, part, version)
        for chart in self._catalog.charts(part.component, version):
            if part.has(chart.name):
                self.charts.append(Chart(**asdict(chart), reasons=(part.reason,)))

    def _files(self, part: Part, version: str) -> Iterator[Binary]:
        for arch in self._needs.architectures:
            for file in self._catalog.downloads(part.component, version, arch):
                if part.has(file.name):
                    yield Binary(**asdict(file), used_on=part.used_on, reasons=(part.reason,))

    def _add_image(self, text: str, part: Part, version: str = "") -> None:
        name = self._asked(self._named, text, part.component)
        pulled = self._asked(self._pulled, name, part.component) if name else None
        if name is None or pulled is None:
            return
        made = Image(
            name=str(name),
            pulled_as=str(pulled),
            component=part.component,
            version=version,
            architectures=self._needs.architectures,
            used_on=part.used_on,
            reasons=(part.reason,),
        )
        self.images.append(made)

    def _add_named(self, named: NamedImage) -> None:
        """An image by the name that pods ask containerd for."""
        machines = self._needs.architectures
        if named.architectures:
            machines = tuple(arch for arch in machines if arch in named.architectures)
        name = self._asked(_as_pods_ask, named)
        pulled = self._pulled_already(name) if name else None
        if name is None or pulled is None or not machines:
            return
        made = Image(
            name=str(name),
            pulled_as=pulled,
            component="",
            version="",
            architectures=machines,
            used_on=(),
            reasons=(named.reason,),
            named_on=KUBE_NODES,
        )
        self.images.append(made)

    def _pulled_already(self, name: images.Reference) -> str | None:
        """The name that hosts pull it by for us, so that no image is there twice."""
        known = (image.pulled_as for image in self.images if image.name == str(name))
        if (found := next(known, None)) is not None:
            return found
        pulled = self._asked(self._pulled, name, "")
        return None if pulled is None else str(pulled)

    def _system_packages(self) -> Iterator[SystemPackage]:
        for part in system_parts(self._needs):
            for family in self._needs.families:
                for name in self._catalog.packages(part.package, family):
                    yield SystemPackage(
                        family=family, name=name, used_on=part.used_on, reasons=(part.reason,)
                    )

    def _named(self, text: str, component: str) -> images.Reference:
        """The name of an image where it comes from."""
        name, repository = images.parse(text), self._needs.image_repository
        if repository is None or component not in KUBEADMS:
            return name
        # As kubeadm does it: in a repository of somebody else there are no folders.
        moved = images.parse(f"{repository}/{name.repository.rpartition('/')[2]}:{name.tag}")
        return replace(moved, digest=name.digest)

    def _pulled(self, name: images.Reference, component: str) -> images.Reference:
        """The name by which hosts have it; a registry can't give what it is made of itself."""
        registry = self._needs.registry
        is_itself = component == OWN_REGISTRY and self._needs.own_registry
        return name if registry is None or is_itself else private(name, registry)

    def _version(self, component: str) -> str | None:
        """The version of a component, judged once; nothing if there is none."""
        if component not in self._versions:
            self._versions[component] = self._asked(self._chosen, component)
            self._judge(component)
        return self._versions[component]

    def _chosen(self, component: str) -> str:
        if component == KUBERNETES:
            return self._catalog.version(component, self._needs.kubernetes)
        if explicit := self._needs.versions.get(component):
            return self._catalog.version(component, explicit)
        if component == "etcd" and self._needs.etcd == "stacked":
            return self._catalog.stacked_etcd(self.kubernetes)
        # Of an unknown Kubernetes nothing is the default, and that it is unknown was said.
        return self._catalog.default(component, self.kubernetes) if self.kubernetes else ""

    def _judge(self, component: str) -> None:
        version = self._versions[component]
        if not version or not self.kubernetes:
            return
        verdict = self._catalog.verdict(self.kubernetes, component, version)
        if verdict.level == "fits":
            return
        what = f"`{component}` `{version}` with Kubernetes `{self.kubernetes}`"
        if verdict.level == "untested":
            self.warnings.append(f"{what} is not tested: {verdict.reason}")
        else:
            message = f"{what} does not go together: {verdict.reason}"
            self.problems.append(Problem(message, hint=verdict.hint))

    def _judge_external_etcd(self) -> None:
        """One that others run need not be in the catalog, nor its version be told."""
        version = self._needs.versions.get("etcd")
        if version is None:
            return
        least = self._catalog.expected(self.kubernetes).least_etcd if self.kubernetes else "0"
        try:
            is_enough = versions.parse(version) >= versions.parse(least)
        except versions.BadVersion as error:
            self.problems.append(Problem(f"etcd: {error}", hint="ask it for its version"))
            return
        if not is_enough:
            message = f"the external etcd `{version}` is too old for `{self.kubernetes}`"
            hint = f"bring it to `{least}` or newer; kubeadm accepts no older one"
            self.problems.append(Problem(message, hint=hint))

    def _asked(self, ask: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T | None:
        """The answer, or nothing and what is wrong."""
        try:
            return ask(*args, **kwargs)
        except InvalidInput as error:
            details = "; ".join(problem.message for problem in error.problems)
            message = f"{error.message}: {details}" if details else error.message
            self.problems.append(Problem(message, hint=error.hint))
            return None


def _as_pods_ask(named: NamedImage) -> images.Reference:
    """The name by which containerd looks for the image of a pod: of tag and digest, the digest."""
    try:
        name = images.parse(named.name)
    except InvalidInput as error:
        message = f"{error.message}, and {named.reason}"
        raise InvalidInput(message, problems=error.problems, hint=error.hint) from error
    return replace(name, tag="") if name.digest else name


def _merged(items: Iterable[_Item]) -> tuple[_Item, ...]:
    """Each once, with all its reasons, in a fixed order."""
    found: dict[tuple[str, ...], _Item] = {}
    for item in items:
        found[item.key] = _joined(found.get(item.key, item), item)
    return tuple(found[key] for key in sorted(found))


def _joined(one: _Item, other: _Item) -> _Item:
    # Of an image that somebody asked for by name too, the component is known.
    known = max(one, other, key=lambda item: str(getattr(item, "component", "")))
    both = {name: _either(one, other, name) for name in _TOGETHER if hasattr(one, name)}
    return replace(known, **both)


def _either(one: object, other: object, name: str) -> tuple[str, ...]:
    return tuple(sorted({*getattr(one, name), *getattr(other, name)}))
