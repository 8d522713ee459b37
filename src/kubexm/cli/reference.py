"""The reference page of the command line, written from the commands themselves.

`python -m kubexm.cli.reference docs/reference` writes it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, get_args

from cyclopts import App
from cyclopts.argument import Argument

from kubexm.cli.commands import app

PAGE = "cli.md"
_NOTE = "<!-- Written by `python -m kubexm.cli.reference docs/reference`; edit the sources. -->"
_OPENING = """# Command line

Every command has `--help`.
Documents go to standard output; views, log lines and errors go to standard error.
"""
_CLOSING = """## Exit codes

| code | meaning |
|---|---|
| 0 | Done; for `--check`, every unit could be looked at; for a command that asks, all is well. |
| 1 | Failed or rolled back, what was asked for is not well, or what is kept can't be used. |
| 2 | Wrong usage or invalid input; nothing was changed. |
| 3 | Cancelled: the run can be resumed, or had not begun and nothing was changed. |
| 4 | Refused, because another run works on the same name. |
| 5 | Done, without the hosts that were quarantined on the way; for `preflight`, fit without some. |
| 130 | Killed by a second SIGINT; the run can be resumed. |

Of a command that asks, 1 means:

| command | what was found |
|---|---|
| `hosts check` | a host that can't be reached, or has something wrong |
| `preflight` | a host that is not fit for its part, or something that can't be had |
| `health` | something that is wrong with the cluster; a warning alone is none |
| `bundle verify` | a bundle that is damaged |
| `bundle check` | a bundle that lacks something |
| `get clusters` | a database that can't be used; the clusters in others are shown |

[Errors](errors.md) has the errors behind 1, 2 and 4.

## What a run shows

On a terminal a run draws a live view and leaves its failures above it.
Elsewhere it writes a line for each change, failure, retry and lost host.
With `--log-format` or `--log-level` it writes log lines in place of either.
At the end come counts, the critical path with its times, where the time went, and the next command.

A dry run marks each unit:

| sign | meaning |
|---|---|
| `+` | would be made |
| `~` | would be altered |
| `-` | would be removed |
| `=` | satisfied, or only looks, waits or asks: nothing would change |
| `?` | known only when it is reached |
| `✗` | failed |
| `·` | held back by the failure of another, or not looked at because the run was stopped |

`task show` marks each unit of a run:

| sign | meaning |
|---|---|
| `✓` | done; `changed, not undone` if a rollback could not take it back |
| `=` | satisfied: there was nothing to do |
| `✗` | failed |
| `↶` | rolled back |
| `…` | running |
| `·` | held back, cancelled or not yet started; `was under way` if a run was interrupted amid it |

In documents (`-o json|yaml`) the `message` of a unit says why it is satisfied.
Of an `assert` that is `holds: …`; of a step whose `when` is not true, that `when` does not hold.

The `state` of a run in documents is its `status`, or `Interrupted`, as `task list` has it.
An interrupted run is `Running`, since it has not ended, and `interrupted`: nobody works on it.

## Signals

| signal | what happens |
|---|---|
| SIGINT (Ctrl-C), SIGTERM, SIGHUP | Nothing new starts, running steps get a moment to end. |
| a second SIGINT | The process ends at once. |
| SIGKILL | The process is gone; what was finished is recorded. |

Before there is a run, any of them ends the process at once: `cancelled; nothing was changed`.
A run that had begun is gone on with by `kubexm task resume`.

## Paths and tags

`--only`, `--skip` and `--from` take a path as `kubexm plan` shows it, or a tag.
A path stands for everything below it, and the name of the pipeline in front may be left out.
`*` stands for any part of one segment: `web/renew/batch-*/package`.
`--hosts` takes names of hosts, with `*` for any part of a name.
What is left out counts as done; what provides a value that the rest needs is kept.
An entry that has no effect beside the others is a warning.
A selection that leaves nothing is refused.

## Environment

| variable | meaning |
|---|---|
| `KUBEXM_HOME` | The directory for all that kubexm keeps: `state`, `data`, `cache` are below it. |
| `XDG_STATE_HOME` | Without `KUBEXM_HOME`: where `kubexm/` with the state is. |
| `XDG_DATA_HOME` | Without `KUBEXM_HOME`: where `kubexm/` with the data is. |
| `XDG_CACHE_HOME` | Without `KUBEXM_HOME`: where `kubexm/` with the cache is. |
| `KUBECONFIG` | What `--merge` changes, its first file; without it, `~/.kube/config`. |
| `SSH_AUTH_SOCK` | The agent that is asked for keys, unless a file says `agent: false`. |
| `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` | The proxy by which this machine fetches things. |
| `NO_PROXY` | Names, domains, addresses and networks that it reaches without one. |
| `AWS_ENDPOINT_URL_S3`, `AWS_ENDPOINT_URL` | Where buckets (`s3://`) are, if not at AWS. |
| `AWS_REGION` | Their region, if not `us-east-1`. |
| `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` | Who we are there, if that is asked. |
| `AWS_SESSION_TOKEN` | The token that goes with a key for a while. |
| `TERM` | With `dumb`, a run shows plain lines on a terminal too. |

Variables of proxies may be in small letters too.
[Fetch from your own sites](../howto/fetch-from-your-own-sites.md) shows how they are used.

Without the first four, state is in `~/.local/state/kubexm` and data in `~/.local/share/kubexm`.

| place | what is there |
|---|---|
| state, `kubexm.db` | The runs on real hosts: graphs, results, logs, ledger, locks. |
| state, `kubexm.key` | Opens the secrets in the database, those of clusters too. |
| data, `clusters/NAME/admin.conf` | Lets whoever has it into a cluster, with all rights. |
| data, `artifacts/` | Programs, images and charts that were fetched; they can be had again. |
| data, `worlds/NAME/` | The simulated hosts of a pipeline or a cluster, with their own database. |

Guard `kubexm.db` and `kubexm.key`, and back them up together.
A database gives out its secrets to its own key only.
[Create a cluster](../howto/create-a-cluster.md#back-up-this-machine) says how.
"""


def render() -> str:
    """The whole page."""
    found = list(commands(app))
    listed = [f"| [`{name}`](#{_anchor(name)}) | {command.help} |" for name, command in found]
    return "\n".join(
        [
            *(_NOTE, "", _OPENING, "| command | |", "|---|---|", *listed, ""),
            *("## Before every command", "", *_table(_arguments(app.meta)), ""),
            *(_section(name, command) for name, command in found),
            _CLOSING,
        ]
    )


def commands(group: App, words: tuple[str, ...] = ("kubexm",)) -> Iterator[tuple[str, App]]:
    """Every command that does something, with all its words, in the order of the help."""
    names = [name for name in group.resolved_commands() if not name.startswith("-")]
    for name in sorted(names, key=lambda name: (group[name].sort_key or 0, name)):
        command = group[name]
        if command.default_command is None:
            yield from commands(command, (*words, name))
        else:
            yield " ".join((*words, name)), command


def _section(name: str, command: App) -> str:
    arguments = _arguments(command)
    required = [_usage(argument) for argument in arguments if argument.required]
    usage = " ".join((name, *required, "[OPTIONS]"))
    lines = [f"## {name}", "", f"`{usage}`", "", command.help, ""]
    return "\n".join([*lines, *_table(arguments), ""])


def _usage(argument: Argument) -> str:
    return argument.name if argument.index is not None else f"{argument.name} {_value(argument)}"


def _arguments(command: App) -> list[Argument]:
    found = command.assemble_argument_collection(parse_docstring=True)
    return [argument for argument in found if argument.show]


def _table(arguments: Iterable[Argument]) -> Iterator[str]:
    yield "| option | value | default | |"
    yield "|---|---|---|---|"
    for argument in arguments:
        names = ", ".join(f"`{name}`" for name in argument.names)
        cells = (names, _value(argument), _default(argument), argument.parameter.help or "")
        yield f"| {' | '.join(cells)} |"


def _value(argument: Argument) -> str:
    """What is written behind an option."""
    if choices := argument.get_choices():
        return " or ".join(f"`{choice}`" for choice in choices)
    if named := argument.parameter.metavar:
        return named.replace("|", " or ")  # a bar would end the cell
    kinds: dict[Any, str] = {str: "TEXT", int: "NUMBER", Path: "PATH"}
    hints = (argument.hint, *get_args(argument.hint))
    return next((kinds[kind] for kind in hints if kind in kinds), "")


def _default(argument: Argument) -> str:
    if argument.required:
        return "**required**"
    default = argument.field_info.default
    return f"`{default}`" if default not in (None, False, ()) else ""


def _anchor(name: str) -> str:
    return name.replace(" ", "-")


def main(directory: Path) -> None:
    """Write the page into a directory."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / PAGE).write_text(render())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
