"""Signals to a real process: the first stops it gently, the second at once, and nothing is lost."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

PIPELINE = """
apiVersion: kubexm.io/v1alpha1
kind: Pipeline
metadata: {{name: slow}}
spec:
  hosts: [{{name: here, connection: local}}]
  modules:
    - name: m
      tasks:
        - name: t
          steps:
            - name: first
              file: {{path: "{place}/first", content: done}}
            - name: long
              command:
                argv: [sh, -c, "touch {place}/started; test -e {place}/go || sleep {seconds}"]
            - name: last
              file: {{path: "{place}/last", content: done}}
"""


class Slow:
    """A run that hangs in its second step until it is told to go."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.file = place / "slow.yaml"
        # Nobody else sleeps as long, not even another of these tests at the same time.
        self.seconds = f"300.{secrets.randbelow(10**9):09}"
        self.file.write_text(PIPELINE.format(place=place, seconds=self.seconds))
        self.env = {**os.environ, "KUBEXM_HOME": str(place / "home")}
        self.started: list[subprocess.Popen[str]] = []

    def kubexm(self, *arguments: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "kubexm", *arguments],
            env=self.env,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.started.append(process)
        return process

    def hanging(self) -> subprocess.Popen[str]:
        process = self.kubexm("run", "-f", str(self.file), "-o", "json")
        deadline = time.monotonic() + 60
        while not (self.place / "started").exists():
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.02)
        return process

    def sleepers(self) -> set[int]:
        """Processes that are the hanging command."""
        found = set()
        for entry in Path("/proc").iterdir():
            if entry.name.isdecimal():
                try:
                    line = (entry / "cmdline").read_bytes()
                except OSError:
                    continue
                if line == f"sleep\0{self.seconds}\0".encode():
                    found.add(int(entry.name))
        return found

    def task(self) -> str:
        listed = self.kubexm("task", "list", "-o", "json").communicate(timeout=60)[0]
        found: str = json.loads(listed)[0]["id"]
        return found


@pytest.fixture
def slow(tmp_path: Path) -> Iterator[Slow]:
    run = Slow(tmp_path)
    yield run
    for process in run.started:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_cancels_the_run_and_it_can_be_resumed(slow: Slow, number: signal.Signals) -> None:
    process = slow.hanging()
    (slow.place / "go").touch()

    process.send_signal(number)
    out, _ = process.communicate(timeout=60)

    assert process.returncode == 3
    result = json.loads(out)["result"]
    assert result["status"] == "Cancelled"
    assert not (slow.place / "last").exists()

    resumed = slow.kubexm("task", "resume", slow.task())
    said = resumed.communicate(timeout=60)
    assert resumed.returncode == 0, said
    assert (slow.place / "last").read_text() == "done"
    assert "slow/m/t/first" not in said[1]


@pytest.mark.timeout(120)
def test_a_second_interrupt_kills_at_once_and_leaves_no_command_behind(slow: Slow) -> None:
    process = slow.hanging()
    deadline = time.monotonic() + 60
    while not (ours := slow.sleepers()) and time.monotonic() < deadline:
        time.sleep(0.02)

    process.send_signal(signal.SIGINT)
    while process.poll() is None and time.monotonic() < deadline:
        process.send_signal(signal.SIGINT)
        time.sleep(0.05)

    assert process.returncode == -signal.SIGINT
    assert ours
    while slow.sleepers() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not slow.sleepers()


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_a_killed_run_is_shown_as_interrupted_and_resumes_where_it_was(slow: Slow) -> None:
    process = slow.hanging()

    process.kill()
    process.communicate()
    (slow.place / "go").touch()
    task = slow.task()
    listed = slow.kubexm("task", "list").communicate(timeout=60)[0]
    shown = slow.kubexm("task", "show", task).communicate(timeout=60)[0]
    resumed = slow.kubexm("task", "resume", task)
    said = resumed.communicate(timeout=60)

    assert "Interrupted" in listed
    assert "slow: Interrupted, its last unit ended after 0." in shown
    assert resumed.returncode == 0, said
    assert "slow/m/t/long" in said[1]
    assert "slow/m/t/first" not in said[1]


@pytest.mark.timeout(120)
@pytest.mark.slow
def test_a_second_run_of_the_same_name_is_refused_with_who_holds_it(slow: Slow) -> None:
    process = slow.hanging()

    second = slow.kubexm("run", "-f", str(slow.file))
    said = second.communicate(timeout=60)[1]
    task = slow.task()
    cancel = slow.kubexm("task", "cancel", task, "-o", "json")
    cancelled = json.loads(cancel.communicate(timeout=60)[0])

    assert second.returncode == 4
    assert f"pid {process.pid}" in said
    assert "since" in said
    assert cancel.returncode == 0
    assert cancelled["task"]["id"] == task
    assert cancelled["task"]["holder"] is not None
    assert process.wait(timeout=60) == 3


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("command", ["run", "plan"])
def test_a_signal_before_there_is_a_run_ends_it_at_once(
    slow: Slow, command: str, number: signal.Signals
) -> None:
    endless = slow.place / "endless.yaml"
    os.mkfifo(endless)
    process = slow.kubexm(command, "-f", str(endless))
    with endless.open("w"):  # which takes until somebody reads
        process.send_signal(number)
        _, said = process.communicate(timeout=60)

    assert process.returncode == 3
    assert said == "cancelled; nothing was changed\n"
    assert not (slow.place / "home").exists()


def test_a_signal_finds_an_answer_before_the_commands_are_loaded() -> None:
    program = "import os, sys; os.kill(os.getpid(), 2)"
    code = (
        "import sys; from kubexm.cli import main; sys.argv = ['kubexm', 'version'];"
        f"main.guarded = lambda _: exec({program!r}); main.main()"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (3, "cancelled; nothing was changed\n")
    loaded = "import sys, kubexm.cli.main; print('cyclopts' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", loaded], text=True) == "False\n"
