"""Flags that several commands share, each described once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from kubexm.cli.output import Format

File = Annotated[Path, Parameter(name=["--file", "-f"], help="The pipeline file, YAML or JSON.")]
Set = Annotated[
    tuple[str, ...],
    Parameter(
        name="--set",
        negative=(),
        metavar="NAME=VALUE",
        help="A variable; wins over the file. Repeatable.",
    ),
]
PATH_OR_TAG = "PATH|TAG"
Only = Annotated[
    tuple[str, ...],
    Parameter(
        name="--only",
        negative=(),
        metavar=PATH_OR_TAG,
        help="Only this path, as `kubexm plan` shows it, or this tag. Repeatable.",
    ),
]
From = Annotated[
    tuple[str, ...],
    Parameter(
        name="--from",
        negative=(),
        metavar=PATH_OR_TAG,
        help="This path or tag, and all that depends on it. Repeatable.",
    ),
]
Skip = Annotated[
    tuple[str, ...],
    Parameter(
        name="--skip",
        negative=(),
        metavar=PATH_OR_TAG,
        help="Leave this path or tag out. Repeatable.",
    ),
]
Hosts = Annotated[
    tuple[str, ...],
    Parameter(
        name="--hosts",
        negative=(),
        metavar="HOST",
        help="Only on this host; `*` stands for any part of a name. Repeatable.",
    ),
]
Output = Annotated[Format, Parameter(name=["--output", "-o"], help="How the answer looks.")]
LiteralSecrets = Annotated[
    bool,
    Parameter(
        name="--allow-literal-secrets",
        negative=(),
        help="Accept passwords and keys written out in the file or in --set.",
    ),
]
OnFailureFlag = Annotated[
    Literal["isolate", "fail-fast", "rollback"] | None,
    Parameter(
        name="--on-failure",
        help="What a failure stops: what depends on it, everything, or everything and then"
        " what this run has changed is undone; by default as the pipeline says.",
    ),
]
Force = Annotated[
    bool,
    Parameter(
        name="--force",
        negative=(),
        help="Go on although a later run has changed something, or a newer kubexm does it"
        " otherwise.",
    ),
]
Task = Annotated[str, Parameter(help="The id of the run, as `kubexm task list` shows it.")]
Logged = Annotated[bool, Parameter(parse=False)]
"""Whether the user asked for a log; handed in by the command around."""
