"""Steps that change nothing."""

from __future__ import annotations

import pytest
from tests.step.places import Place

from kubexm.errors import Refused
from kubexm.step.checks import Assert, Noop
from kubexm.step.contract import Outcome


def test_holds_or_refuses(place: Place) -> None:
    assert place.verdict(Assert(that=True, message="fine")).satisfied
    assert place.verdict(Assert(argv=("true",))).satisfied

    with pytest.raises(Refused, match=r"^does not hold: there are 2 cpus$") as caught:
        place.verdict(Assert(that=False, message="there are 2 cpus", hint="take a larger machine"))
    assert caught.value.hint == "take a larger machine"


def test_says_what_holds(place: Place) -> None:
    assert place.verdict(Assert(that=True, message="two cpus")).reason == "holds: two cpus"
    assert place.verdict(Assert(argv=("true",))).reason == "holds: `true` succeeds"


def test_refuses_with_what_the_command_said(place: Place) -> None:
    said = r"`cat /no/such` exited with 1: .*No such file"
    with pytest.raises(Refused, match=f"^{said}"):
        place.verdict(Assert(argv=("cat", "/no/such")))
    with pytest.raises(Refused, match=f"^does not hold: a file is there: {said}"):
        place.verdict(Assert(argv=("cat", "/no/such"), message="a file is there"))


def test_nothing_is_done(place: Place) -> None:
    before = place.state()

    assert place.verdict(Noop(satisfied=True)).satisfied
    assert not place.verdict(Noop()).satisfied
    assert place.run(Noop(text="hi")) == Outcome(message="hi")
    assert place.run(Noop(changed=False)) == Outcome(changed=False)
    assert place.state() == before
