"""Where kubexm keeps its files: where the user says, or where the XDG specification does."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubexm.common.paths import Home

XDG = ("XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME")
DEFAULT = Home(
    Path("/srv/ada/.local/state/kubexm"),
    Path("/srv/ada/.local/share/kubexm"),
    Path("/srv/ada/.cache/kubexm"),
)


def found(monkeypatch: pytest.MonkeyPatch, **environment: str) -> Home:
    """The directories of Ada in this environment."""
    for variable in ("KUBEXM_HOME", *XDG):
        monkeypatch.delenv(variable, raising=False)
    for variable, value in {"HOME": "/srv/ada", **environment}.items():
        monkeypatch.setenv(variable, value)
    return Home.from_environment()


def test_without_a_word_all_lies_in_the_users_home(monkeypatch: pytest.MonkeyPatch) -> None:
    assert found(monkeypatch) == DEFAULT


@pytest.mark.parametrize(
    ("variable", "part"), [*zip(XDG, ("state", "data", "cache"), strict=True)], ids=XDG
)
def test_each_base_directory_moves_what_belongs_there_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch, variable: str, part: str
) -> None:
    home = found(monkeypatch, **{variable: "/elsewhere"})

    for name in ("state", "data", "cache"):
        wanted = Path("/elsewhere/kubexm") if name == part else getattr(DEFAULT, name)
        assert getattr(home, name) == wanted


@pytest.mark.parametrize("value", ["", "relative", "~/relative", "./relative"])
def test_a_base_directory_that_is_not_absolute_is_ignored(
    monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    assert found(monkeypatch, **dict.fromkeys(XDG, value)) == DEFAULT


def test_a_home_of_its_own_holds_all_whatever_the_base_directories_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    home = found(monkeypatch, KUBEXM_HOME="~/k", **dict.fromkeys(XDG, "/elsewhere"))

    root = Path("/srv/ada/k")
    assert home == Home(root / "state", root / "data", root / "cache")
