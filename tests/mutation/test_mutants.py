"""A plan with one mistake does not go unnoticed on simulated hosts: some of all such plans.

`make mutants` plays every one of them, and wants 95 of 100 to be noticed. Of the few here no more
may survive than chance leaves of that, and each that does has to have a reason.
"""

from __future__ import annotations

import pytest
from tests.mutation.plays import PLAYS, SHARE, Play, most_by_chance, some
from tests.mutation.stage import Verdict
from tests.mutation.survivors import reason


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_step_that_is_missing_or_comes_too_early_is_noticed() -> None:
    played = [(play, verdict) for play in PLAYS for verdict in _verdicts(play)]
    survived = [(play.name, one.mutant) for play, one in played if not one.caught]

    assert len(survived) <= most_by_chance(len(played))
    assert [f"{play}: {mutant}" for play, mutant in survived if not reason(play, mutant)] == []


def _verdicts(play: Play) -> list[Verdict]:
    stage = play.stage()
    return [stage.judge(mutant) for mutant in some(play, stage.mutants(), SHARE)]
