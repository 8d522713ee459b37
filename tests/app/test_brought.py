"""Kubectl forgets a cluster that is no more, wherever it was let in."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.app.test_kubeconfig import names, of

from kubexm.app import brought, kubectl_config
from kubexm.app.kubeconfig import Config
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


def elsewhere(config: Config) -> Config:
    config["clusters"][0]["cluster"]["server"] = "https://10.9.9.9:6443"
    return config


def test_a_cluster_that_was_made_anew_elsewhere_takes_the_place_of_what_was_brought(
    home: Home, tmp_path: Path
) -> None:
    target = tmp_path / "config"
    brought.bring(home, "demo", of("demo"), target)

    brought.bring(home, "demo", elsewhere(of("demo", "T1RIRVI=")), target)

    assert "https://10.9.9.9:6443" in target.read_text()
    assert "https://10.0.0.1:6443" not in target.read_text()


def test_another_cluster_of_the_name_is_not_replaced(home: Home, tmp_path: Path) -> None:
    target = tmp_path / "config"
    kubectl_config.merge(elsewhere(of("demo", "T1RIRVI=")), target)
    before = target.read_text()

    with pytest.raises(InvalidInput) as refused:
        brought.bring(home, "demo", of("demo"), target)

    assert target.read_text() == before
    assert not home.brought.exists()
    assert "entries of another cluster that are called `demo` or `demo-admin`" in str(refused.value)
    assert "config:4:3: the cluster `demo` is at `https://10.9.9.9:6443`" in str(refused.value)
    assert "the context `demo` leads to `demo` as `demo-admin`" in str(refused.value)
    assert "name another file by KUBECONFIG" in refused.value.hint
    assert f"kubectl config --kubeconfig {target} delete-cluster demo" in refused.value.hint


@pytest.mark.parametrize("context", ["demo", "theirs"])
def test_a_context_of_another_cluster_is_not_led_elsewhere(
    home: Home, tmp_path: Path, context: str
) -> None:
    target = tmp_path / "config"
    config = elsewhere(of("demo", "T1RIRVI="))
    config["clusters"][0]["name"] = config["contexts"][0]["context"]["cluster"] = "other"
    config["contexts"][0]["name"] = context
    kubectl_config.merge(config, target)

    with pytest.raises(InvalidInput, match="entries of another cluster") as refused:
        brought.bring(home, "demo", of("demo"), target)

    assert f"the context `{context}` leads to `other` as `demo-admin`" in str(refused.value)


def test_further_ways_into_the_same_cluster_are_none_of_another(home: Home, tmp_path: Path) -> None:
    target = tmp_path / "config"
    brought.bring(home, "demo", of("demo"), target)
    more = elsewhere(of("demo"))
    more["clusters"][0]["name"] = more["contexts"][0]["context"]["cluster"] = "demo-inside"
    more["contexts"][0]["name"] = "demo-inside"
    kubectl_config.merge(more, target)

    brought.bring(home, "demo", of("demo"), target)

    assert sorted(names(target)["contexts"]) == ["demo", "demo-inside"]


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
