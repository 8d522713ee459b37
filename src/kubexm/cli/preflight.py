"""The command that asks hosts whether they are fit for a cluster."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from kubexm.cli.flags import Bundle, Catalogs, Hosts, LiteralSecrets, Output
from kubexm.cli.output import document, say


def preflight(
    *,
    file: Annotated[Path, Parameter(name=["--file", "-f"], help="The cluster file, YAML or JSON.")],
    hosts: Hosts = (),
    bundle: Bundle = None,
    catalog: Catalogs = (),
    simulate: Annotated[
        bool, Parameter(negative=(), help="On simulated hosts; no real host is touched.")
    ] = False,
    world: Annotated[
        Path | None,
        Parameter(
            help="With --simulate: the directory of the simulated hosts; by default each cluster"
            " has its own."
        ),
    ] = None,
    allow_literal_secrets: LiteralSecrets = False,
    output: Output = "text",
) -> int:
    """Ask all hosts of a cluster file whether they are fit for it; nothing is changed."""
    from kubexm.app.execution import Front
    from kubexm.app.params import ClusterParams
    from kubexm.app.preflight import PreflightParams, check
    from kubexm.cli import fitness, messages, terminal
    from kubexm.common.paths import Home
    from kubexm.runtime.secrets import SecretVault

    cluster = ClusterParams(file, allow_literal_secrets, catalog)
    front = Front(warn=messages.warn)
    if terminal.is_interactive():
        front.vault = SecretVault(terminal.secret)
    params = PreflightParams(cluster, hosts, simulate, world, bundle)
    found = asyncio.run(check(params, front, Home.from_environment()))
    if output == "text":
        say(fitness.as_text(found))
    else:
        document(fitness.as_data(found), output)
    return fitness.exit_code(found)
