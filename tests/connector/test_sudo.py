"""Commands and files of root's, for a user who may become root without a password."""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.connector import sudoers
from tests.connector.processes import eventually, running, with_mark
from tests.connector.sudoers import Sudoer

from kubexm.connector.base import Claim, Command, Completed
from kubexm.connector.hostlock import HostLock
from kubexm.connector.local import LocalConnector
from kubexm.connector.source import Source
from kubexm.connector.takeover import Patience
from kubexm.errors import StepFailed, TimedOut

Test = Callable[..., None]
OBSTACLE = sudoers.obstacle()
QUICK = Patience(grace=0.5)

pytestmark = [
    pytest.mark.slow,  # each asks for root several times
    pytest.mark.skipif(bool(OBSTACLE), reason=OBSTACLE),
    pytest.mark.xdist_group("sudo"),  # users are made and removed one at a time
]


@pytest.fixture(scope="module")
def sudoer() -> Iterator[Sudoer]:
    with sudoers.lent() as found:
        code, said = found.done("sudo", "-n", "true")
        if code != 0:
            pytest.skip(f"sudo does not let a user become root: {said}")
        yield found


def by_a_sudoer(test: Test) -> Test:
    """The test for a user who may become root; root has another one repeat it."""
    if os.geteuid() != 0:
        return test

    def repeated(sudoer: Sudoer, request: pytest.FixtureRequest, tmp_path: Path) -> None:
        sudoer.repeat(request.node.nodeid, tmp_path)

    return repeated


@pytest.fixture
def connector() -> Iterator[LocalConnector]:
    made = LocalConnector(grace=0.5)
    yield made
    asyncio.run(made.close())


def run(connector: LocalConnector, *argv: str, **settings: Any) -> Completed:
    return asyncio.run(connector.exec(Command(argv, **settings)))


@by_a_sudoer
def test_becomes_root_or_another_user(connector: LocalConnector) -> None:
    assert run(connector, "id", "-un", sudo=True).text == "root"
    assert run(connector, "id", "-un", user="nobody").text == "nobody"


@by_a_sudoer
def test_takes_environment_input_and_directory_along(connector: LocalConnector) -> None:
    done = run(
        connector, "sh", "-c", 'cat; pwd; echo "$A"', sudo=True, env={"A": "x y"},
        stdin=b"in\n", cwd="/usr",
    )  # fmt: skip

    assert done.text == "in\n/usr\nx y"


@by_a_sudoer
def test_no_command_line_shows_the_environment(connector: LocalConnector) -> None:
    # Every process from this one up to us: the shell, sudo, and what stands before it.
    look = 'p=$$; while [ "$p" -gt 1 ]; do tr "\\0" " " </proc/$p/cmdline; '
    look += "p=$(cut -d' ' -f4 /proc/$p/stat); done"

    done = run(connector, "sh", "-c", look, sudo=True, env={"PASSWORD": "hunter22"})

    assert "sudo" in done.text
    assert "--preserve-env=PASSWORD" in done.text
    assert "hunter22" not in done.text


@pytest.mark.slow
@by_a_sudoer
def test_ends_the_group_of_a_command_of_roots(connector: LocalConnector) -> None:
    mark = f"mark-{uuid.uuid4().hex}"

    with pytest.raises(TimedOut):
        run(connector, "sh", "-c", f"sleep 1000 & sleep 1000; : {mark}", sudo=True, timeout=0.5)

    assert with_mark(mark) == set()


@by_a_sudoer
def test_ends_commands_of_roots_when_kubexm_is_killed() -> None:
    mark = f"mark-{uuid.uuid4().hex}"
    with running(
        f"(sleep 1000; : {mark}) & echo ready; sleep 1000; : {mark}", sudo=True
    ) as process:
        process.kill()

    eventually(lambda: with_mark(mark) == set())


@by_a_sudoer
def test_later_run_ends_what_an_earlier_one_runs_as_root(tmp_path: Path) -> None:
    mark = f"mark-{uuid.uuid4().hex}"
    script = f"trap '' TERM; touch {tmp_path}/up; sleep 1000; : {mark}"

    async def scenario() -> None:
        earlier, later = (
            LocalConnector(lock=HostLock(tmp_path, Claim("site", token, "t", ""), QUICK))
            for token in (1, 2)
        )
        under_way = asyncio.create_task(earlier.exec(Command(("sh", "-c", script), sudo=True)))
        await asyncio.to_thread(eventually, (tmp_path / "up").exists)
        await later.exec(Command(("true",)))

        assert with_mark(mark) == set()
        await under_way
        await earlier.close()
        await later.close()

    asyncio.run(scenario())


@by_a_sudoer
def test_writes_and_reads_files_of_roots(connector: LocalConnector, tmp_path: Path) -> None:
    place = tmp_path / "only-root"
    run(connector, "install", "-d", "-m", "0700", "-o", "root", str(place), sudo=True)
    path = str(place / "f")

    async def scenario() -> None:
        assert await connector.stat(path, sudo=True) is None
        with pytest.raises(FileNotFoundError):
            await connector.get(path, sudo=True)
        await connector.put(path, b"\x00one", mode=0o640, owner="nobody", sudo=True)
        await connector.put(path, b"two" * 1_000_000, sudo=True)
        assert await connector.get(path, sudo=True) == b"two" * 1_000_000
        found = await connector.stat(path, sudo=True)
        assert found is not None
        assert (found.mode, found.owner) == (0o640, "nobody")

    asyncio.run(scenario())
    run(connector, "rm", "-rf", str(place), sudo=True)


@by_a_sudoer
def test_large_files_of_root_are_written_and_fetched(
    connector: LocalConnector, tmp_path: Path
) -> None:
    data = os.urandom(9_000_000)
    ours, to = tmp_path / "ours", tmp_path / "here"
    ours.write_bytes(data)
    directory = run(connector, "mktemp", "-d", sudo=True).text
    path = f"{directory}/f"

    async def scenario() -> None:
        with closing(Source(ours)) as source:
            assert await connector.upload(source, path, mode=0o600, sudo=True)
            assert not await connector.upload(source, path, sudo=True)
        assert await connector.download(path, to, sudo=True)
        found = await connector.stat(path, sudo=True)
        assert found is not None
        assert (found.owner, found.mode, found.size) == ("root", 0o600, len(data))

    try:
        asyncio.run(scenario())
        assert to.read_bytes() == data
    finally:
        run(connector, "rm", "-rf", directory, sudo=True)


@by_a_sudoer
def test_a_large_file_that_changed_since_it_was_planned_is_not_written_as_root(
    connector: LocalConnector, tmp_path: Path
) -> None:
    (tmp_path / "ours").write_bytes(b"another")
    directory = run(connector, "mktemp", "-d", sudo=True).text

    async def scenario() -> None:
        source = Source(tmp_path / "ours", "0" * 64)
        with closing(source), pytest.raises(StepFailed, match="has changed since it was planned"):
            await connector.upload(source, f"{directory}/f", sudo=True)

    try:
        asyncio.run(scenario())
        assert run(connector, "ls", "-A", directory, sudo=True).text == ""
    finally:
        run(connector, "rm", "-rf", directory, sudo=True)
