"""Files of a host through the runner; the answers of real programs are read right."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.runner.apart import HOME, work_apart
from tests.runner.hosts import on_this_machine

from kubexm.connector.base import Completed
from kubexm.errors import CommandFailed, StepFailed
from kubexm.runner import files, services
from kubexm.runner.host import Host


def test_stat_as_a_command_and_as_a_call_say_the_same(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("12345")
    (tmp_path / "file").chmod(0o4711)
    (tmp_path / "empty").touch()
    (tmp_path / "link").symlink_to("file")
    names = ("file", "empty", "link", ".", "none", "file/below")

    async def both(host: Host) -> None:
        for name in names:
            path = str(tmp_path / name)
            (answer,) = await host.batch((files.stat_command(host, path),))
            assert files.seen(answer) == await files.stat(host, path)

    on_this_machine(both)


@pytest.mark.parametrize("name", ["plain", "with space", "-dash", "new\nline", "back\\slash", "é"])
def test_odd_names_are_read_and_written(tmp_path: Path, name: str) -> None:
    path = str(tmp_path / name)

    async def scenario(host: Host) -> None:
        assert await files.checksum(host, path) is None
        assert await files.read(host, path) is None
        await files.write(host, path, b"data")
        digest = await files.checksum(host, path)
        assert digest == "3a6eb0790f39ac87c94f3856b2dd2c5d110e6811602261a9a923d3bb23adc8b7"
        await files.set_attributes(host, path, mode=0o600)
        await files.remove(host, path)
        assert not await files.exists(host, path)

    on_this_machine(scenario)


def test_what_cannot_be_read_is_no_empty_file(tmp_path: Path) -> None:
    async def scenario(host: Host) -> bytes:
        command = files.content_command(host, str(tmp_path), 100)
        (answer,) = await host.batch((command,))
        return files.content(answer, str(tmp_path))

    with pytest.raises(StepFailed, match="Is a directory"):
        on_this_machine(scenario)


def test_a_look_that_fails_is_not_taken_for_absence() -> None:
    denied = Completed(1, stderr=b"stat: cannot statx '/x': Permission denied\n")

    with pytest.raises(CommandFailed, match="Permission denied"):
        files.seen(denied)


def test_a_host_without_systemd_is_named(tmp_path: Path) -> None:
    silent = Completed(1, stderr=b"System has not been booted with systemd")

    with pytest.raises(CommandFailed) as caught:
        services.state_of(silent, "x")

    assert "systemd" in caught.value.hint


def test_a_full_disk_says_what_to_do(apart: int) -> None:
    async def work(host: Host) -> None:
        await host.run("mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", HOME)
        with pytest.raises(StepFailed, match="No space left on device") as written:
            await files.write(host, f"{HOME}/file", b"x" * 100_000)
        with pytest.raises(CommandFailed, match="No space left on device") as ran:
            await host.run("cp", "/bin/sh", f"{HOME}/sh")
        for caught in (written, ran):
            assert caught.value.hint.startswith("a disk of the host is full")

    work_apart(apart, work)


def test_a_read_only_disk_says_what_to_do(apart: int) -> None:
    async def work(host: Host) -> None:
        await host.run("mount", "-t", "tmpfs", "-o", "ro", "tmpfs", HOME)
        await files.make_directory(host, f"{HOME}/x")

    with pytest.raises(CommandFailed, match="Read-only file system") as caught:
        work_apart(apart, work)

    assert "mounted read-only" in caught.value.hint


def test_a_missing_directory_is_to_be_made(tmp_path: Path) -> None:
    async def work(host: Host) -> None:
        await files.write(host, f"{tmp_path}/none/file", b"")

    with pytest.raises(StepFailed) as caught:
        on_this_machine(work)

    assert caught.value.hint == f"make `{tmp_path}/none` with a `directory` step before it"
