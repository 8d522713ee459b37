"""Nodes that add nodes to the running graph."""

import asyncio
from collections.abc import Callable
from typing import Any

from tests.engine.stage import Actor, Stage, fails, of, play, raising, statuses, unreachable

from kubexm.common.roles import CONTROL_NODE
from kubexm.errors import StepFailed
from kubexm.plan import (
    ExecutionFragment,
    Join,
    Key,
    Pool,
    ResourceConstraints,
    chain,
    one_of,
    parallel,
    per_host,
)
from kubexm.plan.events import Expanded, NodeFinished
from kubexm.plan.fragment import replace
from kubexm.plan.records import RunState, UnitDone
from kubexm.runtime.contexts import StepContext
from kubexm.step.contract import Expander, Outcome, Reader, Verdict


def expander(make: Callable[[StepContext], ExecutionFragment | None]) -> Actor:
    return Actor(role=Expander, run=lambda ctx: Outcome(fragment=make(ctx)))


def always(fragment: ExecutionFragment) -> Actor:
    return expander(lambda ctx: fragment)


# The detection of a cloud provider.


def detect(ctx: StepContext) -> ExecutionFragment:
    """One of two ways to install what the host's cloud needs."""
    vendor = {"h1": "aws", "h2": "gcp"}[ctx.host.name]
    return per_host(play(f"install-{vendor}", ctx.host.name), play("enable", ctx.host.name))


def test_a_cloud_provider_is_detected_and_the_right_steps_are_added() -> None:
    stage = Stage(detect=expander(detect))
    hosts = ("h1", "h2")

    result = stage.run(chain(play("detect", *hosts), play("join", *hosts)))

    assert {node for node, _ in stage.started()} == {
        *("detect", "join"),
        *("detect/@h1/install-aws", "detect/@h1/enable"),
        *("detect/@h2/install-gcp", "detect/@h2/enable"),
    }
    assert result.status == "Success"


def test_an_added_node_runs_on_the_host_that_it_was_added_for() -> None:
    stage = Stage(detect=expander(detect))

    result = stage.run(play("detect", "h1", "h2"))

    assert list(result.node_results["detect/@h2/install-gcp"].host_results) == ["h2"]


# Order.


def test_what_follows_the_node_waits_for_what_it_added() -> None:
    stage = Stage(x=Actor(duration=5.0), e=always(play("x")))

    stage.run(chain(play("e"), play("b")))

    assert stage.at("start", "b", "h1") == 5.0


def test_along_a_lane_each_host_waits_for_its_own_additions() -> None:
    stage = Stage(e=expander(lambda ctx: play("x", ctx.host.name)))
    stage.actors["x"] = Actor(duration=lambda host: 9.0 if host == "h2" else 1.0)

    stage.run(per_host(play("e", "h1", "h2"), play("b", "h1", "h2")))

    assert [stage.at("start", "b", host) for host in ("h1", "h2")] == [1.0, 9.0]


def test_added_nodes_start_when_the_expander_is_done_and_keep_their_order() -> None:
    stage = Stage(e=always(per_host(play("x"), play("y"))), x=Actor(duration=2.0))
    stage.actors["e"].duration = 3.0

    stage.run(play("e"))

    assert stage.at("start", "e/@h1/x", "h1") == 3.0
    assert stage.at("start", "e/@h1/y", "h1") == 5.0


def test_joins_in_an_added_fragment_hold() -> None:
    stage = Stage(x=Actor(duration=4.0))
    stage.actors["e"] = always(
        chain(parallel(play("x"), play("y")), parallel(play("v"), play("w")))
    )

    stage.run(play("e"))

    assert stage.at("start", "e/@h1/w", "h1") == 4.0


def test_a_join_of_nothing_in_an_added_fragment_is_open() -> None:
    lonely = replace(play("x").nodes[0], after=("j",))
    stage = Stage(e=always(ExecutionFragment((lonely,), (Join("j"),))))

    assert stage.run(play("e")).counts == {"Success": 2}


def test_an_expander_that_adds_nothing_is_done() -> None:
    stage = Stage(e=expander(lambda ctx: None), f=always(ExecutionFragment()))

    assert stage.run(chain(play("e"), play("f"), play("b"))).counts == {"Success": 3}


def test_added_nodes_are_as_urgent_as_what_waits_for_them() -> None:
    stage = Stage(e=always(play("x")))
    late = chain(play("e"), play("b"), play("c"), play("d"))

    stage.run(parallel(late, play("y"), play("z")), parallelism=1, durations={"y": 2.0, "z": 2.0})

    assert stage.order()[:2] == ["e", "e/@h1/x"]


def test_an_expander_reads_and_changes_nothing_itself() -> None:
    stage = Stage(e=always(play("x")))

    result = stage.run(play("e"))

    assert (of(result, "e").status, of(result, "e").changed) == ("Success", False)
    assert stage.started("precheck") == [("e/@h1/x", "h1")]


# Failures.


def test_a_loss_that_holds_back_the_last_addition_ends_the_expander_once() -> None:
    lost = per_host(play("x", CONTROL_NODE), play("z", CONTROL_NODE))
    stage = Stage(e=always(parallel(lost, play("y"))), x=unreachable(CONTROL_NODE))

    result = stage.run(per_host(play("e"), play("b")), parallelism=1, on_failure="fail-fast")

    assert statuses(result) == {
        "e@h1": "Success",
        f"e/@h1/x@{CONTROL_NODE}": "Failed",
        f"e/@h1/z@{CONTROL_NODE}": "Skipped",
        "e/@h1/y@h1": "Skipped",
        "b@h1": "Skipped",
    }


def test_a_failure_among_what_was_added_holds_back_what_follows() -> None:
    stage = Stage(e=expander(lambda ctx: play("x", ctx.host.name)), x=fails("no", on=["h1"]))

    result = stage.run(
        chain(per_host(play("e", "h1", "h2"), play("b", "h1", "h2")), play("c", "h2"))
    )

    assert of(result, "b", "h1").message == "held back by e/@h1/x on h1: no"
    assert of(result, "b", "h2").status == "Success"
    assert of(result, "c", "h2").status == "Skipped"


def test_a_failure_among_what_was_added_holds_back_all_behind_a_barrier() -> None:
    stage = Stage(e=expander(lambda ctx: play("x", ctx.host.name)), x=fails("no", on=["h1"]))

    result = stage.run(chain(play("e", "h1", "h2"), play("b", "h2")))

    assert of(result, "b", "h2").message == "held back by e/@h1/x on h1: no"


def test_an_expander_that_fails_adds_nothing() -> None:
    stage = Stage(e=Actor(role=Expander, run=raising(StepFailed("no"))))

    result = stage.run(chain(play("e"), play("b")))

    assert set(result.node_results) == {"e", "b"}
    assert of(result, "b").message == "held back by e on h1: no"


def test_a_lost_host_takes_its_additions_along_and_others_go_on() -> None:
    stage = Stage(e=expander(lambda ctx: play("x", ctx.host.name)), x=unreachable("h1"))

    result = stage.run(chain(play("e", "h1", "h2"), play("b", "h1", "h2")))

    assert of(result, "b", "h1").status == "Skipped"
    assert of(result, "b", "h2").status == "Success"
    assert (result.status, result.degraded) == ("Success", True)


# What may be added.


def test_added_nodes_may_run_on_the_control_node() -> None:
    stage = Stage(e=always(per_host(play("x"), play("y", CONTROL_NODE))))

    assert ("e/@h1/y", CONTROL_NODE) in _started(stage, play("e"))


def _started(stage: Stage, plan: ExecutionFragment) -> list[tuple[str, str]]:
    stage.run(plan)
    return stage.started()


def test_an_expander_on_the_control_node_adds_to_the_control_node() -> None:
    stage = Stage(e=always(play("x", CONTROL_NODE)))

    result = stage.run(play("e", CONTROL_NODE))

    assert result.status == "Success"


def test_nodes_on_a_foreign_host_are_refused() -> None:
    stage = Stage(e=always(play("x", "h2")))

    result = stage.run(chain(play("e", "h1"), play("b", "h1", "h2")))

    assert of(result, "e").message == ("expands to nodes on h2, want `h1` or `control-node`")
    assert of(result, "b").status == "Skipped"


def test_a_fragment_that_contradicts_itself_is_the_expanders_failure() -> None:
    x, y = play("x").nodes[0], play("y").nodes[0]
    loop = ExecutionFragment((replace(x, after=("y",)), replace(y, after=("x",))))
    stage = Stage(e=always(loop))

    result = stage.run(play("e"))

    assert "wait for each other" in of(result, "e").message
    assert result.status == "Failed"


def test_two_nodes_of_one_name_are_the_expanders_failure() -> None:
    stage = Stage(e=always(parallel(play("x"), play("x"))))

    assert "two nodes have the id" in of(stage.run(play("e")), "e").message


def test_an_unknown_pool_is_the_expanders_failure() -> None:
    stage = Stage(e=always(play("x", limits=ResourceConstraints(pools=("nope",)))))

    assert "unknown pool `nope`" in of(stage.run(play("e")), "e").message


def test_pools_of_the_graph_guard_what_is_added() -> None:
    limits = ResourceConstraints(pools=("p",))
    stage = Stage(x=Actor(duration=2.0), y=Actor(duration=2.0))
    stage.actors["e"] = always(parallel(play("x", limits=limits), play("y", limits=limits)))

    stage.run(play("e"), graph={"pools": {"p": Pool(1)}})

    assert stage.end == 4.0


def test_a_step_that_can_not_be_loaded_is_the_expanders_failure() -> None:
    class Picky(Stage):
        def load(self, node: Any) -> Any:
            if node.id.endswith("/x"):
                raise StepFailed("no such kind")
            return super().load(node)

    stage = Picky(e=always(play("x")))

    result = stage.run(chain(play("e"), play("b")))

    assert of(result, "e").message == "no such kind"
    assert result.status == "Failed"


def test_what_is_no_fragment_at_all_is_the_expanders_failure() -> None:
    stage = Stage(e=always("nonsense"))  # type: ignore[arg-type]

    assert of(stage.run(play("e")), "e").status == "Failed"


def test_expansions_go_three_levels_deep_and_no_further() -> None:
    stage = Stage(e=always(play("e")))

    result = stage.run(play("e"))

    path = "e/@h1/e/@h1/e/@h1/e"
    assert of(result, path).message == "expands more than 3 levels deep"
    assert of(result, path.removesuffix("/@h1/e")).status == "Success"
    assert len(result.node_results) == 4


def test_a_value_that_somebody_leaves_already_may_not_be_added() -> None:
    stage = Stage(r=Actor(role=Reader, values={"v": 1}), x=Actor(role=Reader, values={"v": 2}))
    stage.actors["e"] = always(play("x", provides=[Key("v")]))

    result = stage.run(chain(play("r", provides=[Key("v")]), play("e")))

    assert "provides `v`, and so does `r`" in of(result, "e").message


def test_added_nodes_may_need_values_from_before_and_from_each_other() -> None:
    got: list[dict[str, Any]] = []
    stage = Stage(
        r=Actor(role=Reader, values={"v": 1}),
        x=Actor(role=Reader, values={"w": 2}),
        y=Actor(run=lambda ctx: got.append(dict(ctx.values))),
    )
    stage.actors["e"] = always(
        per_host(play("x", provides=[Key("w", "host")]), play("y", needs=["v", "w"]))
    )

    stage.run(chain(play("r", provides=[Key("v")]), play("e")))

    assert got == [{"v": 1, "w": 2}]


def test_an_added_node_that_needs_what_nobody_leaves_fails() -> None:
    stage = Stage(e=always(play("x", needs=["nope"])))

    result = stage.run(play("e"))

    assert "`nope`, which nothing provides" in of(result, "e/@h1/x").message


def test_a_step_that_is_no_expander_may_not_return_a_fragment() -> None:
    stage = Stage(a=Actor(run=lambda ctx: Outcome(fragment=play("x"))))

    assert of(stage.run(play("a")), "a").message == (
        "its run returned a fragment, but it is no Expander"
    )


# Everywhere else.


def test_fragment_and_result_are_one_record() -> None:
    stage = Stage(e=always(play("x")))

    stage.run(play("e"))

    first = stage.records[0]
    assert isinstance(first, UnitDone)
    assert first.node == "e"
    assert first.fragment is not None
    assert [node.id for node in first.fragment.nodes] == ["e/@h1/x"]


def test_on_resume_the_recorded_fragment_is_there_and_the_expander_does_not_run() -> None:
    first = Stage(e=always(play("x")))
    first.run(play("e"))
    second = Stage(e=always(play("other")))

    result = second.run(play("e"), state=RunState.fold(first.records[:1]))

    assert second.order() == ["e/@h1/x"]
    assert result.counts == {"Success": 2}


def test_a_dry_run_expands_too() -> None:
    stage = Stage(e=always(play("x")))

    result = stage.run(play("e"), dry_run=True)

    assert of(result, "e/@h1/x").sign == "+"
    assert of(result, "e").sign == "="
    assert stage.order() == ["e"]


def test_in_a_dry_run_additions_inherit_the_doubt_of_their_expander() -> None:
    stage = Stage(x=Actor(precheck=raising(StepFailed("no such file"))))
    stage.actors["e"] = always(play("x"))

    result = stage.run(chain(play("a"), play("e")), dry_run=True)

    assert (of(result, "e/@h1/x").sign, of(result, "e/@h1/x").message) == ("?", "no such file")


def test_an_expander_on_one_of_several_hosts_adds_for_the_one_it_is_bound_to() -> None:
    stage = Stage(e=expander(lambda ctx: play("x", ctx.host.name)))

    result = stage.run(chain(play("e", on=one_of(("h2", "h1"))), play("b")))

    assert statuses(result)["e/@h2/x@h2"] == "Success"


def test_what_was_added_is_told() -> None:
    stage = Stage(e=always(play("x")))

    stage.run(play("e"))

    (event,) = stage.told(Expanded)
    assert (event.node, event.host) == ("e", "h1")
    assert [event.node for event in stage.told(NodeFinished)] == ["e/@h1/x", "e"]


def test_satisfied_additions_let_what_follows_go_on() -> None:
    stage = Stage(e=always(play("x")), x=Actor(precheck=lambda ctx: Verdict.holds()))

    stage.run(chain(play("e"), play("b")))

    assert stage.order() == ["e", "b"]


def test_hosts_expand_at_the_same_time() -> None:
    stage = Stage(e=expander(lambda ctx: play("x", ctx.host.name)), x=Actor(duration=3.0))
    stage.actors["e"].run = _slow_expansion

    stage.run(play("e", *(f"h{number}" for number in range(10))))

    assert stage.end == 4.0


async def _slow_expansion(ctx: StepContext) -> Outcome:
    await asyncio.sleep(1.0)
    return Outcome(fragment=play("x", ctx.host.name))
