"""Rules of add-ons."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kubexm.config.model.addons import AddonSpec, ChartSpec
from kubexm.config.rules.rule import Declared, rule
from kubexm.document.findings import Finding
from kubexm.document.source import DataPath

_CHART = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_RELEASE = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LONGEST_RELEASE = 53
"""What helm takes, so that its own objects can have longer names."""
_Place = tuple[DataPath, AddonSpec, ChartSpec]


@rule("addon-names", "addons")
def addon_names(cluster: Declared) -> Iterator[Finding]:
    """Every add-on has a name of its own."""
    first: dict[str, int] = {}
    for number, addon in enumerate(cluster.spec.addons):
        if (other := first.setdefault(addon.name, number)) != number:
            place = ("spec", "addons", number, "name")
            hint = f"entry {other} has it already"
            yield Finding(place, f"the add-on `{addon.name}` is there twice", hint)


@rule("chart-version", "addons")
def chart_version(cluster: Declared) -> Iterator[Finding]:
    """Which chart of a repository is meant does not change from day to day."""
    for place, _, chart in _charts(cluster):
        if chart.repository is not None and chart.version is None:
            hint = "add `version: …`; `helm search repo NAME --versions` lists them"
            message = "`version` is missing beside `repository`"
            yield Finding((*place, "chart"), message, hint)


@rule("chart-name", "addons")
def chart_name(cluster: Declared) -> Iterator[Finding]:
    """A repository has charts by names, and no paths."""
    for place, _, chart in _charts(cluster):
        if chart.repository is not None and not _CHART.fullmatch(chart.name):
            message = f"`{chart.name[:40]}` can't be the name of a chart"
            hint = "write the name alone; the folders of a registry belong to `repository`"
            yield Finding((*place, "chart", "name"), message, hint)


@rule("release-name", "addons")
def release_name(cluster: Declared) -> Iterator[Finding]:
    """A chart becomes a release of the name of its add-on, which helm takes."""
    for place, addon, _ in _charts(cluster):
        if len(addon.name) > _LONGEST_RELEASE or not _RELEASE.fullmatch(addon.name):
            message = f"`{addon.name[:60]}` can't be the name of a release"
            hint = f"use small letters, digits, `-` and `.`, at most {_LONGEST_RELEASE}"
            yield Finding((*place, "name"), message, hint)


@rule("addon-namespace", "addons")
def addon_namespace(cluster: Declared) -> Iterator[Finding]:
    """A component goes where it is used to be."""
    for number, addon in enumerate(cluster.spec.addons):
        if addon.component is not None and addon.says("namespace"):
            place = ("spec", "addons", number, "namespace")
            message = f"`namespace` has no meaning for `component: {addon.component}`"
            yield Finding(place, message, "leave it out", at_key=True)


def _charts(cluster: Declared) -> Iterator[_Place]:
    for number, addon in enumerate(cluster.spec.addons):
        if addon.chart is not None:
            yield ("spec", "addons", number), addon, addon.chart


RULES = (addon_names, chart_version, chart_name, release_name, addon_namespace)
