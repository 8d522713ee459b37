"""What files hold: read once, and once more when they were written."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from kubexm.common import digests
from kubexm.common.digests import Digests

LONG_AGO = 1_000_000_000


@pytest.fixture
def sure(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that was written just now is as good as an old one."""
    monkeypatch.setattr(digests, "_SURE", -LONG_AGO)


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[tuple[Path, int]]:
    path = tmp_path / "file"
    path.write_bytes(b"first")
    descriptor = os.open(path, os.O_RDONLY)
    yield path, descriptor
    os.close(descriptor)


def digest(data: bytes) -> str:
    return sha256(data).hexdigest()


@pytest.mark.usefixtures("sure")
def test_a_file_is_read_once(opened: tuple[Path, int], reads: list[int]) -> None:
    _, descriptor = opened
    known = Digests()

    assert [known.of(descriptor), known.of(descriptor)] == [digest(b"first")] * 2
    assert reads == [0, 5]


@pytest.mark.usefixtures("sure")
def test_a_file_that_was_written_is_read_again(opened: tuple[Path, int]) -> None:
    path, descriptor = opened
    known = Digests()
    known.of(descriptor)

    path.write_bytes(b"other")
    os.utime(path, ns=(LONG_AGO, LONG_AGO))

    assert known.of(descriptor) == digest(b"other")


def test_a_file_that_was_written_just_now_is_not_taken_for_known(
    opened: tuple[Path, int], reads: list[int]
) -> None:
    _, descriptor = opened
    known = Digests()

    known.of(descriptor)
    known.of(descriptor)

    assert reads == [0, 5, 0, 5]


def test_who_asks_for_a_file_that_is_being_read_waits_for_that(
    opened: tuple[Path, int], reads: list[int], sure: None
) -> None:
    path, descriptor = opened
    known = Digests()

    known.begin(path)

    assert known.of(descriptor) == digest(b"first")
    assert reads == [0, 5]


@pytest.mark.usefixtures("sure")
def test_a_file_that_is_known_is_not_begun(opened: tuple[Path, int], reads: list[int]) -> None:
    path, descriptor = opened
    known = Digests()

    assert known.begin(path)
    known.of(descriptor)

    assert not known.begin(path)
    assert reads == [0, 5]


@pytest.mark.usefixtures("sure")
def test_many_files_are_read_by_as_many_readers_as_there_are_cores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [tmp_path / str(number) for number in range(50)]
    for path in paths:
        path.write_text(path.name)
    known, at_once, running = Digests(), [0], set[int]()
    read = known._read

    def noted(descriptor: int, found: Any) -> str:
        running.add(threading.get_ident())
        at_once.append(len(running))
        time.sleep(0.001)
        digest = read(descriptor, found)
        running.discard(threading.get_ident())
        return digest

    monkeypatch.setattr(known, "_read", noted)

    for path in paths:
        known.begin(path)
    for path in paths:
        with path.open() as file:
            assert known.of(file.fileno()) == digest(path.name.encode())

    assert 0 < max(at_once) <= (os.cpu_count() or 1)


@pytest.mark.usefixtures("sure")
def test_a_file_that_is_wanted_when_all_readers_have_gone_is_read(tmp_path: Path) -> None:
    known = Digests()
    for number in range(3 * (os.cpu_count() or 1)):
        path = tmp_path / str(number)
        path.write_text(path.name)
        known.begin(path)
        with path.open() as file:
            assert known.of(file.fileno()) == digest(path.name.encode())


@pytest.mark.usefixtures("sure")
def test_another_file_in_its_place_is_not_taken_for_it(
    opened: tuple[Path, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, descriptor = opened
    known, held = Digests(), threading.Lock()
    monkeypatch.setattr(known, "_next", gated(held, known._next))

    with held:
        known.begin(path)
        path.unlink()
        path.write_bytes(b"other")

    assert known.of(descriptor) == digest(b"first")


def gated(gate: threading.Lock, work: Callable[[], Any]) -> Callable[[], Any]:
    def once_open() -> Any:
        with gate:
            return work()

    return once_open


@pytest.mark.usefixtures("sure")
class TestLaterProcesses:
    @pytest.fixture(autouse=True)
    def _small(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(digests, "LARGE", 1)

    def test_know_a_file_again(
        self, opened: tuple[Path, int], tmp_path: Path, reads: list[int]
    ) -> None:
        _, descriptor = opened
        for _ in range(2):
            known = Digests(tmp_path / "made" / "kept")
            assert known.of(descriptor) == digest(b"first")

        assert reads == [0, 5]

    def test_pass_over_what_makes_no_sense(self, opened: tuple[Path, int], tmp_path: Path) -> None:
        _, descriptor = opened
        kept = tmp_path / "kept"
        signature = " ".join(map(str, digests.signature(os.fstat(descriptor))))
        kept.write_bytes(
            b"\xff\n\n1 2 3\n" + f"{signature} short\nx{signature} {'0' * 64}".encode()
        )

        known = Digests(kept)

        assert known.of(descriptor) == digest(b"first")

    def test_do_not_keep_more_and_more(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(digests, "KEPT", 2)
        kept = tmp_path / "kept"
        kept.write_text("".join(f"1 2 3 4 {number} {'0' * 64}\n" for number in range(5)))

        Digests(kept)

        assert kept.read_text() == "".join(f"1 2 3 4 {n} {'0' * 64}\n" for n in (3, 4))

    def test_do_without_where_nothing_can_be_kept(
        self, opened: tuple[Path, int], tmp_path: Path
    ) -> None:
        _, descriptor = opened
        known = Digests(tmp_path / "file" / "kept")

        assert known.of(descriptor) == digest(b"first")
