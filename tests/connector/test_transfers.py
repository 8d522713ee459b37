"""Files that are sent to this machine and to simulated hosts, and fetched from them."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from kubexm.connector import download
from kubexm.connector.base import Command, Connector
from kubexm.connector.download import PIECE, Seen
from kubexm.connector.local import LocalConnector
from kubexm.connector.source import Source, Sources, part_beside
from kubexm.errors import StepFailed
from kubexm.sim import World

DATA = os.urandom(3 * PIECE + 1000)
DIGEST = hashlib.sha256(DATA).hexdigest()


@pytest.fixture
def source(tmp_path: Path) -> Iterator[Source]:
    path = tmp_path / "source"
    path.write_bytes(DATA)
    made = Source(path, DIGEST)
    yield made
    made.close()


def at(place: str, directory: Path, work: Callable[[Connector, str], Awaitable[Any]]) -> Any:
    """What comes of some work with a connector and a directory of its host."""

    async def scenario() -> Any:
        if place == "sim":
            world = World.create(directory / "world")
            try:
                return await work(world.connector("n1"), "/srv")
            finally:
                world.close()
        connector = LocalConnector()
        root = directory / "root"
        root.mkdir()
        try:
            return await work(connector, str(root))
        finally:
            await connector.close()

    return asyncio.run(scenario())


both = pytest.mark.parametrize("place", ["local", "sim"])


@both
def test_a_file_is_sent_whole_and_only_if_it_is_not_there(
    tmp_path: Path, source: Source, place: str
) -> None:
    told: list[tuple[int, int]] = []

    async def work(host: Connector, root: str) -> None:
        path = f"{root}/f"
        assert await host.upload(source, path, mode=0o640, progress=lambda *all: told.append(all))
        await asyncio.sleep(0)
        assert await host.get(path) == DATA
        found = await host.stat(path)
        assert found is not None
        assert found.mode == 0o640
        assert not await host.upload(source, path)

    at(place, tmp_path, work)
    assert told[-1] == (len(DATA), len(DATA))


@both
def test_what_is_not_given_of_a_file_stays_as_it_is(
    tmp_path: Path, source: Source, place: str
) -> None:
    async def work(host: Connector, root: str) -> int:
        await host.put(f"{root}/f", b"old", mode=0o604)
        await host.upload(source, f"{root}/f")
        found = await host.stat(f"{root}/f")
        return found.mode if found else 0

    assert at(place, tmp_path, work) == 0o604


@both
def test_a_source_that_is_not_what_was_planned_changes_nothing(tmp_path: Path, place: str) -> None:
    path = tmp_path / "source"
    path.write_bytes(b"another")
    planned = Source(path, DIGEST)

    async def work(host: Connector, root: str) -> Any:
        await host.put(f"{root}/f", b"old")
        with pytest.raises(StepFailed, match="has changed since it was planned") as caught:
            await host.upload(planned, f"{root}/f")
        assert caught.value.hint
        return await host.get(f"{root}/f"), (await host.exec(listing(root))).text

    assert at(place, tmp_path, work) == (b"old", "f")
    planned.close()


def listing(root: str) -> Command:
    return Command(("ls", "-A", root), changes=False)


def read_while(source: Source, happens: Callable[[], object]) -> bytes:
    """All of a file that was hashed, to which something happens after its first piece."""

    async def read() -> bytes:
        await source.digest()
        found = b""
        async for piece in source.pieces():
            if not found:
                happens()
            found += piece
        return found

    return asyncio.run(read())


def test_a_source_that_is_changed_while_it_is_sent_is_told(source: Source) -> None:
    def happens() -> None:
        with source.path.open("r+b") as file:
            file.write(b"other")

    # Nobody says which digest it has to have: it has to keep the one it had.
    with closing(Source(source.path)) as own:
        with pytest.raises(StepFailed, match="was changed while it was sent") as caught:
            read_while(own, happens)
        assert caught.value.hint


def test_a_source_that_is_only_touched_is_sent(source: Source) -> None:
    assert read_while(source, lambda: source.path.chmod(0o600)) == DATA


def test_a_small_source_is_read_once_for_all_who_send_it_at_the_same_time(
    source: Source, reads: list[int]
) -> None:
    async def read() -> bytes:
        async with source.content() as data:
            await asyncio.sleep(0)
            return data

    async def work() -> tuple[tuple[bytes, bytes], bytes]:
        return await asyncio.gather(read(), read()), await read()

    together, again = asyncio.run(work())

    assert [*together, again] == [DATA] * 3
    assert reads.count(0) == 2


def test_a_source_that_becomes_shorter_is_told_and_does_not_end_the_process(
    tmp_path: Path, source: Source
) -> None:
    os.truncate(source.path, 10)

    async def read() -> None:
        async for _ in source.pieces():
            pass

    with pytest.raises(StepFailed, match="became shorter while it was read"):
        asyncio.run(read())


@pytest.mark.parametrize("what", ["nothing", "directory", "pipe"])
def test_what_is_no_file_is_no_source(tmp_path: Path, what: str) -> None:
    path = tmp_path / what
    if what == "directory":
        path.mkdir()
    elif what == "pipe":
        os.mkfifo(path)

    with pytest.raises(StepFailed, match=f"{path}"):
        Source(path)


def test_many_hosts_share_a_source_that_is_opened_and_hashed_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "source"
    path.write_bytes(DATA)
    hashed: list[int] = []
    real = Source._hash

    def counted(source: Source, size: int) -> str:
        hashed.append(size)
        return real(source, size)

    monkeypatch.setattr(Source, "_hash", counted)
    world = World.create(tmp_path / "world")

    async def scenario() -> set[Source]:
        sources = Sources()
        used = {sources.of(path) for _ in range(50)}
        async with asyncio.TaskGroup() as group:
            for number in range(50):
                host = world.connector(f"n{number}")
                group.create_task(host.upload(sources.of(path), "/srv/f"))
        assert _opened(path) == 1
        sources.close()
        return used

    used = asyncio.run(scenario())
    world.close()
    assert len(used) == 1
    assert hashed == [len(DATA)]
    assert _opened(path) == 0


def _opened(path: Path) -> int:
    """How often this process has a file open."""
    links = Path("/proc/self/fd").iterdir()
    return [os.path.realpath(link) for link in links].count(str(path))


def test_what_is_made_for_hosts_is_made_once_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    made: list[int] = []

    def make(file: Any) -> None:
        made.append(1)
        file.write(b"made")

    async def scenario() -> list[bytes]:
        sources = Sources()
        found = [await sources.made("key", make) for _ in range(3)]
        content = [source.path.read_bytes() for source in found]
        sources.close()
        return content

    assert asyncio.run(scenario()) == [b"made"] * 3
    assert made == [1]
    assert [*tmp_path.iterdir()] == []


@both
def test_a_file_is_fetched_whole_and_only_if_it_is_not_here(tmp_path: Path, place: str) -> None:
    to = tmp_path / "here"
    told: list[tuple[int, int]] = []

    async def work(host: Connector, root: str) -> None:
        await host.put(f"{root}/f", DATA)
        assert await host.download(f"{root}/f", to, progress=lambda *all: told.append(all))
        assert not await host.download(f"{root}/f", to)

    at(place, tmp_path, work)
    assert to.read_bytes() == DATA
    assert told[-1] == (len(DATA), len(DATA))
    assert [done for done, _ in told] == sorted({done for done, _ in told})
    assert not Path(part_beside(str(to))).exists()


@both
@pytest.mark.parametrize(("mode", "ours"), [(0o644, 0o644), (0o640, 0o600)])
def test_what_is_private_on_the_host_is_private_here(
    tmp_path: Path, place: str, mode: int, ours: int
) -> None:
    to = tmp_path / "here"

    async def work(host: Connector, root: str) -> None:
        await host.put(f"{root}/f", b"x", mode=mode)
        await host.download(f"{root}/f", to)

    at(place, tmp_path, work)
    assert to.stat().st_mode & 0o777 == ours


@both
def test_what_is_not_there_or_no_file_is_not_fetched(tmp_path: Path, place: str) -> None:
    async def work(host: Connector, root: str) -> None:
        with pytest.raises(FileNotFoundError):
            await host.download(f"{root}/nothing", tmp_path / "here")
        with pytest.raises(StepFailed):
            await host.download(root, tmp_path / "here")

    at(place, tmp_path, work)
    assert not (tmp_path / "here").exists()


class Far:
    """A file far away; every piece that is asked for is noted."""

    def __init__(self, data: bytes, breaks_at: int | None = None) -> None:
        self.data, self.asked = data, list[int]()
        self.breaks_at = breaks_at

    async def seen(self, path: str, beginning: int) -> Seen:
        begun = hashlib.sha256(self.data[:beginning]).hexdigest() if beginning else ""
        return Seen(0o644, len(self.data), hashlib.sha256(self.data).hexdigest(), begun)

    async def piece(self, path: str, number: int) -> bytes:
        self.asked.append(number)
        if number == self.breaks_at:
            raise StepFailed("it broke")
        return self.data[number * PIECE : (number + 1) * PIECE]


def test_a_fetch_that_broke_goes_on_where_it_was(tmp_path: Path) -> None:
    to = tmp_path / "here"
    broken, whole = Far(DATA, breaks_at=2), Far(DATA)

    with pytest.raises(StepFailed, match="it broke"):
        asyncio.run(download.download(broken, "/f", to))
    assert asyncio.run(download.download(whole, "/f", to))

    assert whole.asked == [2, 3]
    assert to.read_bytes() == DATA


def test_what_is_left_of_another_file_is_fetched_anew(tmp_path: Path) -> None:
    to = tmp_path / "here"
    Path(part_beside(str(to))).write_bytes(b"x" * 2 * PIECE)
    far = Far(DATA)

    asyncio.run(download.download(far, "/f", to))

    assert far.asked == [0, 1, 2, 3]
    assert to.read_bytes() == DATA


def test_a_file_that_changes_while_it_is_fetched_is_told(tmp_path: Path) -> None:
    class Changing(Far):
        async def piece(self, path: str, number: int) -> bytes:
            self.data = self.data[:-1] + b"!"
            return await super().piece(path, number)

    with pytest.raises(StepFailed, match="has changed while it was fetched"):
        asyncio.run(download.download(Changing(DATA[:-1] + b"?"), "/f", tmp_path / "here"))

    assert [*tmp_path.iterdir()] == []


@pytest.mark.timeout(20)
def test_a_pipe_keeps_nobody_waiting(tmp_path: Path) -> None:
    async def work(host: Connector, root: str) -> None:
        os.mkfifo(f"{root}/pipe")
        with pytest.raises(StepFailed, match="it is no file"):
            await host.get(f"{root}/pipe")
        with pytest.raises(StepFailed, match="it is no file"):
            await host.download(f"{root}/pipe", tmp_path / "here")

    at("local", tmp_path, work)
