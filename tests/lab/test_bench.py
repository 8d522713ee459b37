"""What the bench of real clusters makes of its figures."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

from lab.testing import ROOT


@pytest.fixture
def create(monkeypatch: pytest.MonkeyPatch) -> Any:
    # It is run as a script, beside those that it takes things from.
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    return importlib.import_module("create")


@pytest.mark.parametrize(
    ("floor", "first", "again", "is_met", "told"),
    [
        (100.0, 112.0, 5.0, True, ("met", "met")),
        (100.0, 100.0, 10.0, True, ("met", "met")),
        (100.0, 116.0, 5.0, False, ("missed", "met")),
        (100.0, 112.0, 11.3, False, ("met", "missed")),
        (100.0, 99.0, 5.0, False, ("no floor: measure again, with nothing else running", "met")),
    ],
)
def test_every_goal_has_to_be_met_and_who_beats_the_floor_was_not_measured(
    create: Any, floor: float, first: float, again: float, is_met: bool, told: tuple[str, str]
) -> None:
    verdict = create.Verdict(floor, first, again)

    assert verdict.is_met is is_met
    assert (verdict.row[4], verdict.row[8]) == told
    assert len(verdict.row) == len(create.Verdict.HEADERS)
