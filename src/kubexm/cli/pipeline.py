"""Commands on a pipeline file: run it, plan it, draw it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

from kubexm.cli import flags
from kubexm.cli.flags import From, Hosts, LiteralSecrets, OnFailureFlag, Only, Output, Set, Skip
from kubexm.cli.output import document, say
from kubexm.plan.select import Selection


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
    parallelism: Annotated[
        int | None,
        Parameter(
            validator=Number(gte=1),
            metavar="NUMBER",
            help="At most so many units at once; 512 by default.",
        ),
    ] = None,
    on_failure: OnFailureFlag = None,
    require_all_hosts: Annotated[
        bool, Parameter(negative=(), help="Refuse to start if any host can't be reached.")
    ] = False,
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
    only: Only = (),
    from_: From = (),
    skip: Skip = (),
    hosts: Hosts = (),
    set_: Set = (),
    allow_literal_secrets: LiteralSecrets = False,
    output: Output = "text",
) -> int:
    """Show what would run where; no connection is made."""
    from kubexm.app import planning
    from kubexm.app.outlook import outlook
    from kubexm.app.params import PipelineParams, PlanParams
    from kubexm.cli import messages, plans

    selection = Selection(only=only, from_=from_, skip=skip, hosts=hosts)
    params = PlanParams(PipelineParams(file, set_, allow_literal_secrets), selection)
    seen = outlook(planning.plan(params))
    if output == "text":
        say(plans.overview(seen))
    else:
        messages.warn(seen.warnings)
        document(plans.as_data(seen), output)
    return 0


def graph(
    *,
    file: flags.File,
    output: Annotated[
        Literal["text", "mermaid", "dot", "json", "yaml", "svg"],
        Parameter(name=["--output", "-o"], help="The language to draw it in."),
    ] = "text",
    only: Only = (),
    from_: From = (),
    skip: Skip = (),
    hosts: Hosts = (),
    set_: Set = (),
    allow_literal_secrets: LiteralSecrets = False,
) -> int:
    """Draw the execution graph."""
    from kubexm.app import planning
    from kubexm.app.params import PipelineParams, PlanParams
    from kubexm.cli import messages, plans

    selection = Selection(only=only, from_=from_, skip=skip, hosts=hosts)
    planned = planning.plan(
        PlanParams(PipelineParams(file, set_, allow_literal_secrets), selection)
    )
    messages.warn(planned.warnings)
    match output:
        case "json" | "yaml":
            document(plans.graph_data(planned), output)
        case _:
            say(plans.drawn(planned, output))
    return 0
