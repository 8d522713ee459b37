"""Commands on a file: run a pipeline, plan it or a cluster, draw it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from kubexm.cli import flags
from kubexm.cli.flags import From, Hosts, LiteralSecrets, OnFailureFlag, Only, Output, Set, Skip
from kubexm.cli.output import Format, document, say
from kubexm.plan.select import Selection

if TYPE_CHECKING:
    from kubexm.app.params import PlanParams
    from kubexm.app.planning import Planned


def run(
    *,
    file: flags.File,
    check: Annotated[
        bool,
        Parameter(
            name=["--check", "--dry-run"],
            negative=(),
            help="Only look: say what would be done, and change nothing.",
        ),
    ] = False,
    debug: Annotated[
        bool, Parameter(negative=(), help="One unit at a time, asking before each.")
    ] = False,
    break_at: Annotated[
        tuple[str, ...],
        Parameter(
            name="--break",
            negative=(),
            metavar=flags.PATH_OR_TAG,
            help="With --debug: ask only at this path or tag, and after a failure. Repeatable.",
        ),
    ] = (),
    simulate: Annotated[
        bool, Parameter(negative=(), help="On simulated hosts; no real host is touched.")
    ] = False,
    world: Annotated[
        Path | None,
        Parameter(
            help="With --simulate: the directory of the simulated hosts, made if it is not there;"
            " by default each pipeline has its own."
        ),
    ] = None,
    only: Only = (),
    from_: From = (),
    skip: Skip = (),
    hosts: Hosts = (),
    parallelism: flags.Parallelism = None,
    on_failure: OnFailureFlag = None,
    require_all_hosts: flags.RequireAllHosts = False,
    set_: Set = (),
    allow_literal_secrets: LiteralSecrets = False,
    output: Output = "text",
    logged: flags.Logged,
) -> int:
    """Run a pipeline."""
    from kubexm.cli import running

    return running.start(
        file=file,
        check=check,
        debug=debug,
        break_at=break_at,
        simulate=simulate,
        world=world,
        only=only,
        from_=from_,
        skip=skip,
        hosts=hosts,
        parallelism=parallelism,
        on_failure=on_failure,
        require_all_hosts=require_all_hosts,
        set_=set_,
        allow_literal_secrets=allow_literal_secrets,
        output=output,
        logged=logged,
    )


def plan(
    *,
    file: flags.File,
    check: Annotated[
        bool,
        Parameter(negative=(), help="Connect, and say what would change; nothing is changed."),
    ] = False,
    simulate: Annotated[
        bool, Parameter(negative=(), help="With --check: look at simulated hosts.")
    ] = False,
    bundle: flags.Bundle = None,
    catalog: flags.Catalogs = (),
    templates: flags.Templates = None,
    only: Only = (),
    from_: From = (),
    skip: Skip = (),
    hosts: Hosts = (),
    set_: Set = (),
    allow_literal_secrets: LiteralSecrets = False,
    output: Output = "text",
    logged: flags.Logged,
) -> int:
    """Show what would run where; no connection is made unless `--check` asks for it."""
    from kubexm.app import sources
    from kubexm.app.params import PlanParams

    source = sources.of_file(
        file,
        set_,
        allow_literal_secrets=allow_literal_secrets,
        catalogs=catalog,
        bundle=bundle,
        templates=templates,
    )
    params = PlanParams(source, Selection(only=only, from_=from_, skip=skip, hosts=hosts))
    return _looked_at(params, simulate, output, logged) if check else _told(params, output)


def _looked_at(params: PlanParams, simulate: bool, output: Format, logged: bool) -> int:
    """What a run would change, by what the hosts are like now."""
    import asyncio

    from kubexm.app.params import RunParams
    from kubexm.cli import running

    return asyncio.run(
        running.run(RunParams(params, check=True, simulate=simulate), output, logged)
    )


def _told(params: PlanParams, output: Format) -> int:
    """What a run would do, as far as that is known without a host."""
    from kubexm.app.outlook import outlook
    from kubexm.app.params import OperationParams
    from kubexm.cli import messages, plans

    seen = outlook(_planned(params))
    if output == "text":
        is_operation = isinstance(params.pipeline, OperationParams)
        say(plans.by_module(seen) if is_operation else plans.overview(seen))
    else:
        messages.warn(seen.warnings)
        document(plans.as_data(seen), output)
    return 0


def _planned(params: PlanParams) -> Planned:
    """A plan, with what the bundle lacks that it is to be carried out with."""
    from msgspec.structs import replace

    from kubexm.app import planning
    from kubexm.app.params import OperationParams

    planned, source = planning.plan(params), params.pipeline
    if not isinstance(source, OperationParams) or source.bundle is None:
        return planned
    from kubexm.app.artifacts import Sought, foretold

    lacking = foretold(Sought(source.cluster, bundle=source.bundle))
    return replace(planned, warnings=(*planned.warnings, *lacking))


def graph(
    *,
    file: flags.File,
    output: Annotated[
        Literal["text", "mermaid", "dot", "json", "yaml", "svg"],
        Parameter(name=["--output", "-o"], help="The language to draw it in."),
    ] = "text",
    bundle: flags.Bundle = None,
    catalog: flags.Catalogs = (),
    templates: flags.Templates = None,
    only: Only = (),
    from_: From = (),
    skip: Skip = (),
    hosts: Hosts = (),
    set_: Set = (),
    allow_literal_secrets: LiteralSecrets = False,
) -> int:
    """Draw the execution graph."""
    from kubexm.app import sources
    from kubexm.app.params import PlanParams
    from kubexm.cli import messages, plans

    source = sources.of_file(
        file,
        set_,
        allow_literal_secrets=allow_literal_secrets,
        catalogs=catalog,
        bundle=bundle,
        templates=templates,
    )
    selection = Selection(only=only, from_=from_, skip=skip, hosts=hosts)
    planned = _planned(PlanParams(source, selection))
    messages.warn(planned.warnings)
    match output:
        case "json" | "yaml":
            document(plans.graph_data(planned), output)
        case _:
            say(plans.drawn(planned, output))
    return 0
