"""Commands on runs: list, show, logs, resume, retry, cancel."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import msgspec
from cyclopts import Parameter
from cyclopts.validators import Number

from kubexm.app import tasks
from kubexm.app.params import LogParams, PipelineParams, ResumeParams, RetryParams
from kubexm.app.tasks import TaskLine
from kubexm.cli import endings
from kubexm.cli.flags import (
    PATH_OR_TAG,
    Force,
    LiteralSecrets,
    Logged,
    OnFailureFlag,
    Output,
    Set,
    Task,
)
from kubexm.cli.messages import described, notice
from kubexm.cli.output import document, place, say, table
from kubexm.common.paths import Home
from kubexm.errors import InvalidInput, StoreError
from kubexm.plan.report import duration
from kubexm.store import Run, StoredLine


def list_(
    *,
    limit: Annotated[
        int, Parameter(validator=Number(gte=1), metavar="NUMBER", help="At most so many runs.")
    ] = 20,
    output: Output = "text",
) -> int:
    """The latest runs, newest first."""
    unusable: list[StoreError] = []
    found = tasks.list_runs(Home.from_environment(), limit, unusable.append)
    if unusable and not found:
        raise unusable[0]
    for error in unusable:
        notice(f"{described(error)}\n")
    if output != "text":
        document([endings.task_data(line.run, line.worked) for line in found], output)
    elif found:
        say(
            table(
                ("TASK", "NAME", "STATUS", "STARTED (UTC)", "TOOK", "WHERE"),
                [_row(line) for line in found],
            )
        )
    else:
        say("no runs yet")
    return max((error.exit_code for error in unusable), default=0)


def _row(line: TaskLine) -> tuple[str, ...]:
    run = line.run
    started = f"{run.started:%Y-%m-%d %H:%M:%S}" if run.started is not None else "-"
    took = "-" if run.started is None or run.interrupted else duration(line.worked)
    return (run.id, run.name, _status(run), started, took, _where(run))


def _status(run: Run) -> str:
    if run.interrupted:
        return endings.state(run)
    words = [run.status, *["degraded"] * run.degraded, *["selected"] * run.selected]
    return ", ".join(words)


def _where(run: Run) -> str:
    """Which hosts it worked on: real ones, or a world."""
    return place(run.world) if run.world is not None else "real"


def show_(task: Task, /, *, output: Output = "text") -> int:
    """One run: the result of every unit, and where the time went."""
    detail = tasks.show(Home.from_environment(), task)
    if output == "text":
        say(endings.detail(detail))
    else:
        document(endings.detail_data(detail), output)
    return 0


def logs_(
    task: Task,
    /,
    *,
    node: Annotated[
        str | None, Parameter(metavar=PATH_OR_TAG, help="Only what was said at this path or tag.")
    ] = None,
    host: Annotated[
        str | None, Parameter(metavar="HOST", help="Only what was said on this host.")
    ] = None,
    follow: Annotated[
        bool, Parameter(name=["--follow", "-F"], negative=(), help="Go on until the run has ended.")
    ] = False,
    output: Output = "text",
) -> int:
    """What the units of a run said."""
    params = LogParams(task, node, host, follow=follow)
    asyncio.run(_print_logs(params, output))
    return 0


async def _print_logs(params: LogParams, output: Output) -> None:
    home = Home.from_environment()
    if output != "text":
        document([_line_data(line) async for line in tasks.logs(home, params)], output)
        return
    silent = True
    async for line in tasks.logs(home, params):
        say(_line(line))
        silent = False
    if silent:
        notice(f"{_who(params)} said nothing")


def _who(params: LogParams) -> str:
    named = [f"`{name}`" for name in (params.node, params.host) if name is not None]
    return " on ".join(named) or f"task {params.task}"


def _line_data(line: StoredLine) -> dict[str, Any]:
    return {**msgspec.to_builtins(line), "at": datetime.fromtimestamp(line.at, UTC).isoformat()}


def _line(line: StoredLine) -> str:
    at = datetime.fromtimestamp(line.at, UTC)
    return f"{at:%H:%M:%S.%f} {line.host} {line.node} {line.stream}: {line.text}"


def resume_(task: Task, /, *, force: Force = False, output: Output = "text", logged: Logged) -> int:
    """Go on with a run that was interrupted or cancelled."""
    from kubexm.cli import running

    return asyncio.run(running.resume(ResumeParams(task, force), output, logged))


def retry_(
    task: Task,
    /,
    *,
    file: Annotated[
        Path | None, Parameter(name=["--file", "-f"], help="The corrected file.")
    ] = None,
    set_: Set = (),
    allow_literal_secrets: LiteralSecrets = False,
    on_failure: OnFailureFlag = None,
    force: Force = False,
    output: Output = "text",
    logged: Logged,
) -> int:
    """Open an ended run again: what succeeded is kept, the rest is tried once more."""
    from kubexm.cli import running

    _refuse_without_file(file, {"--set": set_, "--allow-literal-secrets": allow_literal_secrets})
    pipeline = PipelineParams(file, set_, allow_literal_secrets) if file is not None else None
    params = RetryParams(task, pipeline, force, on_failure)
    return asyncio.run(running.retry(params, output, logged))


def _refuse_without_file(file: Path | None, given: Mapping[str, object]) -> None:
    for flag, value in given.items():
        if value and file is None:
            raise InvalidInput(
                f"`{flag}` has no effect without `-f`: the plan stays what it was",
                hint=f"add `-f FILE`, the file of the pipeline, or leave `{flag}` out",
            )


def cancel_(task: Task, /, *, output: Output = "text") -> int:
    """Stop a run that another process works on; it can be resumed."""
    run = tasks.cancel(Home.from_environment(), task)
    if output == "text":
        say(f"asked task {run.id} to stop; go on later with: kubexm task resume {run.id}")
    else:
        told = {"state": endings.state(run), "interrupted": run.interrupted}
        document({"task": {**msgspec.to_builtins(run), **told}}, output)
    return 0
