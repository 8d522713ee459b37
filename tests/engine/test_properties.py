"""Whatever the graph, the hosts, the faults and the limits: what holds in every run."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.model import CHANGING, Failures, Halt, Hooks, Tale, Undo, worst
from tests.engine.random_graphs import Fault, Scenario, scenarios
from tests.engine.slots import Slots
from tests.engine.world import Moment, act
from tests.examples import many
from tests.unit_order import units_of

from kubexm.engine.work import NOT_WANTED
from kubexm.plan.records import Unit, UnitDone
from kubexm.plan.result import FINAL


@many(500)
@given(scenarios())
def test_no_unit_starts_before_what_it_waits_for_is_final(scenario: Scenario) -> None:
    tale = Tale(act(scenario))

    for unit, start in tale.started.items():
        assert tale.may_start(unit) < start, unit


@many(300)
@given(scenarios())
def test_what_others_build_on_is_durable_before_it_is_final(scenario: Scenario) -> None:
    tale = Tale(act(scenario))

    for unit, result in tale.results.items():
        at = tale.recorded[unit]
        record: UnitDone = tale.trace[at].more
        if result.changed or result.status == "Failed" or record.values or record.fragment:
            number = sum(moment.what == "recorded" for moment in tale.trace[: at + 1])
            assert _committed(tale.trace, number) < tale.final[unit], unit


def _committed(trace: Iterable[Moment], number: int) -> float:
    commits = (at for at, m in enumerate(trace) if m.what == "durable" and m.more >= number)
    return next(commits, math.inf)


@many(500)
@given(scenarios())
def test_every_unit_ends_once_and_runs_no_more_than_it_may(scenario: Scenario) -> None:
    tale = Tale(act(scenario))

    for unit in tale.waits:
        assert sum(1 for _ in tale.of(unit, "final")) == 1
        starts = [moment.more for _, moment in tale.of(unit, "started")]
        entered = sum(1 for _ in tale.of(unit, "enter"))
        polls = sum(moment.more == "polls" for _, moment in tale.of(unit, "leave"))
        assert entered - polls <= len(starts)
        assert len(set(starts)) <= tale.nodes[unit[0]].retry.attempts
        if not tale.nodes[unit[0]].one_of:
            assert len(set(starts)) == len(list(_attempts(starts)))


def _attempts(starts: list[int]) -> Iterable[int]:
    """Attempts by number; one whose connection was lost begins anew under the same."""
    return (at for number, at in enumerate(starts) if not number or starts[number - 1] != at)


@many(500)
@given(scenarios())
def test_skipped_is_exactly_what_the_rules_say(scenario: Scenario) -> None:
    tale = Tale(act(scenario))
    failures = Failures(tale)

    for unit, result in tale.results.items():
        if unit in tale.started:
            _check_that_it_might_start(failures, unit)
        elif result.cause is not None:
            _check_that_it_had_to_wait(failures, unit)


def _check_that_it_might_start(failures: Failures, unit: Unit) -> None:
    # All that starts in the very instant of a failure may have been under way.
    tale = failures.tale
    instant = tale.trace[tale.started[unit]].at
    lost = failures.lost_host_of(unit, tale.started[unit])
    assert lost is None or failures.time(failures.lost[lost]) == instant
    if tale.nodes[unit[0]].hook is None:
        assert not failures.reaching(unit)
        assert failures.halt is None or failures.halt.time >= instant


def _held_before(tale: Tale, unit: Unit) -> Iterable[Unit]:
    return (other for other in tale.upstream[unit] if tale.results[other].cause is not None)


def _check_that_it_had_to_wait(failures: Failures, unit: Unit) -> None:
    tale = failures.tale
    cause = tale.results[unit].cause
    moment = tale.trace[tale.recorded[unit]].at
    allowed = {root for failed in failures.reaching(unit) for root in failures.roots(failed)}
    lost = failures.lost_host_of(unit, math.inf)
    if lost is not None and failures.time(failures.lost[lost]) <= moment:
        allowed |= {
            failures.lost_by[host] for host in tale.nodes[unit[0]].hosts if host in failures.lost_by
        }
    if failures.halt is not None and failures.halt.time <= moment:
        # Among what was held back since, one hands on to the next why it was.
        allowed |= failures.halt.causes.union(*map(failures.roots, _held_before(tale, unit)))
    assert cause is not None
    assert failures.culprit(cause) in allowed


@many(500)
@given(scenarios())
def test_no_limit_is_ever_exceeded(scenario: Scenario) -> None:
    slots = Slots(Tale(act(scenario)))

    for _ in slots.replay():
        slots.check_limits()


@many(500)
@given(scenarios())
def test_nothing_ready_waits_while_its_slots_are_free(scenario: Scenario) -> None:
    slots = Slots(Tale(act(scenario)))

    for moment, settled in slots.replay():
        if settled:
            for unit, place in slots.waiting(moment.at):
                assert slots.is_held_up(unit, place), f"{unit} could go on at {moment.at}"


def _looked_elsewhere(tale: Tale, unit: Unit, halt: Halt | None) -> bool:
    """Whether the run was halted when it had lost its host and wanted another."""
    return tale.nodes[unit[0]].one_of and halt is not None


def _was_not_made(tale: Tale, provider: Unit, halt: Halt | None) -> bool:
    """By its own failure, or because nothing new starts, not even for a hook."""
    result = tale.results[provider]
    failed = result.failure is not None or result.cause is not None
    return failed or (halt is not None and provider not in tale.started)


@many(500)
@given(scenarios())
def test_a_unit_that_runs_ends_as_its_own_life_has_it(scenario: Scenario) -> None:
    tale = Tale(act(scenario))
    halt = Failures(tale).halt

    for unit, result in tale.results.items():
        if unit not in tale.started:
            continue
        if result.status == "Cancelled":
            assert scenario.policy == "rollback"
            assert halt is not None
            assert halt.time <= tale.trace[tale.final[unit]].at
        elif result.cause is not None:
            assert _looked_elsewhere(tale, unit, halt) or any(
                _was_not_made(tale, other, halt) for other in tale.providers(unit)
            )
        elif (
            any(tale.results[other].satisfied for other in tale.providers(unit))
            and not result.satisfied
        ):
            assert result.failure in ("failed", tale.life(unit).end)
        else:
            life = tale.life(unit)
            assert (result.failure, result.satisfied, result.attempts) == (
                life.end,
                life.satisfied,
                life.attempts,
            )
            assert result.changed == (life.done and tale.role(unit) in CHANGING)


@many(500)
@given(scenarios())
def test_a_unit_that_never_started_was_held_back_or_had_nothing_to_do(scenario: Scenario) -> None:
    tale = Tale(act(scenario))

    for unit, result in tale.results.items():
        if unit in tale.started or result.cause is not None:
            continue
        assert result.satisfied
        node = tale.nodes[unit[0]]
        hook, role = node.hook, tale.role(unit)
        if role == "minter":
            assert not any(unit in tale.providers(o) and _needed(tale, o) for o in tale.started)
        elif node.when is not None and not scenario.script(*unit).wanted:
            assert hook is not None or result.message == NOT_WANTED
        elif role == "probed":
            assert scenario.script(*unit).made or hook is not None
        else:
            assert hook is not None


def _needed(tale: Tale, unit: Unit) -> bool:
    return any(True for _ in tale.of(unit, "enter"))


@many(500)
@given(scenarios(shapes=("algebra",)))
def test_hooks_run_exactly_when_their_scope_says(scenario: Scenario) -> None:
    tale = Tale(act(scenario))
    hooks = Hooks(Failures(tale))

    for unit, result in tale.results.items():
        hook = tale.nodes[unit[0]].hook
        if hook is None or hook.moment == "pre":
            continue
        if unit in tale.started:
            assert "due" in hooks.answers(unit, hook)
            assert not hooks.held_by_its_own(unit, hook)
        elif result.cause is None:
            assert hooks.answers(unit, hook) & {"not due", "not entered"}
        else:
            assert hooks.may_be_held_back(unit, hook)


@many(500)
@given(scenarios())
def test_statuses_and_counts_add_up(scenario: Scenario) -> None:
    story = act(scenario)
    tale, result = Tale(story), story.ended
    failures = Failures(tale)

    assert set(result.node_results) == set(tale.nodes)
    assert sum(result.counts.values()) == len(tale.waits)
    assert set(result.counts) <= FINAL
    for id, node in result.node_results.items():
        hosts = node.host_results
        assert set(hosts) == {tale.host(unit) for unit in units_of(tale.nodes[id])}
        assert node.status == worst(hosts.values(), failures.tolerated.get(id, set()))
        assert node.changed == any(host.changed for host in hosts.values())
        assert bool(node.message) >= (node.status in ("Failed", "Skipped"))
    assert set(result.quarantined) == set(failures.lost)
    failed = bool(failures.blocking or failures.halt or failures.all_lost)
    if result.rollback is None:
        assert result.status == ("Failed" if failed else "Success")
    else:
        assert failed
        undone = result.rollback.status == "Success"
        assert result.status == ("RolledBack" if undone else "Failed")
    assert result.degraded == (result.status == "Success" and bool(failures.lost))


@many(500)
@given(scenarios(policies=("rollback",), doomed=True))
def test_undo_takes_back_exactly_what_changed_in_reverse_order(scenario: Scenario) -> None:
    story = act(scenario)
    tale = Tale(story)
    undo = Undo(tale, Failures(tale))

    assert (story.ended.rollback is not None) == undo.is_due
    if not undo.is_due:
        return
    assert undo.begun <= undo.changed
    for unit in undo.changed:
        if unit in undo.begun:
            assert all(undo.ended(later) < undo.start(unit) for later in undo.after(unit))
        else:
            assert undo.is_stopped(unit)
        status = story.ended.node_results[unit[0]].host_results[tale.host(unit)].status
        assert (status == "RolledBack") == undo.succeeded(unit)


NO_LOSS: tuple[Fault, ...] = ("failed", "bug", "refused", "look", "hangs", "lost")


@pytest.mark.slow
@many(500)
@given(scenarios(roles=("expander",), faults=NO_LOSS, policies=("isolate",)))
def test_without_limits_a_run_takes_its_critical_path(scenario: Scenario) -> None:
    story = act(scenario.unlimited(), parallelism=10_000, per_host=10_000)
    tale = Tale(story)
    ends: dict[Unit, float] = {}

    def end(unit: Unit) -> float:
        if unit not in ends:
            parent = tale.parent.get(unit)
            before = [released(other) for other in tale.waits[unit] if other != parent]
            start = max([*before, end(parent) if parent is not None else 0.0])
            ends[unit] = start + (tale.life(unit).seconds if unit in tale.started else 0.0)
        return ends[unit]

    def released(unit: Unit) -> float:
        return max([end(unit), *(released(child) for child in tale.children.get(unit, ()))])

    for unit in tale.waits:
        assert tale.trace[tale.final[unit]].at == pytest.approx(end(unit))
    result = story.ended
    assert result.end_time is not None
    assert result.start_time is not None
    took = (result.end_time - result.start_time).total_seconds()
    assert took == pytest.approx(max(ends.values()), abs=1e-5)


@pytest.mark.slow
@many(500)
@given(
    scenarios(roles=("plain",), faults=(), policies=("isolate",)),
    st.lists(st.sampled_from((1.0, 2.0, 5.0)), min_size=10, max_size=10),
)
def test_of_what_could_start_the_longest_remaining_path_does(
    scenario: Scenario, expected: list[float]
) -> None:
    durations = dict(zip(scenario.graph.nodes, itertools.cycle(expected), strict=False))
    story = act(
        scenario.unlimited().rewritten(polls=0), durations=durations, parallelism=1, per_host=10_000
    )
    tale = Tale(story)
    followers: dict[Unit, set[Unit]] = {unit: set() for unit in tale.waits}
    for unit, before in tale.waits.items():
        for other in before:
            followers[other].add(unit)

    @cache
    def rest(unit: Unit) -> float:
        return durations[unit[0]] + max(map(rest, followers[unit]), default=0.0)

    for unit, start in tale.started.items():
        ready = [o for o, at in tale.started.items() if tale.may_start(o) < start <= at]
        assert rest(unit) == max(map(rest, ready))


@many(500)
@given(scenarios())
def test_a_dry_run_changes_nothing_and_knows_what_it_does_not_know(scenario: Scenario) -> None:
    world = act(scenario, dry_run=True)
    tale = Tale(world)

    assert world.world.remains.made == {u for u, script in scenario.scripts.items() if script.made}
    assert not world.world.remains.partly
    for moment in tale.trace:
        if moment.what == "enter":
            assert scenario.role(moment.node) in ("reader", "expander")
        assert moment.what != "undo"
    for unit, result in tale.results.items():
        before = [tale.results[u] for u in tale.upstream[unit] if tale.role(u) != "minter"]
        unsure = any(other.changed or other.sign == "?" for other in before)
        if result.sign == "?":
            assert unsure or any(tale.role(other) == "minter" for other in tale.providers(unit))
        if result.status == "Failed" and result.failure != "unreachable":
            assert not unsure
