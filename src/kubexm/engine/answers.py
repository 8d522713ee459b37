"""What steps answer, checked: one that answers nonsense has failed, and never succeeded."""

from __future__ import annotations

import math
from collections.abc import Mapping

from kubexm.errors import StepFailed
from kubexm.step.contract import NotYet, Outcome, Verdict

PLAIN_CHANGE = Outcome()


def checked_verdict(answer: object) -> Verdict:
    """What a precheck answered."""
    if isinstance(answer, Verdict):
        return answer
    raise StepFailed(f"its precheck answered {answer!r}, want a Verdict")


def checked_outcome(answer: object) -> Outcome | NotYet:
    """What `run` answered; None stands for a plain change."""
    if answer is None:
        return PLAIN_CHANGE
    if isinstance(answer, Outcome):
        return _checked_parts(answer)
    if isinstance(answer, NotYet):
        return _checked_delay(answer)
    raise StepFailed(f"its run returned {answer!r}, want an Outcome, a NotYet or None")


def _checked_parts(outcome: Outcome) -> Outcome:
    texts: tuple[object, ...] = (outcome.message, outcome.stdout, outcome.stderr)
    for text in texts:
        if not isinstance(text, str):
            raise StepFailed(f"its run returned {text!r} where a text is wanted")
    values: object = outcome.values
    if type(values) is not dict and not isinstance(values, Mapping):
        raise StepFailed(f"its run returned {values!r} as values, want a mapping")
    return outcome


def _checked_delay(answer: NotYet) -> NotYet:
    delay: object = answer.delay
    if not isinstance(delay, int | float) or not 0 <= delay < math.inf:
        raise StepFailed(f"its run wants to wait for {delay!r}, want a number of seconds")
    return answer
