"""Running the programs the lab stands on: argument lists in, their output out."""

from __future__ import annotations

import subprocess
from pathlib import Path

from lab.errors import CommandFailed


def run(*argv: str | Path, stdin: str = "") -> str:
    """Run a program to its end; `CommandFailed` unless it succeeds."""
    words = tuple(str(word) for word in argv)
    done = subprocess.run(words, input=stdin, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise CommandFailed(words, done.returncode, done.stderr or done.stdout)
    return done.stdout
