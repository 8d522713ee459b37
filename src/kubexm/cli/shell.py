"""Commands about the program itself."""

from __future__ import annotations

import platform
from typing import Literal

from kubexm import __version__
from kubexm.cli.flags import Output
from kubexm.cli.output import document, say


def version(*, output: Output = "text") -> int:
    """Show the version."""
    if output == "text":
        say(f"kubexm {__version__}")
    else:
        document({"kubexm": __version__, "python": platform.python_version()}, output)
    return 0


def completion(shell: Literal["bash", "zsh", "fish"], /) -> int:
    """Print a script that completes commands in this shell.

    Parameters
    ----------
    shell
        The shell to complete in.
    """
    from kubexm.cli.commands import app

    say(app.generate_completion(shell=shell))
    return 0
