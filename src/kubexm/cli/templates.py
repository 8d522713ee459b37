"""Commands on templates: those of kubexm, and those in their place."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from kubexm.app import templates
from kubexm.app.templates import Shown
from kubexm.cli.flags import Output
from kubexm.cli.output import document, say, table

_NAME = "The template, as `kubexm templates list` names it."
Own = Annotated[
    Path | None,
    Parameter(
        name="--templates",
        metavar="DIRECTORY",
        help="Templates of yours, which take the place of those of kubexm.",
    ),
]
Directory = Annotated[Path, Parameter(help="The directory with templates of yours.")]


def list_(*, own: Own = None, output: Output = "text") -> int:
    """Every template: what it is for, and where it goes."""
    found = templates.listed(own)
    if output != "text":
        document(found, output)
        return 0
    rows = [
        (one.name, one.format, "yours" if one.overlaid else "", one.path, one.about)
        for one in found
    ]
    say(table(("TEMPLATE", "FORMAT", "", "WHERE IT GOES", "WHAT IT IS"), rows))
    return 0


def show(
    name: Annotated[str, Parameter(help=_NAME)],
    /,
    *,
    own: Own = None,
    source: Annotated[
        bool,
        Parameter(negative=(), help="Only its text, to begin one of your own with."),
    ] = False,
    output: Output = "text",
) -> int:
    """One template: its text, what it may use, and what comes out of it."""
    found = templates.shown(name, own)
    if output != "text":
        document(found, output)
    elif source:
        say(found.text)
    else:
        _tell(found)
    return 0


def diff(
    directory: Directory,
    name: Annotated[str | None, Parameter(help="Only this one.")] = None,
    /,
    *,
    output: Output = "text",
) -> int:
    """How templates of yours differ from those of kubexm."""
    found = templates.differences(directory, name)
    if output != "text":
        document(found, output)
        return 0
    for one in found:
        say(one.diff or f"{one.name}: no difference")
    return 0


def check(directory: Directory, /, *, output: Output = "text") -> int:
    """Check templates of yours: all that is wrong with them, or their names."""
    found = templates.checked(directory)
    if output != "text":
        document(found, output)
        return 0
    say("\n".join(found) if found else f"no template in `{directory}`")
    return 0


def _tell(found: Shown) -> None:
    whose = " (yours)" if found.overlaid else ""
    say(f"{found.name}{whose}: {found.about}\n{found.format}, goes to {found.path}\n")
    rows = [(one.name, one.value, one.about) for one in found.fields]
    say(table(("IT MAY USE", "WHICH IS", ""), rows))
    say(f"\n--- the template\n{found.text}\n--- what comes out of a sample\n{found.outcome}")
