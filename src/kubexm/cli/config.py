"""Commands on a cluster file by itself."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from kubexm.app import clusters
from kubexm.app.clusters import ClusterParams
from kubexm.cli.flags import LiteralSecrets, Output
from kubexm.cli.output import document, say

_FORMAT = "The form of the document."
ClusterFile = Annotated[
    Path, Parameter(name=["--file", "-f"], help="The cluster file, YAML or JSON.")
]


def validate(
    *, file: ClusterFile, allow_literal_secrets: LiteralSecrets = False, output: Output = "text"
) -> int:
    """Check a cluster file."""
    found = clusters.validate(ClusterParams(file, allow_literal_secrets))
    if output != "text":
        document(found, output)
        return 0
    say(f"{found.name}: Kubernetes {found.version}")
    say(f"  endpoint {found.endpoint}, etcd {found.etcd}, network {found.network}")
    for group in found.roles:
        say(f"  {group.role}: {' '.join(group.hosts)}")
    return 0


def show(
    *,
    file: ClusterFile,
    defaults: Annotated[
        bool, Parameter(negative=(), help="Also what the file does not say, and follows.")
    ] = False,
    allow_literal_secrets: LiteralSecrets = False,
    output: Annotated[
        Literal["json", "yaml"], Parameter(name=["--output", "-o"], help=_FORMAT)
    ] = "yaml",
) -> int:
    """Show a cluster file as it is understood."""
    document(clusters.show(ClusterParams(file, allow_literal_secrets), defaults=defaults), output)
    return 0


def explain(
    path: Annotated[str, Parameter(help="The key, with dots.")] = "spec",
    /,
    *,
    output: Output = "text",
) -> int:
    """Tell what may be said under a key, such as `spec.network.podCIDR`."""
    found = clusters.explain(path)
    if output != "text":
        document(found, output)
        return 0
    default = f", default {found.default}" if found.default else ""
    say(f"{found.path}: {found.value}{default}")
    say(f"  {found.text}")
    for key, text in found.keys:
        say(f"\n  {key}\n    {text}")
    return 0


def schema(
    *,
    output: Annotated[
        Literal["json", "yaml"], Parameter(name=["--output", "-o"], help=_FORMAT)
    ] = "json",
) -> int:
    """Print the JSON Schema of a cluster file, for editors."""
    document(clusters.schema(), output)
    return 0
