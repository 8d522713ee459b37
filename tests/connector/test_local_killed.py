"""When kubexm itself is killed, nothing that it ran goes on."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import uuid
from contextlib import suppress
from pathlib import Path

import pytest
from tests.connector.processes import eventually, running, with_mark

# Dies the moment the second shell is there; the first was killed by somebody.
DIES_AS_A_WATCH_BEGINS = """
import os, signal, subprocess, sys
from kubexm.connector.watch import Watch

class Shell(subprocess.Popen):
    begun = []
    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.begun.append(self)
        if len(self.begun) == 2:
            os.kill(os.getpid(), signal.SIGKILL)

subprocess.Popen, plain = Shell, subprocess.Popen
watch = Watch()
for _ in range(2):
    watch.add(plain(["sleep", sys.argv[1]], start_new_session=True).pid, sudo=False)
    Shell.begun[0].kill()
    Shell.begun[0].wait()
"""


def watches(parent: int) -> list[int]:
    """The shells that watch over the commands of a process."""
    listed = subprocess.run(["pgrep", "-P", str(parent)], capture_output=True, check=False)
    return [pid for pid in map(int, listed.stdout.split()) if b"rooted" in command_line(pid)]


def command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_ends_whole_groups_also_the_stubborn(number: signal.Signals) -> None:
    mark = f"mark-{uuid.uuid4().hex}"
    stubborn = f"trap '' TERM; (trap '' TERM; sleep 1000; : {mark}) & echo ready; sleep 1000; :"
    forking = f"(sh -c '(sleep 1000; : {mark}) &'); echo ready; sleep 1000; : {mark}"
    with running(stubborn, forking, f"echo ready; sleep 1000; : {mark}") as process:
        assert len(with_mark(mark) - {process.pid}) >= 4

        process.send_signal(number)

    eventually(lambda: with_mark(mark) == set())


def test_the_watch_is_replaced_when_somebody_kills_it(tmp_path: Path) -> None:
    mark = f"mark-{uuid.uuid4().hex}"
    go = tmp_path / "go"
    ends = f"echo ready; while [ ! -e {go} ]; do sleep 0.01; done; : {mark}"
    with running(f"echo ready; sleep 1000; : {mark}", ends) as process:
        (first,) = watches(process.pid)
        os.kill(first, signal.SIGKILL)
        eventually(lambda: first not in watches(process.pid))
        # The end of a command is told to the watch: that it is dead is found out then.
        go.touch()
        eventually(lambda: bool(set(watches(process.pid)) - {first}))

        process.kill()

    eventually(lambda: with_mark(mark) == set())


def test_a_new_watch_knows_its_groups_from_the_first_moment() -> None:
    seconds = f"1000.{uuid.uuid4().int}"

    died = subprocess.run([sys.executable, "-c", DIES_AS_A_WATCH_BEGINS, seconds], check=False)

    assert died.returncode == -signal.SIGKILL
    eventually(lambda: with_mark(seconds) == set())


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_leaves_nothing_whenever_it_is_killed() -> None:
    mark = f"mark-{uuid.uuid4().hex}"
    # When the first is ready others are about to start, so that a kill often comes in between.
    command = f"echo ready; sleep 1000; : {mark}"
    chance = random.Random(1)
    for _ in range(25):
        with running(*[command] * 30, ready=1) as process, suppress(subprocess.TimeoutExpired):
            process.wait(chance.uniform(0.0, 0.1))

    eventually(lambda: with_mark(mark) == set())
