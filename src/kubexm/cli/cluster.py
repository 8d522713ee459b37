"""Commands on a whole cluster: create it, delete it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from kubexm.cli import flags
from kubexm.cli.flags import From, Hosts, LiteralSecrets, OnFailureFlag, Only, Output, Skip
from kubexm.plan.select import Selection

if TYPE_CHECKING:
    from kubexm.app.params import ClusterParams

ClusterFile = Annotated[
    Path, Parameter(name=["--file", "-f"], help="The cluster file, YAML or JSON.")
]
World = Annotated[
    Path | None,
    Parameter(
        help="With --simulate: the directory of the simulated hosts, made if it is not there; by"
        " default each cluster has its own."
    ),
]
Simulate = Annotated[
    bool, Parameter(negative=(), help="On simulated hosts; no real host is touched.")
]
Check = Annotated[
    bool,
    Parameter(
        name=["--check", "--dry-run"],
        negative=(),
        help="Only look: say what would be done, and change nothing.",
    ),
]


def create(
    *,
    file: ClusterFile,
    bundle: flags.Bundle = None,
    catalog: flags.Catalogs = (),
    templates: flags.Templates = None,
    check: Check = False,
    simulate: Simulate = False,
    world: World = None,
    only: Only = (),
    from_: From = (),
    skip: Skip = (),
    hosts: Hosts = (),
    parallelism: flags.Parallelism = None,
    on_failure: OnFailureFlag = None,
    require_all_hosts: flags.RequireAllHosts = False,
    allow_literal_secrets: LiteralSecrets = False,
    output: Output = "text",
    logged: flags.Logged,
) -> int:
    """Make hosts the cluster that a file declares; what is so already is left alone."""
    from kubexm.app.params import ClusterParams, OperationParams, PlanParams, RunParams
    from kubexm.cli import running

    operation = OperationParams(
        ClusterParams(file, allow_literal_secrets, catalog),
        bundle=bundle,
        templates=templates,
    )
    params = RunParams(
        PlanParams(operation, Selection(only=only, from_=from_, skip=skip, hosts=hosts)),
        check=check,
        simulate=simulate,
        world=world,
        parallelism=parallelism,
        on_failure=on_failure,
        require_all_hosts=require_all_hosts,
    )
    return asyncio.run(running.run(params, output, logged))


def delete(
    *,
    file: ClusterFile,
    yes: Annotated[bool, Parameter(negative=(), help="Don't ask.")] = False,
    catalog: flags.Catalogs = (),
    check: Check = False,
    simulate: Simulate = False,
    world: World = None,
    parallelism: flags.Parallelism = None,
    allow_literal_secrets: LiteralSecrets = False,
    output: Output = "text",
    logged: flags.Logged,
) -> int:
    """Take away all that was laid on hosts for a cluster; what was there before comes back."""
    from kubexm.app.params import ClusterParams, OperationParams, PlanParams, RunParams
    from kubexm.cli import running

    cluster = ClusterParams(file, allow_literal_secrets, catalog)
    if not (yes or check or simulate):
        _confirm(cluster)
    params = RunParams(
        PlanParams(OperationParams(cluster, "delete-cluster")),
        check=check,
        simulate=simulate,
        world=world,
        parallelism=parallelism,
    )
    return asyncio.run(running.run(params, output, logged))


def _confirm(cluster: ClusterParams) -> None:
    """Nobody takes a cluster away by a slip: its name has to be typed."""
    from kubexm.app import clusters
    from kubexm.cli import asking
    from kubexm.errors import Refused

    name = clusters.read(cluster).declared.name
    given = asking.answer(f"delete cluster `{name}` with all its data? Type its name:", "--yes")
    if given != name:
        raise Refused(f"found `{given}`, want `{name}`", hint="nothing was changed")
