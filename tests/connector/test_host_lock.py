"""A host obeys the latest run of a name, and nothing of an earlier one goes on beside it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from functools import wraps
from pathlib import Path

import pytest
from tests.connector.processes import with_mark

from kubexm.common import processes
from kubexm.connector import holder
from kubexm.connector.base import Claim, Command
from kubexm.connector.groups import Group, RecordedGroups, recorded
from kubexm.connector.holder import HolderFile
from kubexm.connector.hostlock import HostLock
from kubexm.connector.local import LocalConnector
from kubexm.connector.takeover import Patience
from kubexm.errors import Refused, StepFailed, TimedOut

QUICK = Patience(grace=0.5, awaited=0.3)
SLOW = Patience(grace=0.5, awaited=10.0)


def claim(token: int, name: str = "site") -> Claim:
    return Claim(name, token, f"t{token}", who="somebody@here, pid 1")


def locks(place: Path, name: str = "site") -> Path:
    return place / "locks" / name


@asynccontextmanager
async def holding(
    place: Path, token: int, *, name: str = "site", patience: Patience = SLOW
) -> AsyncIterator[LocalConnector]:
    """This machine in the hands of one run."""
    connector = LocalConnector(lock=HostLock(place, claim(token, name), patience), grace=0.5)
    try:
        yield connector
    finally:
        await connector.close()


def shell(script: str, *, uninterruptible: bool = False) -> Command:
    return Command(("sh", "-c", script), uninterruptible=uninterruptible)


TRUE = Command(("true",))


def beating(path: Path, *, trap: str = "") -> Command:
    """A command that does harm again and again."""
    return shell(f"{trap}while :; do echo beat >>{path}; sleep 0.01; done")


async def there(path: Path) -> None:
    await until(path.exists)


async def until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110  # other processes have no events to offer
        await asyncio.sleep(0.005)


def in_loop(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    @wraps(test)
    def run(*args: object, **kwargs: object) -> None:
        asyncio.run(_awaited(test(*args, **kwargs)))

    return run


async def _awaited(work: Awaitable[None]) -> None:
    await work


@contextmanager
def stranger(script: str) -> Iterator[subprocess.Popen[bytes]]:
    """Somebody's process in a session of its own."""
    command = ["sh", "-c", script]
    with subprocess.Popen(command, start_new_session=True, stdin=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            os.killpg(process.pid, signal.SIGKILL)


def left_behind(place: Path, token: int, *groups: Group) -> Path:
    """What a holder that died has recorded."""
    HolderFile(place / "locks", claim(token)).lay()
    file = RecordedGroups(locks(place), token)
    file.open()
    for group in groups:
        file.add(group)
    return locks(place) / f"groups.{token}"


def group(pid: int, *, awaited: bool = False, **others: object) -> Group:
    seen = processes.look(pid)
    assert seen is not None
    values = {"started": seen.started, "boot": processes.boot(), **others}
    same = {"awaited": awaited, "sudo": False, "task": "t1", "program": "sh"}
    return Group(pid=pid, **same, **values)  # type: ignore[arg-type]  # of many types


@in_loop
async def test_is_taken_before_the_first_change_and_not_to_look(tmp_path: Path) -> None:
    (tmp_path / "f").touch()
    async with holding(tmp_path, 1) as connector:
        await connector.batch([TRUE, Command(("false",))])
        await connector.exec(Command(("true",), changes=False))
        await connector.get(str(tmp_path / "f"))
        await connector.stat(str(tmp_path / "f"))
        before = locks(tmp_path).exists()
        await connector.exec(TRUE)

        line = (locks(tmp_path) / "holder").read_text()

    assert not before
    assert line.split("\t")[:2] == ["1", "t1"]


@in_loop
async def test_writing_a_file_takes_it_too(tmp_path: Path) -> None:
    async with holding(tmp_path, 1) as connector:
        await connector.put(str(tmp_path / "f"), b"text")

    assert (locks(tmp_path) / "holder").read_text().startswith("1\t")


@in_loop
async def test_earlier_token_is_refused_with_who_is_obeyed_since_when(tmp_path: Path) -> None:
    async with holding(tmp_path, 1) as earlier, holding(tmp_path, 2) as later:
        await earlier.exec(TRUE)
        await later.exec(TRUE)

        with pytest.raises(Refused) as refused:
            await earlier.exec(shell(f"touch {tmp_path}/late"))
        with pytest.raises(Refused):
            await earlier.put(str(tmp_path / "late"), b"")
        looked = await earlier.exec(Command(("true",), changes=False))

    assert "token 1 of task t1 is refused: the host obeys token 2" in str(refused.value)
    assert "task t2 (somebody@here, pid 1) since 20" in str(refused.value)
    assert not (tmp_path / "late").exists()
    assert looked.ok


@in_loop
async def test_same_token_of_another_task_is_refused(tmp_path: Path) -> None:
    async with holding(tmp_path, 1) as first:
        await first.exec(TRUE)
    other = Claim("site", 1, "of-another-store", who="")

    with pytest.raises(Refused):
        HolderFile(tmp_path / "locks", other).lay()


@pytest.mark.parametrize("trap", ["", "trap '' TERM; "])
@in_loop
async def test_later_run_ends_what_an_earlier_one_runs_before_its_own_first_change(
    tmp_path: Path, trap: str
) -> None:
    beats = tmp_path / "beats"
    async with holding(tmp_path, 1) as earlier, holding(tmp_path, 2) as later:
        harm = asyncio.create_task(earlier.exec(beating(beats, trap=trap)))
        await there(beats)

        first = await later.exec(shell(f"wc -c <{beats}; sleep 0.1; wc -c <{beats}"))
        done = await harm

    before, after = first.text.split()
    assert before == after
    assert done.exit in (128 + signal.SIGTERM, 128 + signal.SIGKILL)


@in_loop
async def test_whole_group_is_ended_also_what_ignores_a_friendly_word(tmp_path: Path) -> None:
    mark = f"mark-{uuid.uuid4().hex}"
    script = f"(trap '' TERM; touch {tmp_path}/up; sleep 1000; : {mark}) & sleep 1000; : {mark}"
    async with holding(tmp_path, 1) as earlier, holding(tmp_path, 2) as later:
        under_way = asyncio.create_task(earlier.exec(shell(script)))
        await there(tmp_path / "up")

        await later.exec(TRUE)

        assert with_mark(mark) == set()
        await under_way


@in_loop
async def test_what_must_not_be_interrupted_is_awaited(tmp_path: Path) -> None:
    go, up, done = tmp_path / "go", tmp_path / "up", tmp_path / "done"
    script = f"touch {up}; while [ ! -e {go} ]; do sleep 0.01; done; touch {done}"
    async with holding(tmp_path, 1) as earlier, holding(tmp_path, 2) as later:
        installing = asyncio.create_task(earlier.exec(shell(script, uninterruptible=True)))
        await there(up)
        first = asyncio.create_task(later.exec(shell(f"test -e {done}")))
        await until(lambda: holder_is(tmp_path, 2))
        waited = not first.done()
        go.touch()

        assert (await first).ok
        assert (await installing).ok
    assert waited


def holder_is(place: Path, token: int) -> bool:
    return (locks(place) / "holder").read_text().startswith(f"{token}\t")


@in_loop
async def test_waits_no_longer_than_it_may_and_names_what_it_waits_for(tmp_path: Path) -> None:
    go, up = tmp_path / "go", tmp_path / "up"
    script = f"touch {up}; while [ ! -e {go} ]; do sleep 0.01; done"
    async with (
        holding(tmp_path, 1) as earlier,
        holding(tmp_path, 2, patience=QUICK) as later,
    ):
        installing = asyncio.create_task(earlier.exec(shell(script, uninterruptible=True)))
        await there(up)
        (running,) = recorded(locks(tmp_path) / "groups.1")

        with pytest.raises(TimedOut) as late:
            await later.exec(TRUE)
        assert "waited in vain" in str(late.value)
        assert f"`sh` (pid {running.pid}) of task t1" in str(late.value)

        # Whoever tries again does not wait all over, and goes on as soon as it is over.
        with pytest.raises(TimedOut):
            await later.put(str(tmp_path / "f"), b"")
        go.touch()
        await installing
        assert (await later.exec(TRUE)).ok


@in_loop
async def test_pid_in_new_hands_is_left_alone(tmp_path: Path) -> None:
    mark = f"mark-{uuid.uuid4().hex}"
    sleeps = f"sleep 1000; : {mark}"
    with stranger(sleeps) as one, stranger(sleeps) as other:
        rebooted = group(other.pid, boot="another boot")
        file = left_behind(tmp_path, 1, group(one.pid, started=1), rebooted)

        async with holding(tmp_path, 2) as later:
            assert (await later.exec(TRUE)).ok

        assert with_mark(mark) == {one.pid, other.pid}
        assert not file.exists()


@in_loop
async def test_rest_of_a_group_without_its_first_process_is_named_and_not_signalled(
    tmp_path: Path,
) -> None:
    mark = f"mark-{uuid.uuid4().hex}"
    # The first process ends and leaves another in its group: by number alone nobody can tell
    # whether that is the recorded group, or one of a stranger who got the pid later.
    script = f"read -r _; (sleep 1000; : {mark}) >/dev/null & exit"
    with stranger(script) as process:
        left_behind(tmp_path, 1, group(process.pid))
        process.communicate(b"\n")
        await until(lambda: len(with_mark(mark)) == 1)

        async with holding(tmp_path, 2, patience=QUICK) as later:
            with pytest.raises(TimedOut, match=f"`sh` \\(pid {process.pid}\\) of task t1"):
                await later.exec(TRUE)

        assert len(with_mark(mark)) == 1


@in_loop
async def test_runs_of_other_names_do_not_disturb_each_other(tmp_path: Path) -> None:
    go, up = tmp_path / "go", tmp_path / "up"
    script = f"touch {up}; while [ ! -e {go} ]; do sleep 0.01; done"
    async with holding(tmp_path, 1) as one, holding(tmp_path, 9, name="another/name") as other:
        under_way = asyncio.create_task(one.exec(shell(script)))
        await there(up)
        await other.exec(TRUE)
        await one.put(str(go), b"")

        assert (await under_way).ok
        assert (await one.exec(TRUE)).ok


@in_loop
async def test_records_neither_arguments_nor_input_nor_environment(tmp_path: Path) -> None:
    command = Command(
        ("sh", "-c", f"touch {tmp_path}/up; cat >/dev/null; sleep 1000", "hunter2-argument"),
        stdin=b"hunter2-input",
        env={"PASSWORD": "hunter2-environment"},
    )
    async with holding(tmp_path, 1) as connector:
        under_way = asyncio.create_task(connector.exec(command))
        await there(tmp_path / "up")
        written = [path.read_text() for path in locks(tmp_path).iterdir()]
        under_way.cancel()

    assert any("\tsh\n" in text for text in written)
    assert not any("hunter2" in text for text in written)


@in_loop
async def test_nothing_piles_up(tmp_path: Path) -> None:
    async with holding(tmp_path, 1) as connector:
        await asyncio.gather(*(connector.exec(TRUE) for _ in range(8)))
        after_some = (locks(tmp_path) / "groups.1").stat().st_size
    async with holding(tmp_path, 2) as connector:
        await connector.exec(TRUE)

    assert after_some == 0
    assert [path.name for path in locks(tmp_path).iterdir()] == ["holder"]


@in_loop
async def test_goes_on_when_somebody_removed_it(tmp_path: Path) -> None:
    async with holding(tmp_path, 1) as connector:
        await connector.exec(shell(f"rm -r {locks(tmp_path)}"))

        assert (await connector.exec(TRUE)).ok
        assert holder_is(tmp_path, 1)


def test_of_many_that_take_it_at_once_the_greatest_token_has_it(tmp_path: Path) -> None:
    tokens = list(range(1, 33))

    def take(token: int) -> bool:
        try:
            HolderFile(tmp_path / "locks", claim(token)).lay()
        except Refused:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        taken = list(pool.map(take, sorted(tokens, key=lambda token: token * 7 % 32)))

    assert any(taken)
    assert holder_is(tmp_path, 32)


@in_loop
async def test_file_is_not_moved_into_place_when_another_has_taken_over(tmp_path: Path) -> None:
    lock = HostLock(tmp_path, claim(1))
    await lock.ready()
    async with holding(tmp_path, 2) as later:
        await later.exec(TRUE)

    with pytest.raises(Refused), lock.writing():
        raise AssertionError("it was moved")


@in_loop
async def test_nobody_takes_over_amid_a_move_and_who_stands_still_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(holder, "FLOCK_SECONDS", 0.05)
    lock = HostLock(tmp_path, claim(1))
    await lock.ready()
    async with holding(tmp_path, 2) as later:
        with lock.writing(), pytest.raises(TimedOut, match="obeys token 1, task t1"):
            await later.exec(TRUE)

        assert (await later.exec(TRUE)).ok


@in_loop
async def test_full_disk_keeps_a_command_from_beginning(tmp_path: Path) -> None:
    async with holding(tmp_path, 1) as connector:
        await connector.exec(TRUE)
        # Whatever is written to this device, there is no room for it.
        full = os.open("/dev/full", os.O_WRONLY)
        os.dup2(full, descriptor_of(locks(tmp_path) / "groups.1"))
        os.close(full)

        with pytest.raises(StepFailed, match="can't record a command"):
            await connector.exec(shell(f"touch {tmp_path}/late"))

    assert not (tmp_path / "late").exists()


def descriptor_of(path: Path) -> int:
    """The number under which this process has a file open."""
    links = ((int(one.name), one) for one in Path("/proc/self/fd").iterdir())
    return next(number for number, one in links if one.readlink() == path)
