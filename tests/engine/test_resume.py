"""A run that dies anywhere and is resumed ends where an undisturbed one ends.

The process may die at every record: what it had recorded by then is kept, what it had begun and
not recorded has had its effect on the hosts fully, partly or not at all. Compared are runs whose
outcome does not hang on timing, since a second life keeps another time. Left out are thus

- hosts lost while something that neither precedes nor follows was under way on them, or while a
  hook that looks at them was: who is first decides;
- nodes of whose failures some are tolerated and some not: the first ones are;
- halts (fail-fast, a group that shrank too far) while unrelated units may run or not yet.

Under `rollback` nothing hangs on that in the end: whatever was done is undone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.engine.model import Failures, Tale
from tests.engine.random_graphs import Scenario, scenarios
from tests.engine.world import Remains, Story, act
from tests.examples import many

from kubexm.engine.undo import is_undo
from kubexm.engine.way_back import way_back
from kubexm.plan.node import ANY_HOST
from kubexm.plan.records import AnyRecord, Reopened, RunState, Turned, Unit
from kubexm.plan.result import HostResult

pytestmark = pytest.mark.slow
FATES = ("fully", "partly", "not at all")
seeds = st.integers(0, 2**16)


def outcome(result: HostResult) -> str:
    """What a unit came to; whether in this life or in an earlier one makes no difference."""
    if result.satisfied or result.status == "Success":
        return "done"
    return f"{result.status} {result.failure or ''}"


def outcomes(story: Story) -> dict[Unit, str]:
    return {
        (id, host): outcome(result)
        for id, node in story.ended.node_results.items()
        for host, result in node.host_results.items()
    }


def wherever(story: Story) -> dict[Unit, str]:
    """What came of each unit; a minter whose host rebooted may not be needed a second time."""
    nodes = Tale(story).nodes
    return {
        (id, ANY_HOST if nodes[id].one_of else host): end
        for (id, host), end in outcomes(story).items()
        if not is_undo(id)
    }


def values_of(records: Iterable[AnyRecord]) -> dict[tuple[str, str], object]:
    done = RunState.fold(records).done.values()
    return {(v.key, v.host): v.value for record in done for v in record.values}


def is_timeless(story: Story) -> bool:
    """Whether the run ends the same whatever is quick and whatever is slow."""
    tale = Tale(story)
    failures = Failures(tale)
    if not all(_lost_in_order(tale, host, failures.lost_by[host]) for host in failures.lost):
        return False
    if failures.halt is not None and not all(
        _is_ordered(tale, unit, cause) for unit in tale.waits for cause in failures.halt.causes
    ):
        return False
    return all(len({_is_tolerated(failures, u) for u in us}) == 1 for us in _failed(tale).values())


def _lost_in_order(tale: Tale, host: str, culprit: Unit) -> bool:
    if culprit[0] == "@connect":
        return True
    if tale.role(culprit) == "minter":
        return False  # it runs when it is asked for
    return all(
        _is_ordered(tale, unit, culprit)
        for unit in tale.waits
        if host in tale.nodes[unit[0]].hosts or tale.nodes[unit[0]].hook is not None
    )


def _is_ordered(tale: Tale, one: Unit, other: Unit) -> bool:
    if one == other or other[0] == "@connect":
        return True
    return one in tale.upstream[other] or other in tale.upstream[one]


def _failed(tale: Tale) -> dict[tuple[str, str], list[Unit]]:
    """Failed units by node and class."""
    found: dict[tuple[str, str], list[Unit]] = {}
    for unit, result in tale.results.items():
        if result.failure is not None:
            found.setdefault((unit[0], result.failure), []).append(unit)
    return found


def _is_tolerated(failures: Failures, unit: Unit) -> bool:
    return failures.tale.host(unit) in failures.tolerated.get(unit[0], ())


def fates(seed: int) -> Callable[[Unit], str]:
    """What became of each unit that was under way when the process died."""
    return lambda unit: FATES[(seed + sum(map(ord, "".join(unit)))) % len(FATES)]


def crash(story: Story, keep: int, seed: int, **how: Any) -> Story:
    """The same run again, until so many records are kept."""
    dead = act(story.scenario, keep=keep, fate=fates(seed), **how)
    assert dead.diary.crashed
    assert dead.diary.kept == story.diary.records[:keep]
    return dead


def resume(dead: Story, earlier: Iterable[AnyRecord] = (), **how: Any) -> Story:
    records = [*earlier, *dead.diary.kept]
    return act(dead.scenario, records=records, remains=dead.world.remains, **how)


def check_same_end(story: Story, last: Story, records: list[AnyRecord]) -> None:
    """The last life ended as the undisturbed one."""
    assert outcomes(last) == outcomes(story)
    assert last.world.remains.made == story.world.remains.made
    assert not last.world.remains.partly
    assert last.ended.status == story.ended.status
    assert last.ended.degraded == story.ended.degraded
    assert set(last.ended.quarantined) == set(story.ended.quarantined)
    assert values_of(story.diary.records).items() >= values_of(records).items()


def check_nothing_runs_again(last: Story, before: Iterable[AnyRecord]) -> None:
    """What came to an end is not begun again; a minter that nobody needed may be needed now."""
    done = RunState.fold(before).done
    finished = {
        (id, record.result.host_name)
        for (id, _), record in done.items()
        if record.result.status != "Cancelled"
        and (record.result.attempts or record.result.cause is not None)
    }
    for moment in last.trace:
        if moment.what in ("started", "enter", "undo"):
            id = f"@undo/{moment.node}" if moment.what == "undo" else moment.node
            assert (id, moment.host) not in finished


@many(60)
@given(scenarios(max_nodes=5, policies=("isolate", "fail-fast")), seeds)
def test_a_crash_at_any_record_changes_nothing_in_the_end(scenario: Scenario, seed: int) -> None:
    story = act(scenario)
    assume(is_timeless(story))

    for keep in range(len(story.diary.records)):
        dead = crash(story, keep, seed)
        last = resume(dead)
        check_same_end(story, last, [*dead.diary.kept, *last.diary.records])
        check_nothing_runs_again(last, dead.diary.kept)


@many(150)
@given(scenarios(policies=("isolate", "fail-fast")), seeds, seeds)
def test_so_do_two_crashes(scenario: Scenario, first: int, second: int) -> None:
    story = act(scenario)
    assume(is_timeless(story))
    dead = crash(story, first % len(story.diary.records), first)
    again = resume(dead, keep=second % 8, fate=fates(second))
    if again.result is not None:
        return
    before = [*dead.diary.kept, *again.diary.kept]

    last = resume(again, dead.diary.kept)

    check_same_end(story, last, [*before, *last.diary.records])
    check_nothing_runs_again(last, before)


@many(60)
@given(scenarios(max_nodes=5, policies=("rollback",), doomed=True), seeds)
def test_a_crash_at_any_record_leaves_nothing_that_is_not_undone(
    scenario: Scenario, seed: int
) -> None:
    scenario = scenario.untimed().rewritten(undo_fails=False)
    story = act(scenario)
    assume(Failures(Tale(story)).halt is not None)

    for keep in range(len(story.diary.records)):
        dead = crash(story, keep, seed)
        last = resume(dead)
        check_undone(last)
        check_nothing_runs_again(last, dead.diary.kept)
        if RunState.fold(dead.diary.kept).turned is not None:
            check_never_forward(last)


def check_undone(story: Story) -> None:
    """The hosts are as they were, but for hooks that run when all is undone."""
    before = {unit for unit, script in story.scenario.scripts.items() if script.made}
    assert {
        unit for unit in story.world.remains.made - before if "/@always-" not in unit[0]
    } == set()
    assert before <= story.world.remains.made
    assert not story.world.remains.partly
    assert story.ended.status in ("RolledBack", "Failed")


def check_never_forward(story: Story) -> None:
    for moment in story.trace:
        if moment.what == "started" and not is_undo(moment.node):
            assert "/@always-" in moment.node


@many(60)
@given(scenarios(max_nodes=5, policies=("rollback",), doomed=True), seeds)
def test_a_crash_on_the_way_back_ends_with_the_same_statuses(scenario: Scenario, seed: int) -> None:
    story = act(scenario)
    records = story.diary.records
    turned = next((at for at, record in enumerate(records, 1) if isinstance(record, Turned)), None)
    assume(turned is not None)
    assert turned is not None

    for keep in range(turned, len(records)):
        dead = crash(story, keep, seed)
        last = resume(dead)
        check_same_end(story, last, [*dead.diary.kept, *last.diary.records])


@many(150)
@given(scenarios(policies=("isolate",)), st.integers(0, 30))
def test_a_cancelled_run_can_be_resumed(scenario: Scenario, when: int) -> None:
    story = act(scenario)
    assume(is_timeless(story))

    stopped = act(scenario, cancel_at=float(when))
    last = act(scenario, records=stopped.diary.records, remains=stopped.world.remains)

    for moment in stopped.trace:
        assert moment.what != "started" or moment.at <= when
    check_same_end(story, last, [*stopped.diary.records, *last.diary.records])
    check_nothing_runs_again(last, stopped.diary.records)


@many(200)
@given(scenarios())
def test_a_retry_does_what_is_left_and_nothing_else(scenario: Scenario) -> None:
    scenario = scenario.untimed().rewritten(wanted=True)
    story = act(scenario)
    records = [*story.diary.records, reopening(story)]

    last = act(scenario.healthy(), records=records, remains=story.world.remains)

    assert last.ended.status == "Success"
    assert not last.ended.quarantined
    assert set(outcomes(last).values()) == {"done"}
    check_nothing_runs_again(last, records)


def reopening(story: Story) -> Reopened:
    """Everything but what succeeded and was not undone."""
    state = RunState.fold(story.diary.records)
    back = way_back(state, story.scenario.graph.compensations)
    kept = {
        unit
        for unit, done in state.done.items()
        if not (unit not in state.late and back.is_taken_back(unit[0], done.result.host_name))
        and not is_undo(unit[0])
        and (done.result.status == "Success" or done.result.satisfied)
    }
    return Reopened(at=story.world.remains.clock, units=tuple(sorted(state.done.keys() - kept)))


@many(60)
@given(
    scenarios(max_nodes=5, policies=("isolate",), roles=("reader", "minter"), ttl=10.0),
    seeds,
    st.sampled_from((0.0, 5.0, 1000.0)),
)
def test_values_that_expired_are_made_again_for_those_who_still_need_them(
    scenario: Scenario, seed: int, pause: float
) -> None:
    scenario = scenario.healthy()
    story = act(scenario)
    assume(is_timeless(story))

    for keep in range(len(story.diary.records)):
        dead = crash(story, keep, seed)
        dead.world.remains.clock += pause
        last = resume(dead)
        assert outcomes(last) == outcomes(story)
        assert last.world.remains.made == story.world.remains.made
        for moment in last.trace:
            if moment.what == "given":
                assert all(until >= dead.world.remains.clock for _, until in moment.more.values())


@many(60)
@given(scenarios(max_nodes=5, policies=("isolate",)), seeds)
def test_after_a_reboot_what_the_host_has_forgotten_is_done_again(
    scenario: Scenario, seed: int
) -> None:
    story = act(scenario, boots={})
    assume(is_timeless(story))
    hosts = sorted({host for node in scenario.graph for host in node.hosts})
    lost = hosts[seed % len(hosts)]

    for keep in range(len(story.diary.records)):
        dead = crash(story, keep, seed, boots={})
        forget(dead.world.remains, scenario, lost, seed)
        last = resume(dead, boots={lost: "second"})
        assert wherever(last) == wherever(story)
        assert made_where_it_counts(last) == made_where_it_counts(story)


def made_where_it_counts(story: Story) -> set[Unit]:
    """What is there on hosts that the run has not given up: the others are left alone."""
    lost = story.ended.quarantined
    return {unit for unit in story.world.remains.made if unit[1] not in lost}


def forget(remains: Remains, scenario: Scenario, host: str, seed: int) -> None:
    """Some of what this run did on the host is gone."""
    for unit in sorted(remains.made):
        ours = unit[1] == host and not scenario.script(*unit).made
        if ours and fates(seed)(unit) != "fully":
            remains.made.discard(unit)
