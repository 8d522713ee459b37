"""Commands on this machine: real processes, really ended."""

from __future__ import annotations

import asyncio
import hashlib
import os
import signal
import uuid
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest
from tests.connector.processes import eventually, with_mark

from kubexm.connector.base import Command, Completed
from kubexm.connector.local import LocalConnector
from kubexm.errors import StepFailed, TimedOut

T = TypeVar("T")


class Machine:
    """A connector and the loop it runs in."""

    def __init__(self) -> None:
        self.connector = LocalConnector(output_limit=1000, grace=0.3)
        self._runner = asyncio.Runner()

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(work)

    def exec(self, *argv: str, **settings: Any) -> Completed:
        return self.wait(self.connector.exec(Command(argv, **settings)))

    def close(self) -> None:
        self.wait(self.connector.close())
        self._runner.close()


@pytest.fixture
def machine() -> Iterator[Machine]:
    made = Machine()
    yield made
    made.close()


@pytest.fixture
def mark() -> str:
    """Something to know a test's own processes by."""
    return f"mark-{uuid.uuid4().hex}"


def test_answers_with_exit_code_and_both_streams(machine: Machine) -> None:
    done = machine.exec("sh", "-c", "echo out; echo err >&2; exit 3")

    assert done == Completed(3, b"out\n", b"err\n")


def test_passes_every_byte_of_arguments_and_input(machine: Machine) -> None:
    argument = "a 'b' \"c\" $HOME \\ `x` \n*é"
    data = bytes(range(256)) * 3

    assert machine.exec("printf", "%s", argument).stdout == argument.encode()
    assert machine.exec("cat", stdin=data).stdout == data
    assert machine.exec("cat", "/dev/stdin", stdin=data).stdout == data


def test_feeds_more_input_than_a_pipe_holds(machine: Machine) -> None:
    data = os.urandom(3_000_000)

    done = machine.exec("sha256sum", stdin=data)

    assert done.text.split()[0] == hashlib.sha256(data).hexdigest()


def test_does_not_mind_a_command_that_reads_no_input(machine: Machine) -> None:
    assert machine.exec("true", stdin=b"x" * 3_000_000).ok


def test_has_no_input_unless_given(machine: Machine) -> None:
    assert machine.exec("cat").stdout == b""


def test_a_missing_program_or_directory_is_an_exit_code(machine: Machine) -> None:
    assert machine.exec("no-such-program").exit == 127
    assert not machine.exec("true", cwd="/no/such/directory").ok


def test_a_command_line_that_is_too_long_is_an_error(machine: Machine) -> None:
    with pytest.raises(StepFailed, match="can't start `echo`: Argument list too long"):
        machine.exec("echo", "x" * 3_000_000)


def test_death_by_a_signal_is_told_as_a_shell_does(machine: Machine) -> None:
    assert machine.exec("sh", "-c", "kill -9 $$").exit == 137


def test_gives_environment_and_directory(machine: Machine, tmp_path: Path) -> None:
    done = machine.exec("sh", "-c", 'echo "$A"; pwd', env={"A": "x y"}, cwd=str(tmp_path))

    assert done.text == f"x y\n{tmp_path}"


def test_keeps_the_beginning_and_the_end_of_long_output(machine: Machine) -> None:
    done = machine.exec("sh", "-c", "echo first; head -c 100000 /dev/zero; echo last")

    assert done.stdout.startswith(b"first\n")
    assert done.stdout.endswith(b"last\n")
    assert b"[... 98011 bytes left out ...]" in done.stdout
    assert len(done.stdout) < 2100


def test_hands_on_lines_as_they_come(machine: Machine) -> None:
    lines: list[tuple[str, str]] = []
    script = r"printf 'one\r\n'; printf 'tw'; printf 'o\n' >&2; printf '\377end'"

    machine.wait(
        machine.connector.exec(
            Command(("sh", "-c", script)), lambda stream, line: lines.append((stream, line))
        )
    )

    assert sorted(lines) == [("stderr", "o"), ("stdout", "one"), ("stdout", "tw\ufffdend")]


def test_a_line_is_handed_on_while_the_command_still_runs(machine: Machine) -> None:
    async def scenario() -> None:
        seen = asyncio.Event()
        command = Command(("sh", "-c", "echo now; exec sleep 1000"))
        running = asyncio.create_task(machine.connector.exec(command, lambda *_: seen.set()))
        await seen.wait()
        assert not running.done()
        running.cancel()

    machine.wait(scenario())


def test_what_a_command_leaves_in_the_background_is_not_awaited_and_stays(
    machine: Machine, mark: str
) -> None:
    script = f"echo before; (sleep 1000; : {mark}) & echo after; :"

    done = machine.exec("sh", "-c", script)

    assert done.text == "before\nafter"
    left = with_mark(mark)
    assert left
    os.killpg(os.getpgid(left.pop()), signal.SIGKILL)


def test_batch_answers_in_order(machine: Machine) -> None:
    commands = [Command(("sh", "-c", f"echo {number}; exit {number}")) for number in range(20)]

    answers = machine.wait(machine.connector.batch(commands))

    assert [answer.exit for answer in answers] == list(range(20))
    assert machine.wait(machine.connector.batch([])) == []


def test_a_batch_that_fails_leaves_nothing_running(machine: Machine, mark: str) -> None:
    forever = Command(("sh", "-c", f"sleep 1000; : {mark}"))

    with pytest.raises(TimedOut):
        machine.wait(machine.connector.batch([forever, Command(("sleep", "9"), timeout=0.2)]))

    assert with_mark(mark) == set()


STUBBORN = (
    "trap '' TERM; (trap '' TERM; sleep 1000; : {0}) & (sleep 1000; : {0}) & sleep 1000; : {0}"
)
"""Ignores the polite signal, and so do its children, one of them in the background."""
DOUBLE_FORK = "(sh -c '(sleep 1000; : {0}) & (sleep 1000; : {0}) &'); sleep 1000; : {0}"
"""Its first process has grandchildren that know no parent but init."""


@pytest.mark.parametrize("script", [STUBBORN, DOUBLE_FORK], ids=["stubborn", "double fork"])
def test_a_timeout_ends_the_whole_group(machine: Machine, mark: str, script: str) -> None:
    with pytest.raises(TimedOut, match=r"did not end within 0\.3 s"):
        machine.exec("sh", "-c", script.format(mark), timeout=0.3)

    assert with_mark(mark) == set()


@pytest.mark.parametrize("script", [STUBBORN, DOUBLE_FORK], ids=["stubborn", "double fork"])
def test_a_cancel_ends_the_whole_group(machine: Machine, mark: str, script: str) -> None:
    async def scenario() -> None:
        command = Command(("sh", "-c", f"echo ready; {script.format(mark)}"))
        ready = asyncio.Event()
        running = asyncio.create_task(machine.connector.exec(command, lambda *_: ready.set()))
        await ready.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    machine.wait(scenario())

    assert with_mark(mark) == set()


def test_a_second_cancel_has_no_patience(machine: Machine, mark: str) -> None:
    machine.connector = LocalConnector(grace=1000.0)

    async def scenario() -> None:
        command = Command(("sh", "-c", f"trap '' TERM; echo ready; while :; do :; done; : {mark}"))
        ready = asyncio.Event()
        running = asyncio.create_task(machine.connector.exec(command, lambda *_: ready.set()))
        await ready.wait()
        running.cancel()
        await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    machine.wait(scenario())

    eventually(lambda: with_mark(mark) == set())


def test_a_polite_end_is_waited_for(machine: Machine, tmp_path: Path) -> None:
    script = f"trap 'echo tidy > {tmp_path}/tidied; exit' TERM; sleep 1000 & wait"

    with pytest.raises(TimedOut):
        machine.exec("sh", "-c", script, timeout=0.3)

    assert (tmp_path / "tidied").read_text() == "tidy\n"


def test_closing_ends_what_still_runs(machine: Machine, mark: str) -> None:
    async def scenario() -> None:
        ready = asyncio.Event()
        command = Command(("sh", "-c", f"echo ready; sleep 1000; : {mark}"))
        running = asyncio.create_task(machine.connector.exec(command, lambda *_: ready.set()))
        await ready.wait()
        await machine.connector.close()
        assert (await running).exit == 143

    machine.wait(scenario())

    assert with_mark(mark) == set()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes somebody else")
def test_root_becomes_another_user_without_help(machine: Machine) -> None:
    done = machine.exec("sh", "-c", "id -un; echo $HOME $USER", user="nobody")

    assert done.text.splitlines() == ["nobody", "/nonexistent nobody"]
    assert machine.exec("id", "-un", sudo=True).text == "root"
    with pytest.raises(StepFailed, match="no user `nobody-at-all`"):
        machine.exec("true", user="nobody-at-all")
