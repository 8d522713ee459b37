"""Trouble with the disk during a run: a clear error, nothing half-written, and it can go on."""

from __future__ import annotations

import os
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.app.site import Process, Site

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]  # each starts a process or two

MACHINE = "control-node"


def mount(*arguments: str | Path) -> None:
    done = subprocess.run(["mount", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"can't mount here: {done.stderr.strip()}")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A real disk of four megabytes."""
    (tmp_path / "disk").mkdir()
    mount("-t", "tmpfs", "-o", "size=4m", "tmpfs", tmp_path / "disk")
    try:
        yield tmp_path / "disk"
    finally:
        subprocess.run(["umount", "--lazy", tmp_path / "disk"], check=True)


def fill(disk: Path) -> Path:
    """Leave no room on this disk; the file that takes it all."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file:
        for size in (1 << 16, 1 << 12, 1):
            try:
                while True:
                    file.write(bytes(size))
            except OSError:
                pass
    return filler


def write_pipeline(site: Site, place: Path) -> None:
    """Counts, waits for a sign, and then has much to say."""
    site.write(
        f"""
        runOnRoles: [control-node]
        modules:
          - name: base
            tasks:
              - name: work
                steps:
                  - {{name: directory, directory: {{path: {place}}}}}
                  - {{name: counted, command: {{argv: [sh, -c, "echo once >> {place}/count"]}}}}
                  - {{name: held, wait: {{command: [test, -e, {place}/go], interval: 0.02}}}}
                  - name: talks
                    forEach: [a, b, c, d, e, f, g, h]
                    command: {{argv: [printf, "${{item}}%050000d", "0"]}}
                  - {{name: last, file: {{path: {place}/last, content: done}}}}
        """
    )


def held(site: Site, process: Process) -> None:
    process.until(lambda: ("counted", MACHINE) in site.finished())


def test_run_on_a_disk_that_fills_up_stops_with_a_clear_error_and_goes_on_later(
    small_disk: Path, tmp_path: Path
) -> None:
    site, place = Site(small_disk, simulated=False), tmp_path / "made"
    write_pipeline(site, place)
    with site.running() as process:
        held(site, process)
        filler = fill(small_disk)
        (place / "go").touch()
        code, errors = process.ended()
    filler.unlink()
    known = site.finished()
    (run,) = site.stored()

    outcome = site.resume(run.id)

    assert code == 1
    assert "error: store-unusable" in errors
    assert "the disk is full" in errors
    assert "free some space" in errors
    assert "Traceback" not in errors
    assert run.interrupted
    assert ("counted", MACHINE) in known
    assert ("last", MACHINE) not in known
    assert outcome.result.status == "Success"
    assert (place / "count").read_text() == "once\n"
    assert (place / "last").read_text() == "done"


def interrupted(site: Site, place: Path) -> str:
    write_pipeline(site, place)
    with site.running() as process:
        held(site, process)
        process.kill()
    (place / "go").touch()
    return site.stored()[0].id


def refused(site: Site, task: str) -> str:
    """What a kubexm says that can't resume."""
    with site.process("task", "resume", task) as process:
        code, errors = process.ended()
    assert code == 1
    assert "Traceback" not in errors
    assert "\nhint: " in errors
    return errors


def test_run_in_a_read_only_store_is_not_resumed_and_nothing_is_done(
    local: Site, tmp_path: Path
) -> None:
    task = interrupted(local, tmp_path / "made")
    if os.getuid() != 0:
        pytest.skip("needs to mount")
    mount("--bind", local.root / "home", local.root / "home")
    try:
        mount("-o", "remount,bind,ro", local.root / "home")
        errors = refused(local, task)
    finally:
        subprocess.run(["umount", "--lazy", local.root / "home"], check=True)

    assert "error: store-unusable" in errors
    assert "read-only" in errors or "can't be opened" in errors
    assert not (tmp_path / "made/last").exists()
    assert local.resume(task).result.status == "Success"


def test_run_in_a_damaged_store_is_not_resumed_and_nothing_is_done(
    local: Site, tmp_path: Path
) -> None:
    task = interrupted(local, tmp_path / "made")
    with closing(sqlite3.connect(local.database)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    whole = local.database.read_bytes()
    damaged = whole[: 4 * 4096] + b"\x5a" * (len(whole) - 4 * 4096)
    local.database.write_bytes(damaged)

    errors = refused(local, task)
    untouched = local.database.read_bytes() == damaged
    local.database.write_bytes(whole)

    assert "the database is damaged" in errors
    assert str(local.database) in errors
    assert untouched
    assert not (tmp_path / "made/last").exists()
    assert local.resume(task).result.status == "Success"


def test_run_in_the_store_of_a_newer_kubexm_is_not_resumed(local: Site, tmp_path: Path) -> None:
    task = interrupted(local, tmp_path / "made")
    with closing(sqlite3.connect(local.database)) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
        connection.commit()

    errors = refused(local, task)

    assert "error: newer-schema" in errors
    assert "`9999`" in errors
    assert not (tmp_path / "made/last").exists()
