"""Files of this machine: written whole or not at all."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from kubexm.connector.base import FileStat
from kubexm.connector.local import LocalConnector
from kubexm.errors import StepFailed

T = TypeVar("T")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")


@pytest.fixture
def connector() -> Iterator[LocalConnector]:
    made = LocalConnector()
    yield made
    wait(made.close())


def wait(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(work)


def test_writes_and_reads_every_byte(connector: LocalConnector, tmp_path: Path) -> None:
    data = bytes(range(256)) * 5000
    path = str(tmp_path / "f")

    wait(connector.put(path, data, mode=0o640))

    assert wait(connector.get(path)) == data
    assert Path(path).stat().st_mode & 0o7777 == 0o640
    assert [place.name for place in tmp_path.iterdir()] == ["f"], "nothing else is left"


def test_a_new_file_is_readable_and_an_old_one_keeps_its_mode(
    connector: LocalConnector, tmp_path: Path
) -> None:
    path = tmp_path / "f"

    wait(connector.put(str(path), b""))
    assert path.stat().st_mode & 0o7777 == 0o644

    path.chmod(0o600)
    wait(connector.put(str(path), b"new"))
    assert path.stat().st_mode & 0o7777 == 0o600


@needs_root
def test_keeps_or_sets_owner_and_group(connector: LocalConnector, tmp_path: Path) -> None:
    path = str(tmp_path / "f")

    wait(connector.put(path, b"", mode=0o4755, owner="nobody", group="daemon"))
    wait(connector.put(path, b"new"))

    found = wait(connector.stat(path))
    assert found == FileStat("file", 0o4755, "nobody", "daemon", 3, uid=65534, gid=1)


def test_replaces_a_link_and_not_what_it_points_to(
    connector: LocalConnector, tmp_path: Path
) -> None:
    (tmp_path / "target").write_text("theirs")
    (tmp_path / "link").symlink_to("target")

    wait(connector.put(str(tmp_path / "link"), b"ours"))

    assert (tmp_path / "target").read_text() == "theirs"
    assert not (tmp_path / "link").is_symlink()


def test_does_not_follow_a_trap_laid_at_its_temporary_name(
    connector: LocalConnector, tmp_path: Path
) -> None:
    (tmp_path / "victim").write_text("safe")
    (tmp_path / ".f.kubexm").symlink_to("victim")

    wait(connector.put(str(tmp_path / "f"), b"secret", mode=0o600))

    assert (tmp_path / "victim").read_text() == "safe"
    assert (tmp_path / "f").read_text() == "secret"


def test_many_writers_of_one_path_leave_the_whole_content_of_one(
    connector: LocalConnector, tmp_path: Path
) -> None:
    path = str(tmp_path / "f")
    contents = [bytes([number]) * 10_000 for number in range(20)]

    async def all_at_once() -> None:
        await asyncio.gather(*(connector.put(path, content) for content in contents))

    wait(all_at_once())

    assert Path(path).read_bytes() in contents
    assert [place.name for place in tmp_path.iterdir()] == ["f"]


def test_a_failed_write_leaves_what_was_there(connector: LocalConnector, tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("old")

    with pytest.raises(StepFailed, match="can't write"):
        wait(connector.put(str(path), b"new", owner="nobody-at-all"))
    with pytest.raises(StepFailed, match="No such file or directory"):
        wait(connector.put(str(tmp_path / "no" / "f"), b"new"))

    assert path.read_text() == "old"
    assert [place.name for place in tmp_path.iterdir()] == ["f"]


def test_looks_without_following_links(connector: LocalConnector, tmp_path: Path) -> None:
    (tmp_path / "d").mkdir(mode=0o750)
    (tmp_path / "l").symlink_to("d")
    os.mkfifo(tmp_path / "p")

    def kind(name: str) -> str | None:
        found = wait(connector.stat(str(tmp_path / name)))
        return None if found is None else found.kind

    kinds = [kind(name) for name in ("d", "l", "p", "none", "d/none")]
    assert kinds == ["directory", "link", "other", None, None]


def test_says_what_cannot_be_read(connector: LocalConnector, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        wait(connector.get(str(tmp_path / "none")))
    with pytest.raises(StepFailed, match="Is a directory"):
        wait(connector.get(str(tmp_path)))
