"""By what key each thing of a bill of materials is kept, in stores and in bundles.

Images are kept under their names, see `kubexm.resource.images`.
"""

from __future__ import annotations

from kubexm.common.assets import Wanted
from kubexm.resource.catalog import ChartRelease, Download


def wanted(file: Download) -> Wanted:
    """A file of the catalog as whoever gets hold of it is asked for it."""
    return Wanted(
        component=file.component,
        version=file.version,
        name=file.name,
        arch="" if file.arch == "any" else file.arch,
        file=file.file,
        urls=file.urls,
        sha256=file.sha256 or "",
    )


def of_file(file: Download) -> str:
    """The key of a file: `containerd/v2.2.7/archive/amd64`."""
    return wanted(file).key


def of_chart(chart: ChartRelease) -> str:
    """The key of a chart; that of the newest one ends where the version would be."""
    return f"chart/{chart.repository}/{chart.name}/{chart.version}"
