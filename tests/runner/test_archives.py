"""Archives that real tars have made."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

import pytest
from tests.runner.hosts import complained, on_this_machine, scripted

from kubexm.errors import CommandFailed, StepFailed
from kubexm.runner import archives
from kubexm.runner.host import Host


@pytest.fixture(params=["", "--gzip", "--xz"])
def archive(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    tree = tmp_path / "tree" / "app-1.0"
    (tree / "bin").mkdir(parents=True)
    (tree / "bin" / "app").write_text("new")
    (tree / "bin" / "app").chmod(0o755)
    path = tmp_path / "app.tar"
    packed = [request.param] if request.param else []
    subprocess.run(["tar", *packed, "-cf", path, "-C", tree.parent, "app-1.0"], check=True)
    return path


def test_is_listed_and_unpacked_in_place_of_what_was_there(archive: Path, tmp_path: Path) -> None:
    target = tmp_path / "opt"
    target.mkdir()
    (target / "stale").touch()
    digest = hashlib.sha256(archive.read_bytes()).hexdigest().upper()

    async def work(host: Host) -> tuple[str, ...]:
        await archives.unpack(host, str(archive), str(target), digest=digest, strip=1)
        return await archives.names(host, str(archive))

    names = on_this_machine(work)

    assert names == ("app-1.0/", "app-1.0/bin/", "app-1.0/bin/app")
    assert [str(path.relative_to(target)) for path in target.rglob("*")] == ["bin", "bin/app"]
    assert (target / "bin/app").stat().st_mode & 0o777 == 0o755
    assert not list(tmp_path.glob("*.kubexm-*"))


def test_one_with_another_checksum_is_left_alone(archive: Path, tmp_path: Path) -> None:
    async def work(host: Host) -> None:
        await archives.unpack(host, str(archive), str(tmp_path / "opt"), digest="0" * 64)

    with pytest.raises(StepFailed, match="want 0000") as caught:
        on_this_machine(work)

    assert "fetch it again" in caught.value.hint
    assert not (tmp_path / "opt").exists()


def test_one_that_is_cut_short_leaves_what_was_there(archive: Path, tmp_path: Path) -> None:
    archive.write_bytes(archive.read_bytes()[:60])
    (tmp_path / "opt").mkdir()
    (tmp_path / "opt" / "kept").touch()

    async def work(host: Host) -> None:
        await archives.unpack(host, str(archive), str(tmp_path / "opt"))

    with pytest.raises(CommandFailed):
        on_this_machine(work)

    assert [path.name for path in (tmp_path / "opt").iterdir()] == ["kept"]
    assert not list(tmp_path.glob("*.kubexm-*"))


def test_one_that_is_not_there_is_named(tmp_path: Path) -> None:
    async def work(host: Host) -> None:
        await archives.unpack(host, f"{tmp_path}/none", f"{tmp_path}/opt", digest="0" * 64)

    with pytest.raises(StepFailed, match="there is no archive"):
        on_this_machine(work)


def test_a_host_that_can_not_read_its_kind_is_told_what_to_install() -> None:
    gone = complained("tar (child): xz: Cannot exec: No such file or directory\n", 2)

    with pytest.raises(StepFailed, match="the host has no `xz`") as caught:
        scripted(lambda host: archives.names(host, "/x.tar.xz"), {"tar": gone})

    assert "xz-utils" in caught.value.hint
