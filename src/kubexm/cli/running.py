"""Carry out a run on behalf of the command line: show it, and say at the end what came of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING

from kubexm.app import runs, tasks
from kubexm.app.execution import Front
from kubexm.app.logs import show_as_log
from kubexm.app.params import PipelineParams, PlanParams, ResumeParams, RetryParams, RunParams
from kubexm.app.runs import RunOutcome
from kubexm.cli import endings, messages, terminal
from kubexm.cli.output import Format, document, say
from kubexm.common.paths import Home
from kubexm.engine import Control
from kubexm.errors import OutputLost
from kubexm.plan.policy import OnFailure
from kubexm.plan.select import Selection
from kubexm.runtime.build import Confirm
from kubexm.runtime.secrets import SecretVault

if TYPE_CHECKING:
    from kubexm.cli.made import Made

Carry = Callable[[Front, Home], Awaitable[RunOutcome]]


def start(
    *,
    file: Path,
    check: bool = False,
    debug: bool = False,
    break_at: tuple[str, ...] = (),
    simulate: bool = False,
    world: Path | None = None,
    only: tuple[str, ...] = (),
    from_: tuple[str, ...] = (),
    skip: tuple[str, ...] = (),
    hosts: tuple[str, ...] = (),
    parallelism: int | None = None,
    on_failure: OnFailure | None = None,
    require_all_hosts: bool = False,
    set_: tuple[str, ...] = (),
    allow_literal_secrets: bool = False,
    output: Format = "text",
    logged: bool,
) -> int:
    """Run a pipeline as a command line says; the exit code."""
    params = RunParams(
        plan=PlanParams(
            PipelineParams(file, set_, allow_literal_secrets),
            Selection(only=only, from_=from_, skip=skip, hosts=hosts),
        ),
        check=check,
        debug=debug,
        breakpoints=break_at,
        simulate=simulate,
        world=world,
        parallelism=parallelism,
        on_failure=on_failure,
        require_all_hosts=require_all_hosts,
    )
    return asyncio.run(run(params, output, logged))


async def run(params: RunParams, output: Format, logged: bool) -> int:
    """Run a pipeline."""

    def carry(front: Front, home: Home) -> Awaitable[RunOutcome]:
        return runs.run(params, front, home)

    if params.debug:
        return await _debugged(carry, output, logged)
    return await _watched(carry, output, logged)


async def _debugged(carry: Carry, output: Format, logged: bool) -> int:
    """One terminal for the lines of the run and for the debugger's questions."""
    from kubexm.cli.debugger import Console

    console = Console()
    shows = (show_as_log,) if logged else (console.show,)
    return await _carried(carry, output, Front(shows=shows, ask=console.ask))


async def resume(params: ResumeParams, output: Format, logged: bool) -> int:
    """Go on with a run."""
    return await _watched(lambda front, home: runs.resume(params, front, home), output, logged)


async def retry(params: RetryParams, output: Format, logged: bool) -> int:
    """Open a run again."""
    return await _watched(lambda front, home: runs.retry(params, front, home), output, logged)


async def _watched(carry: Carry, output: Format, logged: bool) -> int:
    """With a log if one was asked for; else with a live view on a terminal, and lines elsewhere."""
    if logged:
        return await _carried(carry, output, Front(shows=(show_as_log,)))
    if not terminal.can_be_drawn_on():
        from kubexm.cli.lines import show_lines

        return await _carried(carry, output, Front(shows=(show_lines,)))
    from kubexm.cli.live import LiveView

    control = Control()
    view = LiveView(control)
    front = Front(control, shows=(view.show,))
    return await _carried(carry, output, front, view.confirm, terminal.silent)


async def _carried(
    carry: Carry,
    output: Format,
    front: Front,
    confirm: Confirm = terminal.confirm,
    stopping: Callable[[], None] = terminal.hint,
) -> int:
    front.warn, front.tell = messages.warn, messages.notice
    if terminal.is_interactive():
        front.confirm = terminal.one_at_a_time(confirm)
        front.vault = SecretVault(terminal.secret)
    with terminal.signals(front, stopping):
        outcome = await carry(front, home := Home.from_environment())
    try:
        _tell(outcome, output, home)
    except OutputLost as error:
        messages.report_error(error)
    await forget(outcome, home)
    return endings.exit_code(outcome.result)


def _tell(outcome: RunOutcome, output: Format, home: Home) -> None:
    made = _made(outcome, home)
    if output == "text":
        said = outcome.run is not None and tasks.has_log(home, outcome.run.id)
        say(endings.summary(outcome, said=said, made=made.text() if made is not None else ""))
    else:
        cluster = {"cluster": made.data()} if made is not None else {}
        document({**endings.as_data(outcome), **cluster}, output)


async def forget(outcome: RunOutcome, home: Home) -> None:
    """Leave nothing of a cluster that is no more on this machine either."""
    if outcome.deleted_a_cluster and outcome.run is not None:
        from kubexm.cli import clusters

        await asyncio.to_thread(clusters.take_out_of_kubectl, home, outcome.run.name)


def _made(outcome: RunOutcome, home: Home) -> Made | None:
    if not outcome.made_a_cluster:
        return None  # and nothing more is loaded
    from kubexm.cli.made import made

    return made(outcome, home)
