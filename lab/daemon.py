"""Processes of the lab that go on after the command that started them."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from lab import cgroups, network, processes
from lab import site as sites
from lab.commands import run
from lab.processes import Process
from lab.site import Site

_REPOSITORY = Path(__file__).parents[1]


def launch(module: str, *words: str | Path) -> None:
    """Start a module as a process; return when it has called `detach`."""
    run("env", "-C", _REPOSITORY, sys.executable, "-m", module, *words)


def recorded(record: Path) -> Process | None:
    """The process that `detach` wrote down last; it may be over."""
    return Process(*json.loads(record.read_text())) if record.exists() else None


def join(place: Path) -> Site:
    """Make this process one of the lab's: in its network, and gone when the lab is gone."""
    site = sites.require(place)
    cgroups.enter(site.groups.unified)
    network.enter(site.netns)
    return site


def detach(record: Path, output: Path) -> None:
    """Go on in the background, and let the caller of `launch` know."""
    reader, writer = os.pipe()
    if os.fork():
        os.close(writer)
        os._exit(0 if os.read(reader, 1) else 1)
    os.setsid()
    _write_down(record)
    _redirect(output)
    os.write(writer, b".")
    os.close(writer)
    os.close(reader)


def _write_down(record: Path) -> None:
    me = processes.look(os.getpid())
    assert me is not None
    sites.write(record, json.dumps([me.pid, me.started]))


def _redirect(output: Path) -> None:
    nothing = os.open(os.devnull, os.O_RDONLY)
    file = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for source, target in ((nothing, 0), (file, 1), (file, 2)):
        os.dup2(source, target)
    os.close(nothing)
    os.close(file)
