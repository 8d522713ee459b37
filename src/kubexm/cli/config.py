"""Commands on a cluster file by itself."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from kubexm.app import clusters
from kubexm.app.params import ClusterParams
from kubexm.cli.catalog import Overlays
from kubexm.cli.flags import LiteralSecrets, Output
from kubexm.cli.output import document, say
from kubexm.config.model.endpoint import EndpointKind
from kubexm.config.model.network import NetworkPlugin

_FORMAT = "The form of the document."
ClusterFile = Annotated[
    Path, Parameter(name=["--file", "-f"], help="The cluster file, YAML or JSON.")
]


def init(
    *,
    file: Annotated[
        Path, Parameter(name=["--file", "-f"], help="The cluster file to write.")
    ] = Path("cluster.yaml"),
    name: Annotated[str | None, Parameter(help="What the cluster is called.")] = None,
    host: Annotated[
        tuple[str, ...],
        Parameter(
            name="--host",
            negative=(),
            metavar="NAME=ADDRESS",
            help="A host, or several with a range in both. Repeatable.",
        ),
    ] = (),
    control_plane: Annotated[
        tuple[str, ...],
        Parameter(
            negative=(),
            metavar="NAME",
            help="A host that runs the API server; the first host unless given. Repeatable.",
        ),
    ] = (),
    loadbalancer: Annotated[
        tuple[str, ...],
        Parameter(
            negative=(),
            metavar="NAME",
            help="A host in front of the control planes, for `--endpoint keepalived`. Repeatable.",
        ),
    ] = (),
    kubernetes: Annotated[
        str | None, Parameter(metavar="VERSION", help="The version of Kubernetes.")
    ] = None,
    user: Annotated[str, Parameter(help="Who logs in.")] = "root",
    key: Annotated[str | None, Parameter(metavar="PATH", help="The private key for that.")] = None,
    sudo: Annotated[bool, Parameter(negative=(), help="Who logs in becomes root by sudo.")] = False,
    network: Annotated[NetworkPlugin, Parameter(help="The plugin for pods.")] = "calico",
    endpoint: Annotated[
        EndpointKind | None, Parameter(help="What stands in front of the control planes.")
    ] = None,
    address: Annotated[
        str | None, Parameter(metavar="ADDRESS", help="The address of that.")
    ] = None,
    force: Annotated[bool, Parameter(negative=(), help="Write over a file.")] = False,
) -> int:
    """Write a first cluster file, with comments."""
    from kubexm.app import drafts
    from kubexm.cli import asking

    params = drafts.DraftParams(
        file=file,
        name=name or asking.answer("what is the cluster called?", "--name"),
        hosts=host or asking.answers("a host as NAME=ADDRESS", "--host"),
        control_plane=control_plane,
        loadbalancer=loadbalancer,
        version=kubernetes,
        user=user,
        key=key,
        sudo=sudo,
        network=network,
        endpoint=endpoint,
        address=address,
        overwrite=force,
    )
    drafts.draft(params)
    say(f"wrote {file}\nhint: look at it, then: kubexm config validate -f {shlex.quote(str(file))}")
    return 0


def validate(
    *,
    file: ClusterFile,
    catalog: Overlays = (),
    allow_literal_secrets: LiteralSecrets = False,
    output: Output = "text",
) -> int:
    """Check a cluster file."""
    from kubexm.app import validating
    from kubexm.cli import messages

    found = validating.validate(ClusterParams(file, allow_literal_secrets, catalog))
    messages.warn(found.warnings)
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
    catalog: Overlays = (),
    allow_literal_secrets: LiteralSecrets = False,
    output: Annotated[
        Literal["json", "yaml"], Parameter(name=["--output", "-o"], help=_FORMAT)
    ] = "yaml",
) -> int:
    """Show a cluster file as it is understood."""
    document(
        clusters.show(ClusterParams(file, allow_literal_secrets, catalog), defaults=defaults),
        output,
    )
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
