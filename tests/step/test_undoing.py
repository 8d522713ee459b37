"""The step that takes back another: what it goes by, and what is planned for it."""

from __future__ import annotations

import pytest
from tests.step.places import SimPlace

from kubexm.errors import InvalidInput
from kubexm.plan import StepSpec
from kubexm.step import registry
from kubexm.step.contract import Outcome
from kubexm.step.files import Directory, FilePresent
from kubexm.step.undoing import Undone, settling, undoing

MOTD = FilePresent("/etc/motd", content="ours\n")
NO_MOTD = Undone("file", {"path": "/etc/motd"})


def test_what_is_in_the_ledger_is_taken_back_and_then_forgotten(sim: SimPlace) -> None:
    before = sim.state()
    sim.run(MOTD)
    verdict = sim.verdict(NO_MOTD)

    sim.run(NO_MOTD)

    assert (verdict.satisfied, verdict.sign) == (False, "-")
    assert sim.state() == before
    assert sim.ledger.entries == {}
    assert sim.verdict(NO_MOTD).reason == "the ledger has nothing of it"


def test_what_may_not_be_touched_is_left_and_stays_in_the_ledger(sim: SimPlace) -> None:
    sim.run(Directory("/srv/app"))
    sim.write("theirs", b"")
    sim.ask("touch", "/srv/app/theirs")

    outcome = sim.run(Undone("directory", {"path": "/srv/app"}))

    expected = "left as it is: `/srv/app` is not empty"
    assert outcome == Outcome(changed=False, message=expected)
    assert [*sim.ledger.entries] == ["directory:/srv/app"]


def test_what_is_left_for_good_is_forgotten(sim: SimPlace) -> None:
    sim.run(Directory("/srv/app"))
    sim.ask("touch", "/srv/app/theirs")

    outcome = sim.run(Undone("directory", {"path": "/srv/app"}, for_good=True))

    expected = "left as it is: `/srv/app` is not empty"
    assert outcome == Outcome(changed=False, message=expected)
    assert sim.ledger.entries == {}


def test_a_step_without_an_undo_is_left(sim: SimPlace) -> None:
    verdict = sim.verdict(Undone("command", {"argv": ["true"]}))

    assert (verdict.satisfied, verdict.reason) == (True, "left as it is: the step has no undo")


def test_only_some_steps_have_something_to_go_on_with(sim: SimPlace) -> None:
    sim.run(MOTD)

    verdict = sim.verdict(Undone("file", {"path": "/etc/motd"}, settles=True))

    assert (verdict.satisfied, verdict.reason) == (True, "there is nothing to go on with")


def test_it_tells_what_it_undoes() -> None:
    assert NO_MOTD.summary() == "undo: file /etc/motd"
    service = Undone("service", {"unit": "nginx"}, settles=True)
    assert service.summary() == "settle: nginx running, enabled"


def test_what_must_not_be_interrupted_is_not_interrupted_on_the_way_back_either() -> None:
    assert Undone("kubeadm-init").uninterruptible
    assert not NO_MOTD.uninterruptible


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"step": "fiel"}, "unknown step kind `fiel`"),
        ({"step": "file", "params": {"path": "etc"}}, "want an absolute path"),
        ({"step": "file", "params": {"pth": "/etc"}}, "no parameter `pth`"),
    ],
)
def test_a_step_that_can_not_be_is_refused(params: dict[str, object], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        registry.load("undone", params)


def test_a_stored_step_becomes_one_that_undoes_it() -> None:
    stored = StepSpec("file", {"path": "/srv/${host.name}"}, needs=("v",), references=True)

    assert undoing(stored) == StepSpec(
        "undone", {"step": "file", "params": {"path": "/srv/${host.name}"}}, references=True
    )
    assert settling(stored) is None


def test_a_service_is_settled_too() -> None:
    stored = StepSpec("service", {"unit": "nginx"})

    found = settling(stored)

    assert found is not None
    assert registry.load(found.kind, found.params) == Undone(
        "service", {"unit": "nginx"}, settles=True
    )


def test_it_is_stored_as_any_other_step() -> None:
    spec = NO_MOTD.spec()

    assert spec.kind == "undone"
    assert registry.load(spec.kind, spec.params) == NO_MOTD
