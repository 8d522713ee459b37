"""The live view and the plain lines."""

from __future__ import annotations

import io
from typing import Any

import msgspec
import pytest
from rich.console import Console

from kubexm.cli.lines import line_of
from kubexm.cli.live import _failure_line, frame
from kubexm.cli.tally import Tally
from kubexm.plan import Cause, ExecutionGraph, StepSpec, build, chain, events, node, scope
from kubexm.plan.result import HostResult


def fleet(hosts: int, modules: int) -> ExecutionGraph:
    names = [f"host{number:05}" for number in range(hosts)]
    parts = [scope(f"m{at}", node("n", StepSpec("noop"), on=names)) for at in range(modules)]
    whole = scope("fleet", chain(*parts))
    assert whole is not None
    return build("fleet", whole.nodes, joins=whole.joins, hosts=tuple(names))


def drawn(tally: Tally, height: int, width: int = 80) -> str:
    console = Console(file=io.StringIO(), width=width, height=height)
    with console.capture() as capture:
        console.print(frame(tally, 20.0, height))
    return capture.get()


def under_way(hosts: int, modules: int = 3) -> Tally:
    tally = Tally.of(fleet(hosts, modules))
    tally.take(events.RunStarted(at=10.0, graph="fleet", units=hosts * modules))
    for number in range(hosts):
        tally.take(
            events.UnitStarted(at=11.0, node="fleet/m0/n", host=f"host{number:05}", attempt=1)
        )
    return tally


def finished(host: str, **result: Any) -> events.UnitFinished:
    done = HostResult(host, **result)
    return events.UnitFinished(at=12.0, node="fleet/m0/n", host=host, result=done)


@pytest.mark.parametrize("hosts", [10, 1000, 10_000])
def test_the_live_view_fits_the_screen_however_many_hosts_there_are(hosts: int) -> None:
    text = drawn(under_way(hosts), height=24)

    assert len(text.splitlines()) <= 24
    assert "m0" in text
    assert "m2" in text
    assert "host00000" in text


def test_the_live_view_fits_the_screen_however_many_modules_there_are() -> None:
    text = drawn(under_way(10, modules=60), height=24)

    assert len(text.splitlines()) <= 24
    assert "m0" in text


def test_the_live_view_counts_per_module_and_estimates_the_rest() -> None:
    tally = under_way(4)
    tally.take(finished("host00000", status="Success", changed=True))
    tally.take(finished("host00001", status="Failed", message="boom"))
    tally.take(finished("host00002", status="Skipped", skipped=True))

    text = drawn(tally, height=24)

    assert "3 of 12 units" in text
    assert "1 changed" in text
    assert "1 failed" in text
    assert "30.0 s to go" in text
    assert "3/4" in text
    assert [failure.host for failure in tally.failures] == ["host00001"]


def test_the_rest_is_estimated_by_what_its_nodes_took_before() -> None:
    tally = Tally.of(fleet(2, modules=3))
    tally.take(events.Expected(at=9.0, seconds={"fleet/m0/n": 5.0, "fleet/m1/n": 60.0}))
    tally.take(events.RunStarted(at=10.0, graph="fleet", units=6))
    tally.take(events.UnitStarted(at=10.0, node="fleet/m0/n", host="host00000", attempt=1))

    at_first = tally.remaining(12.5)
    tally.take(finished("host00000", status="Success", changed=True))
    tally.take(events.UnitStarted(at=20.0, node="fleet/m1/n", host="host00000", attempt=1))
    amid_the_long_one = tally.remaining(55.0)

    # 195 s in all, the unknown nodes at the mean of the others; done are 2.5 s, then 5 s and 35 s.
    assert at_first == pytest.approx(2.5 / 2.5 * (195 - 2.5))
    assert amid_the_long_one == pytest.approx(45 / 40 * (195 - 40))


def test_nothing_is_estimated_from_what_an_earlier_life_of_the_run_did() -> None:
    tally = under_way(4)
    for host in ("host00000", "host00001", "host00002"):
        done = finished(host, status="Success", changed=True)
        tally.take(msgspec.structs.replace(done, replayed=True))

    assert tally.remaining(20.0) is None


def test_nodes_that_are_added_on_the_way_are_counted() -> None:
    tally = under_way(2, modules=1)
    extra = node("more", StepSpec("noop"), on=["host00000"])
    assert extra is not None
    tally.take(events.Expanded(at=12.0, node="fleet/m0/n", host="host00000", fragment=extra))

    assert tally.units == 3


def test_plain_lines_tell_of_changes_failures_and_losses_and_not_of_what_is_satisfied() -> None:
    cause = Cause("n", "h", "gone\nfor good", "unreachable")
    lost = events.HostQuarantined(at=1.0, host="h", cause=cause)
    told = [
        line_of(finished("h", status="Success", changed=True)),
        line_of(finished("h", status="Failed", message="boom\nmore")),
        line_of(finished("h", status="Cancelled", changed=True)),
        line_of(finished("h", status="Skipped", skipped=True)),
        line_of(lost),
        line_of(events.ListenerLagged(at=1.0, dropped=7)),
    ]

    assert told == [
        "changed  h  fleet/m0/n",
        "failed   h  fleet/m0/n: boom",
        "stopped  h  fleet/m0/n",
        None,
        "lost     h: gone",
        "…        7 events not shown",
    ]


@pytest.mark.parametrize(
    ("failure", "word"), [("unreachable", "lost    "), ("failed", "quarantined")]
)
def test_a_host_that_can_be_reached_is_not_called_lost(failure: Any, word: str) -> None:
    cause = Cause("fleet/m0/n", "h1", "no", failure)

    assert line_of(events.HostQuarantined(at=1.0, host="h1", cause=cause)) == f"{word} h1: no"


def test_a_failure_with_a_known_cause_is_told_by_it() -> None:
    said = "`kubeadm init` exited with 1 (hint: see the log)\ncause: swap is on\nremedy: swapoff"
    failed = HostResult("h", "Failed", message=said)
    cause = Cause("n", "h", said)

    assert line_of(events.UnitFinished(0.0, "n", "h", failed)) == "failed   h  n: swap is on"
    assert line_of(events.HostQuarantined(0.0, "h", cause)) == "quarantined h: swap is on"
    assert _failure_line(cause).plain == "✗ h n: swap is on"
    turned = line_of(events.TurnedBack(0.0, cause, {"n": 1}))
    assert turned is not None
    assert turned.endswith("because of n on h: swap is on")


def test_what_was_changed_before_and_is_held_back_now_is_not_told_as_changed() -> None:
    held = HostResult("h1", "Skipped", changed=True, message="held back by n on h2: no")

    assert line_of(events.UnitFinished(at=1.0, node="m/n", host="h1", result=held)) == (
        "before   h1  m/n"
    )


def test_the_live_view_counts_what_a_rollback_undoes_and_leaves_by_unit() -> None:
    tally = under_way(3, modules=1)
    for host in ("host00000", "host00001"):
        tally.take(finished(host, status="Success", changed=True))
    tally.take(finished("host00002", status="Failed", message="boom"))
    cause = Cause("fleet/m0/n", "host00002", "boom")
    tally.take(events.TurnedBack(at=13.0, cause=cause, undo={"@undo/fleet/m0/n": 2}))
    undone = HostResult("host00000", "Success", changed=True)
    kept = HostResult("host00001", "Skipped", skipped=True)
    for result in (undone, kept):
        host = result.host_name
        tally.take(events.UnitFinished(at=14.0, node="@undo/fleet/m0/n", host=host, result=result))

    text = drawn(tally, height=24)

    assert list(tally.sections) == ["m0", "undo"]
    assert "2/2 1 undone  1 left" in text


def test_a_rollback_does_not_promise_to_undo_what_has_no_undo() -> None:
    undo = {"@undo/n": 1, "@undo/m": 1}
    turned = events.TurnedBack(at=1.0, cause=Cause("n", "h", "boom"), undo=undo)

    line = line_of(turned)

    assert line == "rolling back 2 nodes, as far as there is an undo, because of n on h: boom"


def test_the_live_view_says_that_a_run_is_stopping() -> None:
    tally = under_way(3)
    before = drawn(tally, height=24)

    tally.stopping = True

    assert "stopping" not in before
    assert "stopping: running steps get a moment; Ctrl-C again kills" in drawn(tally, height=24)
