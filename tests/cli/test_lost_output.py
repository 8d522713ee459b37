"""Nobody reads, nothing can be written: a run ends as it would have, and its state is whole."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO

import pytest
import yaml

from kubexm.app import tasks
from kubexm.cli.main import guarded
from kubexm.common.paths import Home

Write = Callable[..., Path]
STEPS = """
- {name: first, file: {path: /etc/first, content: x}}
- {name: last, file: {path: /etc/last, content: x}}
"""


def kubexm(*arguments: str | Path, out: IO[str] | int, err: IO[str] | int) -> tuple[int, str]:
    program = [sys.executable, "-m", "kubexm", *arguments]
    done = subprocess.run(program, stdout=out, stderr=err, check=False)
    return done.returncode, tasks.list_runs(Home.from_environment())[0].run.status


def nobody() -> int:
    """A pipe that nobody reads from."""
    reading, writing = os.pipe()
    os.close(reading)
    return writing


@pytest.mark.slow
@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("more", [(), ("--log-level", "debug")])
def test_a_run_without_a_terminal_ends_and_is_recorded(
    pipeline: Write, more: tuple[str, ...]
) -> None:
    command: tuple[str | Path, ...] = (*more, "run", "-f", pipeline(STEPS), "--simulate")
    pipe = nobody()

    with Path("/dev/full").open("w") as full:
        no_room = kubexm(*command, out=subprocess.DEVNULL, err=full)
        neither = kubexm(*command, out=full, err=full)
    gone = kubexm(*command, out=pipe, err=pipe)
    os.close(pipe)

    assert [no_room, neither, gone] == [(0, "Success")] * 3


@pytest.mark.slow
@pytest.mark.usefixtures("home")
def test_an_answer_that_can_not_be_written_is_an_error_in_one_line(
    pipeline: Write, tmp_path: Path
) -> None:
    said = tmp_path / "said"
    failing = pipeline("- {name: fails, command: {argv: ['false']}}", name="failing")

    with Path("/dev/full").open("w") as full, said.open("w") as errors:
        run = kubexm("run", "-f", failing, "--simulate", out=full, err=subprocess.DEVNULL)
        listed = kubexm("task", "list", out=full, err=errors)
        helped = kubexm("--help", out=full, err=errors)

    assert (run, listed[0], helped[0]) == ((1, "Failed"), 1, 1)
    error = "error: output-lost\n  can't write to standard output: No space left on device\n"
    assert said.read_text().count(error) == 2
    assert "Traceback" not in said.read_text()


@pytest.mark.usefixtures("home")
def test_a_process_without_standard_streams_does_its_work(pipeline: Write) -> None:
    file = pipeline(STEPS)
    shell = f"exec {sys.executable} -m kubexm run -f {file} --simulate <&- >&- 2>&-"

    done = subprocess.run(["sh", "-c", shell], check=False)

    assert done.returncode == 0
    assert tasks.list_runs(Home.from_environment())[0].run.status == "Success"


def test_an_error_is_a_document_too_where_documents_are_asked_for(
    home: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    unknown = guarded(["task", "show", "20260101-000000-abcd", "-o", "json"])
    told = json.loads(capsys.readouterr().out)["error"]
    usage = guarded(["task", "show", "--nope", "--output=json"])
    wrong = json.loads(capsys.readouterr().out)["error"]
    guarded(["plan", "-f", str(tmp_path / "nope.yaml"), "-o", "yaml"])
    written = capsys.readouterr().out
    guarded(["task", "show", "20260101-000000-abcd"])
    text = capsys.readouterr().out

    assert (unknown, told["code"], told["exitCode"]) == (2, "unknown-task", 2)
    assert (usage, wrong["code"]) == (2, "usage")
    assert written.startswith("error:\n  code: invalid-file\n")
    assert text == ""


@pytest.mark.slow
def test_a_stream_that_lacks_our_signs_gets_letters_in_their_place(pipeline: Write) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    file = pipeline("- {name: greet, command: {argv: [echo, grüße]}}")

    def told(*arguments: str) -> str:
        call = [sys.executable, "-m", "kubexm", *arguments, "-f", str(file)]
        done = subprocess.run(call, env=environment, capture_output=True, check=False)
        assert b"Traceback" not in done.stderr
        return done.stdout.decode("ascii")

    assert "1 node | 2 units | 2 hosts" in told("plan")
    assert r"gr\xfc\xdfe" in told("plan")
    for style, read in (("json", json.loads), ("yaml", yaml.safe_load)):
        for command in ("plan", "graph"):
            assert "grüße" in str(read(told(command, "-o", style)))


def test_a_user_without_a_home_is_told_what_to_set(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for variable in ("HOME", "KUBEXM_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr("os.path.expanduser", lambda path: path)  # as for an unknown user

    code = guarded(["task", "list"])

    assert code == 2
    assert "set KUBEXM_HOME to a directory" in capsys.readouterr().err
