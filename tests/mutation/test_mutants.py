"""A plan with one mistake does not go unnoticed on simulated hosts: some of all such plans.

`make mutants` plays every one of them.
"""

from __future__ import annotations

import pytest
from tests.mutation.plays import ENOUGH, PLAYS, SHARE, some
from tests.mutation.survivors import reason


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_step_that_is_missing_or_comes_too_early_is_noticed() -> None:
    stages = (play.stage() for play in PLAYS)
    verdicts = [stage.judge(one) for stage in stages for one in some(stage.mutants(), SHARE)]
    survived = [verdict.mutant for verdict in verdicts if not verdict.caught]

    assert len(verdicts) > len(PLAYS)
    assert [str(mutant) for mutant in survived if reason(mutant) is None] == []
    assert len(survived) <= len(verdicts) * (1 - ENOUGH)
