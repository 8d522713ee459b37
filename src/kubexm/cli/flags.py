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
        name="--set", negative=(), help="A variable, `name=value`; wins over the file. Repeatable."
    ),
]
Only = Annotated[
    tuple[str, ...],
    Parameter(name="--only", negative=(), help="Only this path or tag. Repeatable."),
]
From = Annotated[
    tuple[str, ...],
    Parameter(
        name="--from", negative=(), help="This path or tag, and all that depends on it. Repeatable."
    ),
]
Skip = Annotated[
    tuple[str, ...],
    Parameter(name="--skip", negative=(), help="Leave this path or tag out. Repeatable."),
]
Hosts = Annotated[
    tuple[str, ...],
    Parameter(name="--hosts", negative=(), help="Only on these hosts. Repeatable."),
]
Output = Annotated[Format, Parameter(name=["--output", "-o"], help="How the answer looks.")]
LiteralSecrets = Annotated[
    bool,
    Parameter(
        name="--allow-literal-secrets",
        negative=(),
        help="Accept passwords and keys written out in the file.",
    ),
]
OnFailureFlag = Annotated[
    Literal["isolate", "fail-fast", "rollback"] | None,
    Parameter(name="--on-failure", help="What a failure means; by default as the pipeline says."),
]
Force = Annotated[
    bool,
    Parameter(name="--force", negative=(), help="Go on although something changed since."),
]
Task = Annotated[str, Parameter(help="The id of the task.")]
Logged = Annotated[bool, Parameter(parse=False)]
"""Whether the user asked for a log; handed in by the command around."""
