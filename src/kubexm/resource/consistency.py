"""Where a catalog of the right form contradicts itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from string import Formatter

from kubexm.common.counting import few
from kubexm.common.nearest import did_you_mean
from kubexm.resource import versions
from kubexm.resource.entries import Component, Entries, Line
from kubexm.resource.reading import KeyPath, Mistake

OF_VERSION = frozenset({"version", "bare"})
OF_FILE = OF_VERSION | {"arch"}
OF_URL = OF_FILE | {"file"}


def contradictions(entries: Entries) -> Iterator[Mistake]:
    """Everything that is named and not there, or can't be read."""
    for name, component in entries.components.items():
        yield from _of_component(("components", name), component)
    for name, line in entries.kubernetes.items():
        yield from _of_line(("kubernetes", name), line, entries)
    if "kubernetes" in entries.components:
        yield from _without_line(entries)


def _of_component(path: KeyPath, component: Component) -> Iterator[Mistake]:
    if component.default:
        yield from _unknown((*path, "default"), component.default, component.versions, "version")
    for name, traits in component.traits.items():
        for index, trait in enumerate(traits):
            place = (*path, "traits", name, index, "versions")
            yield from _unread(place, trait.versions, versions.parse_range)
    for version, release in component.versions.items():
        place = (*path, "versions", version)
        for artifact in release.sha256:
            yield from _unknown((*place, "sha256", artifact), artifact, component.artifacts, "file")
    for place, template, filled in _templates(component):
        yield from _unfilled((*path, *place), template, filled, component)


def _templates(component: Component) -> Iterator[tuple[KeyPath, str, frozenset[str]]]:
    for name, artifact in component.artifacts.items():
        yield ("artifacts", name, "file"), artifact.file, OF_FILE
        for index, url in enumerate(artifact.urls):
            yield ("artifacts", name, "urls", index), url, OF_URL
    for name, image in component.images.items():
        yield ("images", name), image, OF_VERSION
    for name, chart in component.charts.items():
        yield ("charts", name, "version"), chart.version, OF_VERSION


def _unfilled(
    path: KeyPath, template: str, filled: frozenset[str], component: Component
) -> Iterator[Mistake]:
    try:
        found = [(name, form or how) for _, name, form, how in Formatter().parse(template)]
    except ValueError:
        yield Mistake(path, f"found `{template}`, in which a brace has no partner", "close it")
        return
    if any(form for _, form in found):
        message = f"found `{template}`, want nothing but a name in braces"
        yield Mistake(path, message, "write it as `{version}`, without `!` and `:`")
    for name in sorted({name for name, _ in found if name is not None} - filled):
        lacking = [version for version, each in component.versions.items() if name not in each.uses]
        if lacking:
            hint = f"{did_you_mean(name, filled)} or add it to the `uses` of the version"
            yield Mistake(path, f"`{{{name}}}` stands for nothing in {few(lacking)}", hint)


def _of_line(path: KeyPath, line: Line, entries: Entries) -> Iterator[Mistake]:
    known = _versions(entries, "kubernetes")
    yield from _unknown((*path, "default"), line.default, known, "version")
    for version, expected in line.expected.items():
        place = (*path, "expected", version)
        yield from _foreign(place, version, str(path[-1]))
        # The last part of this tag counts the builds of the image.
        etcd = f"v{expected.etcd.partition('-')[0]}"
        yield from _unknown((*place, "etcd"), etcd, _versions(entries, "etcd"), "version")
    for name, version in line.defaults.items():
        place = (*path, "defaults", name)
        yield from _unknown(place, name, entries.components, "component")
        if name in entries.components:
            yield from _unknown(place, version, _versions(entries, name), "version")
    for name, fit in line.fits.items():
        place = (*path, "fits", name)
        yield from _unknown(place, name, entries.components, "component")
        for index, text in enumerate(fit.versions):
            yield from _unread((*place, "versions", index), text, versions.parse_range)


def _without_line(entries: Entries) -> Iterator[Mistake]:
    for version in entries.components["kubernetes"].versions:
        path = ("components", "kubernetes", "versions", version)
        minor = versions.parse(version).minor
        if minor not in entries.kubernetes:
            known = ", ".join(f"`{line}`" for line in entries.kubernetes)
            message = f"the release line `{minor}` is not supported, only {known}"
            yield Mistake(path, message, f'describe it in `[kubernetes."{minor}"]`')
        elif not _foresees(entries.kubernetes[minor], version):
            message = "nothing says what its kubeadm expects"
            hint = f'add `[kubernetes."{minor}".expected."{version}"]`'
            yield Mistake(path, message, hint)


def _foresees(line: Line, version: str) -> bool:
    return any(versions.parse(since) <= versions.parse(version) for since in line.expected)


def _foreign(path: KeyPath, version: str, line: str) -> Iterator[Mistake]:
    if versions.parse(version).minor != line:
        yield Mistake(path, f"found `{version}`, want a version of `{line}`", "write one of them")


def _unknown(path: KeyPath, name: str, known: Iterable[str], what: str) -> Iterator[Mistake]:
    names = list(known)
    if name not in names:
        hint = did_you_mean(name, names) or f"add the {what}"
        yield Mistake(path, f"unknown {what} `{name}`", hint)


def _versions(entries: Entries, component: str) -> Iterable[str]:
    found = entries.components.get(component)
    return found.versions if found is not None else ()


def _unread(path: KeyPath, text: str, parse: Callable[[str], object]) -> Iterator[Mistake]:
    try:
        parse(text)
    except versions.BadVersion as error:
        yield Mistake(path, str(error), "write bounds, with commas between them")
