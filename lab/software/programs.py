"""Running what the software is made with: go, apt, a compiler, kubexm.

What they say of the hosts that packages came from is left out: that is nobody's business but the
machine's.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from lab.errors import CommandFailed

_HOST = re.compile(r"(https?://)[^\s/\"']+")
_NOTHING: Mapping[str, str] = {}
_LAST_LINES = 40


def run(
    *argv: str | Path,
    at: Path | None = None,
    variables: Mapping[str, str] = _NOTHING,
    heard: Callable[[str], None] = lambda _: None,
) -> str:
    """Run a program to its end; what it said on standard output.

    `heard`: gets each line of its standard error.
    """
    words = tuple(str(word) for word in argv)
    with (
        # Not a pipe: nobody reads it while the other one is read.
        tempfile.TemporaryFile("w+") as out,
        subprocess.Popen(
            words,
            cwd=at,
            env={**os.environ, **variables},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.PIPE,
            text=True,
        ) as process,
    ):
        complaint = _listened(process, heard)
        code = process.wait()
        out.seek(0)
        said = out.read()
    if code != 0:
        raise CommandFailed(words, code, discreet(complaint or said))
    return said


def discreet(text: str) -> str:
    """The same without names of hosts."""
    return _HOST.sub(r"\1…", text)


def _listened(process: subprocess.Popen[str], heard: Callable[[str], None]) -> str:
    assert process.stderr is not None
    lines: list[str] = []
    for line in process.stderr:
        heard(line.rstrip())
        lines = [*lines[-_LAST_LINES:], line]
    return "".join(lines)
