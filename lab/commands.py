"""Running the programs the lab stands on: argument lists in, their output out."""

from __future__ import annotations

import subprocess
from collections import deque
from collections.abc import Callable
from pathlib import Path

from lab.errors import CommandFailed

_LAST_LINES = 20


def follow(*argv: str | Path, heard: Callable[[str], None]) -> None:
    """Run a program to its end, and hear each line that it says while it says it."""
    words = tuple(str(word) for word in argv)
    lines: deque[str] = deque(maxlen=_LAST_LINES)
    with subprocess.Popen(
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line)
            heard(line.rstrip())
    if process.returncode != 0:
        raise CommandFailed(words, process.returncode, "".join(lines))


def run(*argv: str | Path, stdin: str = "") -> str:
    """Run a program to its end; `CommandFailed` unless it succeeds."""
    words = tuple(str(word) for word in argv)
    done = subprocess.run(words, input=stdin, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise CommandFailed(words, done.returncode, done.stderr or done.stdout)
    return done.stdout
