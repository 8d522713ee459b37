"""Flags that several commands share, each described once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

from kubexm.cli.output import Format

File = Annotated[Path, Parameter(name=["--file", "-f"], help="The file, YAML or JSON.")]
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
        help="Accept passwords and keys that are written out.",
    ),
]
OnFailureFlag = Annotated[
    Literal["isolate", "fail-fast", "rollback"] | None,
    Parameter(
        name="--on-failure",
        help="What a failure stops: what depends on it, everything, or everything and then"
        " what this run has changed is undone; by default as the file says.",
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
Catalogs = Annotated[
    tuple[Path, ...],
    Parameter(
        name="--catalog",
        negative=(),
        metavar="FILE",
        help="A catalog of yours, which wins over that of kubexm. Repeatable.",
    ),
]
Bundle = Annotated[
    Path | None,
    Parameter(
        metavar="FILE", help="A bundle with all that the cluster needs: nobody outside is asked."
    ),
]
Templates = Annotated[
    Path | None,
    Parameter(
        metavar="DIRECTORY",
        help="Templates of yours in place of those of kubexm; else those that the file names.",
    ),
]
Parallelism = Annotated[
    int | None,
    Parameter(
        validator=Number(gte=1),
        metavar="NUMBER",
        help="At most so many units at once; 512 by default.",
    ),
]
RequireAllHosts = Annotated[
    bool, Parameter(negative=(), help="Refuse to start if any host can't be reached.")
]
Task = Annotated[str, Parameter(help="The id of the run, as `kubexm task list` shows it.")]
Logged = Annotated[bool, Parameter(parse=False)]
"""Whether the user asked for a log; handed in by the command around."""
