"""Commands on a whole cluster: create it, delete it."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from kubexm.cli import flags
from kubexm.cli.flags import From, Hosts, LiteralSecrets, OnFailureFlag, Only, Output, Skip
from kubexm.plan.select import Selection

if TYPE_CHECKING:
    from kubexm.app.params import ClusterParams, DeletionParams, OperationParams, RunParams
    from kubexm.app.planning import Planned

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
MergeKubeconfig = Annotated[
    bool,
    Parameter(
        negative=(),
        help="Let kubectl in once the cluster is made, as `kubexm kubeconfig NAME --merge` does.",
    ),
]
Check = Annotated[
    bool,
    Parameter(
        name=["--check", "--dry-run"],
        negative=(),
        help="Only look: say what would be done, and change nothing.",
    ),
]


Without = Annotated[
    tuple[str, ...],
    Parameter(
        name="--without",
        negative=(),
        metavar="HOST",
        help="Take this host for gone: it is not called, and all else is deleted. Repeatable.",
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
    merge_kubeconfig: MergeKubeconfig = False,
    allow_literal_secrets: LiteralSecrets = False,
    output: Output = "text",
    logged: flags.Logged,
) -> int:
    """Make hosts the cluster that a file declares; what is so already is left alone."""
    from kubexm.app.params import ClusterParams, OperationParams, PlanParams, RunParams
    from kubexm.cli import endings, running

    if merge_kubeconfig:
        _refuse_to_merge(check, simulate)
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
    if merge_kubeconfig:
        _refuse_another(params)
    code = asyncio.run(running.run(params, output, logged))
    if merge_kubeconfig and code in endings.DONE:
        let_in(operation.cluster)
    return code


def let_in(cluster: ClusterParams) -> None:
    """Bring the way in to kubectl; the cluster is made, so that can only be warned of."""
    from kubexm.cli import clusters, messages
    from kubexm.errors import KubexmError, Problem

    name = "NAME"
    try:
        name = _called(None, cluster)
        messages.notice(clusters.merge_kubeconfig(name))
    except KubexmError as error:
        again = f"try again with: kubexm kubeconfig {name} --merge"
        hint = f"{error.hint}; {again}" if error.hint else again
        messages.warn([Problem(f"kubectl is not let in: {error}", hint=hint)])


def _refuse_to_merge(check: bool, simulate: bool) -> None:
    """Before anything begins, also if kubectl's own file is none."""
    from kubexm.app import kubectl_config
    from kubexm.errors import InvalidInput

    given = "--simulate" if simulate else "--check"
    if simulate or check:
        why = "a simulated cluster lets nobody in" if simulate else "nothing is made"
        message = f"`--merge-kubeconfig` has no effect with `{given}`: {why}"
        raise InvalidInput(message, hint="leave one of them out")
    kubectl_config.there(kubectl_config.usual_place(os.environ))


def _refuse_another(params: RunParams) -> None:
    """The same where kubectl knows another cluster of this name."""
    from kubexm.app import brought, kubectl_config, runs
    from kubexm.common.paths import Home

    planned = runs.foreseen(params)
    path, name = kubectl_config.usual_place(os.environ), planned.graph.name
    if planned.about is not None:
        brought.refuse_others(Home.from_environment(), name, planned.about, path)


def delete(
    name: Annotated[
        str | None,
        Parameter(metavar="NAME", help="The cluster, as `kubexm get clusters` has it."),
    ] = None,
    /,
    *,
    file: Annotated[
        Path | None,
        Parameter(name=["--file", "-f"], help="Its file, in place of its name."),
    ] = None,
    without: Without = (),
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
    from kubexm.app import runs
    from kubexm.app.params import ClusterParams, PlanParams, RunParams
    from kubexm.cli import running

    cluster = ClusterParams(file, allow_literal_secrets, catalog) if file is not None else None
    params = RunParams(
        PlanParams(_deletion(name, cluster, simulate, world, without)),
        check=check,
        simulate=simulate,
        world=world,
        parallelism=parallelism,
    )
    if not (yes or check or simulate):
        _confirm(runs.foreseen(params))
    return asyncio.run(running.run(params, output, logged))


def _deletion(
    name: str | None,
    cluster: ClusterParams | None,
    simulate: bool,
    world: Path | None,
    without: tuple[str, ...],
) -> DeletionParams | OperationParams:
    from kubexm.app import places
    from kubexm.app.params import DeletionParams, OperationParams
    from kubexm.common.paths import Home

    called = _called(name, cluster)
    where = places.world_path(Home.from_environment(), called, world) if simulate else None
    if cluster is not None:
        return OperationParams(cluster, "delete-cluster", world=where, without=without)
    return DeletionParams(called, where, without)


def _called(name: str | None, cluster: ClusterParams | None) -> str:
    """The name of the cluster, which is given or in the file."""
    from kubexm.app import clusters
    from kubexm.errors import InvalidInput

    if name is not None and cluster is None:
        return name
    if name is None and cluster is not None:
        return clusters.read_whole(cluster).declared.name
    found = "neither" if name is None else "both"
    message = f"found {found} of the name of a cluster and `--file`, want one of them"
    raise InvalidInput(message, hint="`kubexm get clusters` shows what there is")


def _confirm(planned: Planned) -> None:
    """Nobody takes a cluster away by a slip: its name has to be typed."""
    from kubexm.cli import asking
    from kubexm.errors import Refused

    name = planned.graph.name
    question = f"delete cluster `{name}` with all its data{_where(planned)}? Type its name:"
    given = asking.answer(question, "--yes")
    if given != name:
        raise Refused(f"found `{given}`, want `{name}`", hint="nothing was changed")


def _where(planned: Planned) -> str:
    """The hosts with their addresses: another cluster may have the same name, and hosts too."""
    from kubexm.common.counting import few
    from kubexm.common.roles import CONTROL_NODE

    hosts = [host for host in planned.hosts if host.name != CONTROL_NODE]
    return f", on {few([f'{host.name} ({host.address})' for host in hosts])}" if hosts else ""
