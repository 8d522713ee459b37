"""Which unit waits for which, and who goes first."""

import pytest
from tests.engine.stage import Actor, Stage, fails, graph_of, of, play, statuses

from kubexm.plan import ExecutionFragment, Join, build, chain, link, parallel, per_host, rolling
from kubexm.plan.fragment import replace
from kubexm.plan.graph import ExecutionGraph


def without(graph: ExecutionGraph, *ids: str) -> ExecutionGraph:
    """The graph with some nodes left out: joins stand in their place."""
    joins = [Join(id, graph.nodes[id].after, graph.nodes[id].after_same_host) for id in ids]
    nodes = [node for node in graph if node.id not in ids]
    return build(graph.name, nodes, joins=[*graph.joins.values(), *joins], hosts=graph.hosts)


def slow_on(host: str, seconds: float = 5.0) -> Actor:
    return Actor(duration=lambda name: seconds if name == host else 1.0)


def test_a_barrier_opens_when_every_unit_of_the_other_node_is_final() -> None:
    stage = Stage(a=slow_on("h2"))

    stage.run(chain(play("a", "h1", "h2"), play("b", "h1", "h2")))

    assert [stage.at("start", "b", host) for host in ("h1", "h2")] == [5.0, 5.0]


def test_along_same_host_edges_each_host_goes_on_by_itself() -> None:
    stage = Stage(a=slow_on("h2"))

    stage.run(per_host(play("a", "h1", "h2"), play("b", "h1", "h2")))

    assert [stage.at("start", "b", host) for host in ("h1", "h2")] == [1.0, 5.0]


def test_nodes_without_edges_run_at_the_same_time() -> None:
    stage = Stage(a=Actor(duration=3.0), b=Actor(duration=3.0))

    stage.run(parallel(play("a"), play("b")))

    assert stage.end == 3.0


def test_rolling_starts_a_batch_when_the_whole_batch_before_is_through() -> None:
    stage = Stage(a=slow_on("h2"), b=Actor(duration=1.0))
    hosts = ("h1", "h2", "h3")

    stage.run(rolling(hosts, 2, lambda some: per_host(play("a", *some), play("b", *some))))

    assert stage.at("start", "batch-1/b", "h1") == 1.0
    assert stage.at("start", "batch-2/a", "h3") == 6.0


def test_a_same_host_edge_to_a_node_missing_on_this_host_leads_to_what_is_before_it() -> None:
    stage = Stage(a=slow_on("h2"))

    stage.run(per_host(play("a", "h1", "h2"), play("b", "h1"), play("c", "h1", "h2")))

    assert stage.at("start", "c", "h1") == 1.0
    assert stage.at("start", "c", "h2") == 5.0


def test_a_same_host_edge_over_a_missing_node_waits_at_the_barrier_before_that_node() -> None:
    stage = Stage(a=slow_on("h1"))
    lane = per_host(play("b", "h1"), play("c", "h1", "h2"))

    stage.run(chain(play("a", "h1"), lane))

    assert stage.at("start", "c", "h2") == 5.0


def test_a_hole_inherits_barriers_and_units_of_what_it_stands_for() -> None:
    """`c` on `h2` waits, in place of `b`, for all of `x` and for `a` on `h2` alone."""
    stage = Stage(a=slow_on("h1", 9.0), x=slow_on("h3", 4.0))
    whole = parallel(play("a", "h1", "h2"), play("x", "h3"), play("b", "h1"), play("c", "h1", "h2"))
    whole = link(whole, before="a", after="b", same_host=True)
    whole = link(whole, before="x", after="b")
    whole = link(whole, before="b", after="c", same_host=True)

    stage.run(whole)

    assert stage.at("start", "c", "h2") == 4.0
    assert stage.at("start", "c", "h1") == 9.0


def test_nobody_passes_a_barrier_early_where_the_other_node_is_missing() -> None:
    stage = Stage(y=slow_on("h2"))

    stage.run(chain(per_host(play("y", "h1", "h2"), play("a", "h1")), play("b", "h1", "h2")))

    assert {stage.at("start", "b", host) for host in ("h1", "h2")} == {5.0}


def test_a_barrier_behind_several_holes_waits_for_the_last_that_is_there() -> None:
    stage = Stage(y=slow_on("h3"))
    lane = per_host(play("y", "h1", "h2", "h3"), play("a", "h1", "h2"), play("b", "h1"))

    stage.run(chain(lane, play("c", "h1")))

    assert stage.at("start", "c", "h1") == 5.0


def test_a_failure_in_place_of_a_missing_node_holds_back_what_waits_at_the_barrier() -> None:
    stage = Stage(y=fails(on=["h2"]))

    result = stage.run(
        chain(per_host(play("y", "h1", "h2"), play("a", "h1")), play("b", "h1", "h2"))
    )

    assert of(result, "a").status == "Success"
    assert [of(result, "b", host).status for host in ("h1", "h2")] == ["Skipped", "Skipped"]


def test_many_exits_joined_to_many_entries_all_wait_for_all() -> None:
    stage = Stage(a=Actor(duration=2.0), b=Actor(duration=7.0))

    stage.run(chain(parallel(play("a"), play("b", "h2")), parallel(play("c", "h2"), play("d"))))

    assert stage.at("start", "c", "h2") == stage.at("start", "d", "h1") == 7.0


def test_a_node_left_out_hands_its_dependencies_on() -> None:
    stage = Stage(a=slow_on("h2"))
    graph = graph_of(chain(play("a", "h1", "h2"), play("b", "h1", "h2"), play("c", "h1")))

    result = stage.run(without(graph, "b"))

    assert stage.at("start", "c", "h1") == 5.0
    assert set(result.node_results) == {"a", "c"}


def test_a_left_out_entry_holds_nothing_up() -> None:
    stage = Stage()
    graph = graph_of(chain(play("a", "h1"), per_host(play("b", "h1"), play("c", "h1", "h2"))))

    result = stage.run(without(graph, "a", "b"))

    assert statuses(result) == {"c@h1": "Success", "c@h2": "Success"}


def test_a_join_of_nothing_is_open_from_the_start() -> None:
    stage = Stage()
    waiting = replace(play("a").nodes[0], after=("j",), after_same_host=("k",))

    result = stage.run(build("test", [waiting], joins=[Join("j"), Join("k")], hosts=("h1",)))

    assert result.status == "Success"


def test_the_longest_remaining_path_goes_first() -> None:
    stage = Stage()
    long = per_host(play("long"), play("long2"), play("long3"))

    stage.run(parallel(play("short"), long), parallelism=1)

    assert stage.order()[:2] == ["long", "long2"]


def test_durations_learned_from_earlier_runs_decide_the_order() -> None:
    stage = Stage()

    stage.run(
        parallel(per_host(play("a"), play("a2")), play("b")), parallelism=1, durations={"b": 10.0}
    )

    assert stage.order()[0] == "b"


def test_the_remaining_path_of_a_unit_is_that_of_its_own_host() -> None:
    """On `h2` nothing follows `a`, so that `h1` is the more urgent."""
    stage = Stage()

    stage.run(per_host(play("a", "h2", "h1"), play("b", "h1")), parallelism=1)

    assert stage.started()[0] == ("a", "h1")


def test_the_remaining_path_leads_through_holes() -> None:
    """On `h2`, `c` follows `a` directly: no shorter than what else there is."""
    stage = Stage()
    lane = per_host(play("a", "h1", "h2"), play("b", "h1"), play("c", "h2"))

    stage.run(parallel(play("x", "h3"), lane), parallelism=1, durations={"c": 9.0})

    assert stage.started()[0] == ("a", "h2")


def test_the_remaining_path_leads_through_barriers_and_joins() -> None:
    stage = Stage()
    gated = chain(parallel(play("a"), play("b")), parallel(play("c"), play("d")))

    stage.run(parallel(play("x"), play("y"), gated), parallelism=1, durations={"d": 5.0})

    assert set(stage.order()[:2]) == {"a", "b"}
    assert stage.order("c", "d", "x")[0] == "d"


def test_ready_units_start_at_once_even_if_a_more_urgent_one_waits_for_its_slot() -> None:
    stage = Stage(a=Actor(duration=5.0), b=Actor(duration=5.0), c=Actor(duration=1.0))
    urgent = per_host(play("a", "h1"), play("b", "h1"))

    stage.run(parallel(urgent, play("c", "h2")), per_host=1)

    assert stage.at("start", "c", "h2") == 0.0


@pytest.mark.slow
def test_a_chain_of_20000_units_runs_without_recursion() -> None:
    stage = Stage()
    nodes = [play(f"n{number}").nodes[0] for number in range(20_000)]
    linked = [replace(node, after=(nodes[at - 1].id,)) for at, node in enumerate(nodes) if at]
    whole = ExecutionFragment((nodes[0], *linked))

    result = stage.run(whole)

    assert result.counts == {"Success": 20_000}


@pytest.mark.slow
def test_a_lane_of_20000_satisfied_units_runs_without_recursion() -> None:
    stage = Stage()
    nodes = [play(f"n{number}").nodes[0] for number in range(20_000)]
    stage.actors = {node.id: Actor(probes=True) for node in nodes}
    linked = [
        replace(node, after_same_host=(nodes[at - 1].id,)) for at, node in enumerate(nodes) if at
    ]

    result = stage.run(ExecutionFragment((nodes[0], *linked)))

    assert result.counts == {"Skipped": 20_000}


def test_a_graph_without_nodes_has_nothing_to_do_and_says_so() -> None:
    stage = Stage()

    result = stage.run(build("empty", [], hosts=()))

    assert (result.status, result.message) == ("Success", "nothing to do: the graph is empty")


def test_a_run_in_which_all_was_as_wanted_says_so() -> None:
    stage = Stage(a=Actor(satisfied=True))

    result = stage.run(play("a", "h1", "h2"))

    assert result.message == "nothing to do: all 2 units are satisfied"
    assert result.node_results["a"].status == "Success"


def test_a_run_in_which_units_only_looked_says_so() -> None:
    actors = {"a": Actor(satisfied=True), "r": Actor(changed=False)}

    single = Stage(**actors).run(play("r"))
    both = Stage(**actors).run(chain(play("a"), play("r")))

    assert single.message == "nothing to do: the only unit changes nothing"
    assert both.message == "nothing to do: all 2 units change nothing"


def test_every_node_has_a_result_that_mirrors_the_graph() -> None:
    stage = Stage(a=Actor(duration=2.0))

    result = stage.run(chain(play("a", "h1", "h2"), play("b", "h1")))

    assert list(result.node_results) == ["a", "b"]
    unit = of(result, "a", "h2")
    assert (unit.host_name, unit.attempts, unit.changed) == ("h2", 1, True)
    assert unit.start_time is not None
    assert unit.end_time is not None
    assert (unit.end_time - unit.start_time).total_seconds() == 2.0
