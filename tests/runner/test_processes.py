"""Processes that run here, and how they are ended."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tests.runner.hosts import complained, on_this_machine, said

from kubexm.errors import CommandFailed, StepFailed
from kubexm.runner import processes
from kubexm.runner.host import Host


def test_are_found_by_name_and_by_the_file_that_names_them(tmp_path: Path) -> None:
    program = tmp_path / "a-rather-long-name+of-a-program"
    program.symlink_to("/bin/sleep")
    with subprocess.Popen([program, "60"]) as process:
        (tmp_path / "pid").write_text(f"{process.pid}\n")

        async def look(host: Host) -> tuple[tuple[int, ...], int | None]:
            return (
                await processes.named(host, program.name),
                await processes.of_file(host, f"{tmp_path}/pid"),
            )

        there = on_this_machine(look)
        process.kill()
        process.wait()
        gone = on_this_machine(look)

    assert there == ((process.pid,), process.pid)
    assert gone == ((), None)


def test_a_file_that_names_nothing_is_no_process(tmp_path: Path) -> None:
    (tmp_path / "odd").write_text("none\n")

    async def look(host: Host) -> list[int | None]:
        return [await processes.of_file(host, f"{tmp_path}/{name}") for name in ("odd", "missing")]

    assert on_this_machine(look) == [None, None]


def test_one_that_listens_ends_when_it_is_asked_to() -> None:
    with subprocess.Popen(["sleep", "60"]) as process:
        on_this_machine(lambda host: processes.end(host, process.pid))

        assert process.wait() == -15


def test_one_that_does_not_listen_is_killed() -> None:
    deaf = "trap '' TERM; echo; while :; do sleep 1; done"
    with subprocess.Popen(["sh", "-c", deaf], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        on_this_machine(lambda host: processes.end(host, process.pid, seconds=0.3))

        assert process.wait() == -9


def test_one_that_has_ended_is_left_alone() -> None:
    with subprocess.Popen(["true"]) as process:
        process.wait()

        on_this_machine(lambda host: processes.end(host, process.pid))


@pytest.mark.parametrize("pid", [1, 0, -1])
def test_the_first_process_and_whole_groups_are_never_ended(pid: int) -> None:
    with pytest.raises(StepFailed, match="no process that may be ended"):
        on_this_machine(lambda host: processes.end(host, pid))


def test_a_name_with_brackets_and_one_that_waits_for_its_parent_are_read_right() -> None:
    assert processes.runs(said("7 (a) b) S 1 7 7"))
    assert not processes.runs(said("7 (gone) Z 1 7 7"))
    assert not processes.runs(complained("No such file or directory"))
    with pytest.raises(CommandFailed, match="pgrep"):
        processes.pids_of(complained("not found", 127))
