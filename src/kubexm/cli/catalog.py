"""Commands on the catalog of components."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from kubexm.app import catalogs
from kubexm.cli.flags import LiteralSecrets, Output
from kubexm.cli.leaving import CANCELLED
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

Architectures = Annotated[
    tuple[Literal["amd64", "arm64"], ...],
    Parameter(
        name="--arch",
        negative=(),
        help="An architecture in place of those of the hosts. Repeatable.",
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


def lock(
    *,
    file: Annotated[Path, Parameter(name=["--file", "-f"], help="The cluster file, YAML or JSON.")],
    output: Annotated[
        Path, Parameter(name=["--output", "-o"], metavar="FILE", help="The catalog to write.")
    ],
    arch: Architectures = (),
    catalog: Overlays = (),
    force: Annotated[
        bool,
        Parameter(negative=(), help="Write over a file, and fetch anew what was fetched before."),
    ] = False,
    allow_literal_secrets: LiteralSecrets = False,
) -> int:
    """Fetch files whose checksums the catalog lacks, and hold them fast in another."""
    from kubexm.app import locks
    from kubexm.app.bills import BillParams, granted
    from kubexm.cli import fetching
    from kubexm.cli.messages import mention
    from kubexm.common.paths import Home

    wanted = BillParams(
        file=file,
        architectures=arch,
        catalogs=catalog,
        allow_literal_secrets=allow_literal_secrets,
    )
    mention(granted(wanted))
    params, home = locks.LockParams(wanted, output, force), Home.from_environment()
    vault = fetching.vault()
    found = fetching.run(lambda progress: locks.hold_fast(params, home, vault, progress))
    if found is None:
        return CANCELLED
    for one in found:
        say(f"locked {one.component} {one.version} {one.name} {one.arch}: sha256 {one.sha256}")
    say(
        f"wrote {output}: the checksums of files; images and charts are held fast by a bundle\n"
        f"hint: give it to other commands with --catalog {output}"
        if found
        else f"the checksums of all files that {file} needs are known: nothing to lock"
    )
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
    for chart in found.charts:
        say(f"  chart {chart.name} {chart.version}: {chart.repository}")
    for name, beside in found.goes_with.items():
        stacked = found.stacked_etcd if name == "etcd" else beside
        more = f" as a service, {stacked} stacked" if stacked != beside else ""
        say(f"  with {name} {beside}{more}")
    if found.fits:
        say(f"  fits Kubernetes {', '.join(found.fits)}")
    return 0
