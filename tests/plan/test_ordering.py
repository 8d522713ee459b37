"""Order between named parts, said as a table."""

from __future__ import annotations

import pytest

from kubexm.errors import InvalidGraph
from kubexm.plan import ExecutionFragment, node, one_of, parallel, per_host
from kubexm.plan.fragment import prefixed
from kubexm.plan.graph import as_graph
from kubexm.plan.node import Key, StepSpec
from kubexm.plan.ordering import on_all, on_same, ordered, supplied
from kubexm.step.checks import Noop

HOSTS = ("a", "b")


def part(name: str, *steps: str) -> ExecutionFragment:
    made = prefixed(name, per_host(*(node(step, Noop(), on=HOSTS) for step in steps)))
    assert made is not None
    return made


def side_by_side(name: str, *steps: str) -> ExecutionFragment:
    made = prefixed(name, parallel(*(node(step, Noop(), on=HOSTS) for step in steps)))
    assert made is not None
    return made


def waits(fragment: ExecutionFragment, id: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    graph = as_graph("g", fragment, hosts=HOSTS)
    return graph.nodes[id].after, graph.nodes[id].after_same_host


def test_only_the_first_of_a_part_waits_for_the_last_of_another() -> None:
    whole = ordered(parallel(part("x", "1", "2"), part("y", "1", "2")), {"y": on_same("x")})
    assert waits(whole, "y/1") == ((), ("x/2",))
    assert waits(whole, "y/2") == ((), ("y/1",))


def test_a_part_waits_for_several_each_in_its_own_way() -> None:
    parts = parallel(part("x", "1"), part("y", "1"), part("z", "1"))
    whole = ordered(parts, {"z": (*on_same("x"), *on_all("y"))})
    assert waits(whole, "z/1") == (("y/1",), ("x/1",))


def test_many_ends_and_many_beginnings_share_one_join() -> None:
    whole = ordered(
        parallel(side_by_side("x", "1", "2"), side_by_side("y", "1", "2")), {"y": on_same("x")}
    )
    (join,) = whole.joins
    assert join.after_same_host == ("x/1", "x/2")
    assert waits(whole, "y/1") == waits(whole, "y/2") == ((), (join.id,))


def test_a_part_that_is_not_there_hands_on_what_it_waits_for() -> None:
    table = {"y": on_same("x"), "z": on_same("y"), "w": on_all("y")}
    whole = ordered(parallel(part("x", "1"), part("z", "1"), part("w", "1")), table)
    assert waits(whole, "z/1") == ((), ("x/1",))
    assert waits(whole, "w/1") == (("x/1",), ())


def test_a_step_inside_a_part_may_wait_by_itself() -> None:
    whole = ordered(parallel(part("x", "1"), part("y", "1", "2")), {"y/2": on_all("x")})
    assert waits(whole, "y/2") == (("x/1",), ("y/1",))
    assert waits(whole, "y/1") == ((), ())


def test_what_runs_on_one_of_many_hosts_waits_behind_a_barrier() -> None:
    single = node("s", Noop(), on=one_of(HOSTS))
    whole = ordered(parallel(part("x", "1"), single), {"s": on_same("x")})
    assert waits(whole, "s") == (("x/1",), ())


def test_parts_that_are_not_there_and_wait_for_each_other_are_refused() -> None:
    with pytest.raises(InvalidGraph, match="parts wait for each other"):
        ordered(part("z", "1"), {"x": on_all("y"), "y": on_all("x"), "z": on_all("x")})


def test_whoever_needs_a_value_of_the_run_waits_for_who_leaves_it() -> None:
    leaves = node("left", StepSpec("noop", provides=(Key("token"),)), on=["a"])
    needs = node("taken", StepSpec("noop", needs=("token", "unknown")), on=HOSTS)
    whole = supplied(parallel(leaves, needs, part("x", "1")))
    found = {one.id: one.after for one in whole.nodes}
    assert found == {"left": (), "taken": ("left",), "x/1": ()}


def test_a_part_that_is_waited_for_in_two_ways_is_waited_for_once_and_by_all() -> None:
    parts = parallel(side_by_side("x", "1", "2"), side_by_side("z", "1", "2"))
    table = {"y": on_all("x"), "z": (*on_same("x"), *on_all("y"))}
    whole = ordered(parts, table)
    (join,) = whole.joins
    assert join.after == ("x/1", "x/2")
    assert waits(whole, "z/1") == ((join.id,), ())
