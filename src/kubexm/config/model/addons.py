"""What else is put into the cluster once it is there."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from kubexm.config.fields import ChartUrl, ChartVersion, KubeName
from kubexm.document.fields import FilePath, Name, PositiveDuration, Text
from kubexm.document.forms import BadValue, Filled, Form, Range, empty

_WAYS = ("manifests", "inline", "chart", "component")


class ChartSpec(Form):
    """A chart of Helm."""

    name: Text
    """What it is called in its repository, or the path of its archive, made by `helm package`."""
    repository: ChartUrl | None = None
    """The address of the repository; nothing for a path."""
    version: ChartVersion | None = None
    """Which; it has to be said of a chart of a repository, and is what an archive says of itself if
    nothing is said."""
    values: dict[str, Any] = empty(dict)
    """Its values."""
    values_files: tuple[FilePath, ...] = ()
    """Files with values; those under `values` win."""


class AddonSpec(Form):
    """Manifests, a chart, or a component that kubexm knows."""

    name: Name
    """What it is called in paths and results, and as a release."""
    namespace: KubeName = "default"
    """Where it goes, unless a manifest says so itself."""
    manifests: Annotated[tuple[FilePath, ...], Filled()] | None = None
    """Files with manifests; none has a `Secret` with values, which a hook may lay by reference."""
    inline: Text | None = None
    """Manifests written out; none is a `Secret` with values, which a hook may lay by reference."""
    chart: ChartSpec | None = None
    """A chart."""
    component: Literal["metrics-server"] | None = None
    """Something that kubexm itself knows how to install; it goes into the namespace that it is used
    to."""
    timeout: Annotated[PositiveDuration, Range(least=1)] = 300.0
    """How long it may take until all of it runs."""

    def judged(self) -> AddonSpec:
        ways = [name for name in _WAYS if getattr(self, name) is not None]
        if len(ways) != 1:
            found = " and ".join(f"`{way}`" for way in ways) or "none"
            raise BadValue(
                f"found {found}, want one of `manifests`, `inline`, `chart` and `component`",
                "write one of them; two add-ons for two",
            )
        return self
