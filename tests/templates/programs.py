"""Real programs that read what templates write; `make test-tools` brings those that are missing."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from lab.software import parts

_TOOLS = Path(__file__).parents[2] / "build" / "tools"
_PLACES = ("usr/bin", "usr/sbin")
_LIBRARIES = ("lib", "usr/lib")


def found(name: str) -> str:
    """The path of a program; the test is skipped if it can't be had."""
    program = _own(name)
    if program is None:
        pytest.skip(f"{name} is not here: make test-tools")
    return program


def every(name: str) -> list[str]:
    """All programs of that name: the machine's, and one of each version made for the lab."""
    made = sorted(parts.home().glob(f"parts/*/{name}"))
    return [path for path in (_own(name), *map(str, made)) if path]


def run(name: str, *args: str | Path) -> subprocess.CompletedProcess[str]:
    """What a program answers, run with the libraries that were unpacked with it."""
    done = subprocess.run(
        [found(name), *map(str, args)],
        capture_output=True,
        text=True,
        check=False,
        timeout=15,
        env=_environment(),
    )
    if done.returncode == 127 and "shared libraries" in done.stderr:
        pytest.skip(done.stderr.strip())
    return done


def started(name: str, *args: str) -> subprocess.Popen[bytes]:
    """A program that runs until it is ended."""
    run(name, "-v")
    return subprocess.Popen([found(name), *args], env=_environment(), stderr=subprocess.DEVNULL)


def module(name: str) -> Sequence[str]:
    """What nginx has to be told to have a module that is a file of its own."""
    path = _TOOLS / "usr/lib/nginx/modules" / f"{name}.so"
    own = Path("/usr/lib/nginx/modules") / f"{name}.so"
    file = next((file for file in (own, path) if file.exists()), None)
    return () if file is None else ("-g", f"load_module {file};")


def _own(name: str) -> str | None:
    places = (os.environ["PATH"], "/usr/sbin", *(str(_TOOLS / place) for place in _PLACES))
    return shutil.which(name, path=os.pathsep.join(places))


def _environment() -> dict[str, str]:
    libraries = (path for place in _LIBRARIES for path in _TOOLS.glob(f"{place}/*-linux-gnu*"))
    return {**os.environ, "LD_LIBRARY_PATH": os.pathsep.join(map(str, libraries))}
