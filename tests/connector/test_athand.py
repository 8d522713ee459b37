"""What of a file can be had without waiting, and that all of it comes all the same."""

import asyncio
import errno
import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from kubexm.connector import athand
from kubexm.connector.athand import AtHand
from kubexm.connector.source import PIECE, STRETCH, Source

DATA = os.urandom(2 * STRETCH + PIECE + 1000)


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[int]:
    path = tmp_path / "file"
    path.write_bytes(DATA)
    descriptor = os.open(path, os.O_RDONLY)
    yield descriptor
    os.close(descriptor)


def mounted(place: Path, descriptor: int, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the file system of a file be of this kind."""
    device = os.fstat(descriptor).st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    (place / "mounts").write_text(
        f"20 1 0:99 / /other rw shared:1 - ext4 /dev/x rw\n21 1 {number} / / rw - {kind} none rw\n"
    )
    monkeypatch.setattr(athand, "_MOUNTS", place / "mounts")


def test_a_file_without_a_disk_is_read_as_it_is(
    opened: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounted(tmp_path, opened, "tmpfs", monkeypatch)
    found = AtHand(opened, PIECE)

    assert found.read(10, 100) == DATA[10:110]
    assert found.read(len(DATA) - 5, 100) == b""


def test_a_file_with_a_disk_is_told_not_to_wait(
    opened: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounted(tmp_path, opened, "ext4", monkeypatch)
    asked: list[int] = []

    def would_wait(descriptor: int, buffers: object, place: int, flags: int) -> int:
        asked.append(flags)
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr(os, "preadv", would_wait)

    assert AtHand(opened, PIECE).read(0, 100) == b""
    assert asked == [os.RWF_NOWAIT]


def test_where_nobody_can_be_told_nothing_is_at_hand(
    opened: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(athand, "_MOUNTS", tmp_path / "none")
    monkeypatch.delattr(os, "RWF_NOWAIT")

    assert AtHand(opened, PIECE).read(0, 100) == b""


@pytest.mark.parametrize("at_hand", ["all", "nothing", "every other piece", "the disk's choice"])
@pytest.mark.parametrize("start", [0, STRETCH + 7, len(DATA)])
def test_a_source_comes_whole_however_much_of_it_is_at_hand(
    opened: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_hand: str, start: int
) -> None:
    turns = iter(range(1000))

    def read(self: AtHand, place: int, count: int) -> bytes:
        there = at_hand == "all" or (at_hand == "every other piece" and next(turns) % 2 == 0)
        return DATA[place : place + count] if there else b""

    if at_hand != "the disk's choice":
        monkeypatch.setattr(AtHand, "read", read)
    else:
        os.fsync(opened)
        os.posix_fadvise(opened, 0, 0, os.POSIX_FADV_DONTNEED)

    async def all_pieces() -> list[bytes]:
        with closing(Source(tmp_path / "file")) as source:
            return [piece async for piece in source.pieces(start)]

    pieces = asyncio.run(all_pieces())

    assert b"".join(pieces) == DATA[start:]
    assert all(0 < len(piece) <= PIECE for piece in pieces)
