"""Kubectl forgets a cluster that is no more, wherever it was let in."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.app.test_kubeconfig import names, of

from kubexm.app import brought
from kubexm.common.paths import Home
from kubexm.errors import InvalidInput


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "state", tmp_path / "data", tmp_path / "cache")


def test_it_is_taken_out_of_every_file_it_was_brought_into(home: Home, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for path in (first, second, first):
        brought.bring(home, "demo", of("demo"), path)
    brought.bring(home, "other", of("other"), second)

    assert brought.take_out(home, "demo") == ([str(second), str(first)], [])

    assert names(first)["users"] == []
    assert names(second)["users"] == ["other-admin"]
    assert [path.name for path in home.brought.iterdir()] == ["other.json"]
    assert brought.take_out(home, "demo") == ([], [])


def test_a_path_is_noted_as_it_is_from_everywhere(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    brought.bring(home, "demo", of("demo"), Path("config"))
    monkeypatch.chdir("/")

    assert brought.take_out(home, "demo") == ([str(tmp_path / "config")], [])


def test_a_cluster_that_was_made_anew_is_known_by_its_new_authority(
    home: Home, tmp_path: Path
) -> None:
    target = tmp_path / "config"
    brought.bring(home, "demo", of("demo"), target)
    brought.bring(home, "demo", of("demo", "T1RIRVI="), target)

    assert brought.take_out(home, "demo") == ([str(target)], [])


def test_a_file_that_can_not_be_changed_is_told_of_and_others_are(
    home: Home, tmp_path: Path
) -> None:
    bad, good = tmp_path / "bad", tmp_path / "good"
    for path in (bad, good):
        brought.bring(home, "demo", of("demo"), path)
    bad.write_text("- no kubeconfig\n")

    gone, (problem,) = brought.take_out(home, "demo")

    assert gone == [str(good)]
    assert f"`demo` is still in `{bad}`: `{bad}` is no kubeconfig" in problem.message
    assert f"kubectl config --kubeconfig {bad} delete-user demo-admin" in problem.hint


def test_a_note_that_is_damaged_is_told_of(home: Home, tmp_path: Path) -> None:
    brought.bring(home, "demo", of("demo"), tmp_path / "config")
    note = home.brought / "demo.json"
    note.write_text("[")

    gone, (problem,) = brought.take_out(home, "demo")

    assert gone == []
    assert f"can't use `{note}`" in problem.message


def test_nothing_is_noted_of_a_file_that_takes_nothing(home: Home, tmp_path: Path) -> None:
    target = tmp_path / "config"
    target.write_text("- no kubeconfig\n")

    with pytest.raises(InvalidInput):
        brought.bring(home, "demo", of("demo"), target)

    assert not home.brought.exists()
