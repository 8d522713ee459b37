"""What the lock of a host does with its holder, and with the files that earlier runs have left."""

import fcntl
import os
import subprocess
from pathlib import Path

import pytest

from kubexm.connector.ssh import lock

MANY, FEW = lock._LEFT + 5, lock._LEFT - 1


def take(place: Path, token: int, **env: str) -> list[str]:
    """Become the holder; the lines that are told."""
    words = (str(place), str(token), "task", f"{token}\ttask\tsince\twho", f"groups.h1.{token}")
    done = subprocess.run(
        ["sh", "-c", lock._TAKE, "sh", *words],
        capture_output=True,
        check=True,
        timeout=20,
        env={**os.environ, **env},
    )
    assert done.stderr == b""
    return done.stdout.decode().splitlines()


def test_who_is_the_holder_already_does_not_wait_for_the_lock(tmp_path: Path) -> None:
    take(tmp_path, 1000)
    descriptor = os.open(tmp_path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)

        assert take(tmp_path, 1000) == ["1000\ttask\tsince\twho"]
    finally:
        os.close(descriptor)


@pytest.mark.parametrize(
    ("found", "code"), [("1001\tother", 3), ("1000\tother", 3), ("what is it", 5)]
)
def test_another_holder_is_told(tmp_path: Path, found: str, code: int) -> None:
    (tmp_path / "holder").write_text(f"{found}\tsince\twho\n")

    with pytest.raises(subprocess.CalledProcessError) as refused:
        take(tmp_path, 1000)

    assert refused.value.returncode == code
    assert refused.value.stdout.decode() == f"{found}\tsince\twho\n"


def left(place: Path) -> list[str]:
    return sorted(path.name for path in place.glob("groups.*"))


@pytest.mark.parametrize(("count", "stay"), [(FEW, FEW), (MANY, 0)])
def test_of_files_that_are_empty_a_few_may_stay(tmp_path: Path, count: int, stay: int) -> None:
    for number in range(count):
        (tmp_path / f"groups.h1.{number + 1}").touch()

    told = take(tmp_path, 1000)

    assert told == ["1000\ttask\tsince\twho"]
    assert len(left(tmp_path)) == stay


def test_what_earlier_ones_have_recorded_is_told_and_stays(tmp_path: Path) -> None:
    for number in range(MANY):
        (tmp_path / f"groups.h1.{number + 1}").touch()
    (tmp_path / "groups.h1.500").write_text("+\tsomething that runs\n")
    (tmp_path / "groups.h2.1000").touch()

    told = take(tmp_path, 1000)

    assert told[1:] == ["+\tsomething that runs"]
    assert left(tmp_path) == ["groups.h1.500", "groups.h2.1000"]


def test_nothing_is_wrong_if_somebody_else_sweeps_at_the_same_time(tmp_path: Path) -> None:
    place, tools = tmp_path / "place", tmp_path / "tools"
    place.mkdir()
    tools.mkdir()
    (tools / "find").write_text("#!/bin/sh\necho it is gone >&2\nexit 1\n")
    (tools / "find").chmod(0o755)
    for number in range(MANY):
        (place / f"groups.h1.{number + 1}").touch()

    told = take(place, 1000, PATH=f"{tools}:{os.environ['PATH']}")

    assert told == ["1000\ttask\tsince\twho"]
