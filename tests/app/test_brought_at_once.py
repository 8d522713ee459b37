"""Notes of what kubectl was given are kept also when several bring and take at the same time."""

from __future__ import annotations

import fcntl
import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.app.test_kubeconfig import of

from kubexm.app import brought
from kubexm.common.paths import Home
from kubexm.errors import LockHeld


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "state", tmp_path / "data", tmp_path / "cache")


def test_each_file_is_noted_when_several_are_given_at_the_same_time(
    home: Home, tmp_path: Path
) -> None:
    paths = [tmp_path / f"config-{number}" for number in range(16)]

    with ThreadPoolExecutor(len(paths)) as pool:
        [*pool.map(lambda path: brought.bring(home, "demo", of("demo"), path), paths)]

    noted = json.loads((home.brought / "demo.json").read_text())
    assert sorted(one["path"] for one in noted) == sorted(map(str, paths))
    assert [path.name for path in home.brought.iterdir()] == ["demo.json"]


def test_who_waits_in_vain_for_another_says_so(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    brought.bring(home, "demo", of("demo"), tmp_path / "config")
    monkeypatch.setattr(brought, "_PATIENCE", 0.1)
    handle = os.open(home.brought, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)

    with pytest.raises(LockHeld, match="another kubexm"):
        brought.bring(home, "demo", of("demo"), tmp_path / "config")
    gone, (problem,) = brought.take_out(home, "demo")
    os.close(handle)

    assert (gone, "another kubexm" in problem.message) == ([], True)
    assert brought.take_out(home, "demo") == ([str(tmp_path / "config")], [])
