"""Single figures of work by SSH, each beside its limit."""

from __future__ import annotations

import json
import os
import socket
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import sshbed
import sshmeter
import sshtools
from engine import table
from sshbed import FEW, HOSTS, Bed
from sshtools import Job

from lab import faults

HERE = Path(__file__).parent
CROWD = 500
FIRST_PORT = 2222
DISTANCE_MS = 20


def command(bed: Bed, home: Path) -> None:
    """A login and a command through a shell that stays, on one host."""
    found = script(home, "onehost.py", str(bed.path))
    print(
        f"\nlogin: {found['login_ms']:.1f} ms (≤ 30), {found['login_cpu_ms']:.2f} ms CPU (≤ 3.5)\n"
        f"command: {found['command_ms']:.2f} ms (≤ 1.5),"
        f" {found['command_cpu_ms']:.2f} ms CPU (≤ 0.35)"
    )


def far(bed: Bed, home: Path) -> None:
    """The same on a host to which a word and its answer take long, told in as many of these."""
    (host,) = bed.site.hosts()
    faults.delay(bed.site, host.name, DISTANCE_MS // 2)
    try:
        found = script(home, "onehost.py", str(bed.path), host.address)
    finally:
        faults.mend(bed.site, host.name)
    print(
        f"\nat a distance of {DISTANCE_MS} ms: login {found['login_ms'] / DISTANCE_MS:.1f} × that"
        f" (≤ 6), command {found['command_ms'] / DISTANCE_MS:.2f} × (≤ 1.2)"
    )


def first(bed: Bed, home: Path) -> None:
    """From the start of the process to its first connection, beside a bare script."""
    file = home / "first.yaml"
    file.write_text(
        "apiVersion: kubexm.io/v1alpha1\nkind: Pipeline\nmetadata: {name: first}\nspec:\n"
        f"  hosts: [{{name: h, address: 127.0.0.1, ssh: {{port: {FIRST_PORT}, user: root,"
        f" keys: [{bed.key}], knownHosts: [{bed.known_hosts}], config: false}}}}]\n"
        "  modules: [{name: m, tasks: [{name: t, steps: [{name: s, noop: {}}]}]}]\n"
    )
    bare = (
        "import asyncio, asyncssh\n"
        f"async def main(): await asyncssh.connect('127.0.0.1', {FIRST_PORT})\n"
        "asyncio.run(main())\n"
    )
    commands = {
        "bare": (sys.executable, "-c", bare),
        "kubexm": (sys.executable, "-m", "kubexm", "run", "-f", str(file)),
    }
    took: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(11):
        for name, words in commands.items():
            took[name].append(_until_connected(words, home))
    middle = {name: statistics.median(times) for name, times in took.items()}
    ratio = middle["kubexm"] / middle["bare"]
    print(
        f"\nto the first connection: kubexm {middle['kubexm'] * 1e3:.0f} ms, a bare script that"
        f" imports asyncssh {middle['bare'] * 1e3:.0f} ms: {ratio:.2f} × (≤ 1.5)"
    )


def _until_connected(words: Sequence[str], home: Path) -> float:
    with socket.create_server(("127.0.0.1", FIRST_PORT)) as server:
        server.settimeout(30)
        began = time.perf_counter()
        with sshmeter.started(words, sshtools.ours(home), home):
            line, _ = server.accept()
            took = time.perf_counter() - began
            with line:
                # Who hears this gives up at once.
                line.sendall(b"SSH-1.0-none\r\n")
    return took


def cores(bed: Bed, home: Path) -> None:
    """Hashing files and unlocking keys, on one core and on all."""
    rows = []
    for what in ("hash", "unlock"):
        one, every = (_quickest(bed, home, what, which) for which in ("one", "all"))
        rows.append((what, f"{one:.2f}", f"{every:.2f}", f"{one / every:.2f} ×"))
    print()
    table(("", "one core s", f"{os.cpu_count()} cores s", "faster"), rows)


def _quickest(bed: Bed, home: Path, what: str, which: str) -> float:
    arguments = ("oncores.py", what, str(bed.site.path), which)
    return min(script(home, *arguments)["seconds"] for _ in range(3))


def crowd(_: Bed, home: Path) -> None:
    """Many connections at once, each held until the end of the run; limits of sshd as they come."""
    bed = sshbed.up(CROWD, stock=True)
    try:
        few, whole = (sshtools.kubexm(bed, home, "w1", count).run() for count in (FEW, CROWD))
        throttled = sshbed.throttled(bed)
    finally:
        sshbed.up(HOSTS)
    each = (whole.rss - few.rss) / (CROWD - FEW) * 1024
    print(
        f"\n{CROWD} hosts, one command each: all done in {whole.wall:.1f} s,"
        f" {CROWD / whole.wall:.0f} connections/s over the whole run, {whole.rss:.0f} MiB (≤ 120),"
        f" {each:.0f} KiB for a connection (≤ 50);"
        f" {throttled} times an sshd began to turn logins away"
    )


def script(home: Path, name: str, *arguments: str) -> dict[str, float]:
    """One measurement in a process of its own: the last line it prints."""
    words = (sys.executable, str(HERE / name), *arguments)
    printed = Job(words, sshtools.ours(home), home).run().printed
    figures: dict[str, float] = json.loads(printed.splitlines()[-1])
    return figures


SECTIONS: dict[str, Callable[[Bed, Path], None]] = {
    "command": command,
    "far": far,
    "first": first,
    "cores": cores,
    "crowd": crowd,
}
