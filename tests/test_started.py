"""What a test starts does not outlive it."""

import subprocess

import pytest
from tests.started import started


def test_a_program_that_is_still_at_work_ends_with_the_block() -> None:
    with pytest.raises(subprocess.TimeoutExpired), started(["sleep", "60"]) as process:
        process.communicate(timeout=0.01)

    assert process.returncode == -9


def test_what_a_program_said_when_it_ended_by_itself_is_kept() -> None:
    with started(["sh", "-c", "echo said; echo told >&2; exit 3"]) as process:
        found = process.communicate(timeout=60)

    assert (process.returncode, found) == (3, ("said\n", "told\n"))
