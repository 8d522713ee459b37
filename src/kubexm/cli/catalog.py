"""Commands on the catalog of components."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from kubexm.app import catalogs
from kubexm.cli.flags import Output
from kubexm.cli.output import document, say, table

Overlays = Annotated[
    tuple[Path, ...],
    Parameter(
        name="--catalog",
        negative=(),
        metavar="FILE",
        help="A catalog of yours, whose entries win over those of kubexm. Repeatable.",
    ),
]


def list_(*, catalog: Overlays = (), output: Output = "text") -> int:
    """Every component with its versions."""
    found = catalogs.listed(catalog)
    if output != "text":
        document(found, output)
        return 0
    rows = [(one.name, " ".join(one.versions), one.about) for one in found]
    say(table(("COMPONENT", "VERSIONS", "WHAT IT IS"), rows))
    return 0


def show(
    component: Annotated[str, Parameter(help="The component, as `kubexm catalog list` names it.")],
    version: Annotated[
        str | None, Parameter(help="The version; the one that is usually taken, unless given.")
    ] = None,
    /,
    *,
    catalog: Overlays = (),
    output: Output = "text",
) -> int:
    """One version: where it comes from, and what goes with it."""
    found = catalogs.shown(component, version, catalog)
    if output != "text":
        document(found, output)
        return 0
    say(f"{found.name} {found.version}")
    for one in found.downloads:
        say(f"  {one.name} {one.arch}: {one.urls[0]}\n    sha256 {one.sha256 or 'not known'}")
    for image in found.images:
        say(f"  image {image}")
    for name, beside in found.goes_with.items():
        say(f"  with {name} {beside}")
    return 0
