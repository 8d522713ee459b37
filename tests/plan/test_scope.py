"""Tasks, modules and pipelines: names, hooks and what undoes a scope."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import POOLS, fragments, host_names
from tests.unit_order import follows, units_of

from kubexm.errors import InvalidGraph
from kubexm.plan import (
    ExecutionFragment,
    ExecutionGraph,
    Hook,
    HookFragment,
    StepSpec,
    as_graph,
    build,
    chain,
    module,
    node,
    parallel,
    per_host,
    pipeline,
    scope,
    task,
)
from kubexm.plan.scope import MOMENTS, Moment

HOSTS = host_names(3)
STEP = StepSpec("command")


def step(name: str, *hosts: str) -> ExecutionFragment:
    fragment = node(name, STEP, on=hosts or HOSTS)
    assert fragment is not None
    return fragment


def hook(moment: Moment, name: str, *hosts: str, barrier: bool = False) -> HookFragment:
    return HookFragment(moment, step(name, *hosts), barrier)


def graph_of(fragment: ExecutionFragment | None) -> ExecutionGraph:
    assert fragment is not None
    return build(
        "p",
        fragment.nodes,
        joins=fragment.joins,
        hosts=HOSTS,
        compensations=fragment.compensations,
    )


@task("install")
def install(hosts: tuple[str, ...]) -> ExecutionFragment | None:
    """Install it."""
    return per_host(node("package", STEP, on=hosts), node("config", STEP, on=hosts))


@task("never")
def never() -> ExecutionFragment | None:
    """Is not required."""
    return None


@module("runtime")
def runtime(hosts: tuple[str, ...]) -> ExecutionFragment | None:
    """Everything containers need."""
    return chain(install(hosts), never(), step("check"))


@pipeline("create")
def create(hosts: tuple[str, ...]) -> ExecutionFragment | None:
    """Create it."""
    return chain(runtime(hosts))


def test_ids_are_the_paths_of_the_scopes() -> None:
    graph = graph_of(create(HOSTS))

    assert list(graph.nodes) == [
        "create/runtime/install/package",
        "create/runtime/install/config",
        "create/runtime/check",
    ]


def test_a_task_that_is_not_required_links_its_neighbours() -> None:
    graph = graph_of(create(HOSTS))

    assert graph.nodes["create/runtime/check"].after == ("create/runtime/install/config",)


def test_a_scope_without_nodes_is_not_required() -> None:
    assert install(()) is None
    assert scope("s", None, hooks=[hook("always", "report")]) is None
    assert scope("s", ExecutionFragment()) is None


def test_a_planner_without_a_docstring_is_refused() -> None:
    with pytest.raises(InvalidGraph, match="`bare` has no docstring, which its users read"):

        @task("bare")
        def bare() -> ExecutionFragment | None:
            return None


def test_a_planner_keeps_its_name_and_docstring() -> None:
    assert (install.__name__, install.__doc__) == ("install", "Install it.")


def test_hooks_stand_around_their_scope_in_order() -> None:
    hooks = [hook(moment, "x") for moment in reversed(MOMENTS)]
    graph = graph_of(scope("s", step("body"), hooks=hooks))

    before = follows(graph)

    order = sorted(graph.nodes, key=lambda id: len(before[id, "h1"]))
    assert order == [
        "s/@pre-1/x",
        "s/body",
        "s/@post-1/x",
        "s/@on-failure-1/x",
        "s/@always-1/x",
    ]


def test_a_hook_knows_its_scope_from_the_root() -> None:
    inner = scope("inner", step("body"), hooks=[hook("post", "x", barrier=True)])
    graph = graph_of(scope("outer", inner))

    assert graph.nodes["outer/inner/@post-1/x"].hook == Hook("outer/inner", "post", barrier=True)
    assert graph.nodes["outer/inner/body"].hook is None


@pytest.mark.parametrize("moment", MOMENTS)
def test_hooks_of_one_moment_run_in_the_order_they_are_given(moment: Moment) -> None:
    hooks = [hook(moment, name) for name in ("first", "second", "third")]
    graph = graph_of(scope("s", step("body"), hooks=hooks))

    before = follows(graph)

    for earlier, later in [("1/first", "2/second"), ("2/second", "3/third")]:
        unit = (f"s/@{moment}-{later}", "h1")
        assert (f"s/@{moment}-{earlier}", "h1") in before[unit]


def test_a_hook_is_same_host_unless_it_is_a_barrier() -> None:
    lane = graph_of(scope("s", step("body"), hooks=[hook("post", "x")]))
    barrier = graph_of(scope("s", step("body"), hooks=[hook("post", "x", barrier=True)]))

    assert lane.nodes["s/@post-1/x"].after_same_host == ("s/body",)
    assert barrier.nodes["s/@post-1/x"].after == ("s/body",)


def test_a_hook_on_other_hosts_follows_the_whole_scope() -> None:
    graph = graph_of(scope("s", step("body", "h1", "h2"), hooks=[hook("post", "x", "h3")]))

    before = follows(graph)

    assert before["s/@post-1/x", "h3"] == {("s/body", "h1"), ("s/body", "h2")}


def test_what_follows_a_scope_waits_for_its_hooks() -> None:
    body = scope("s", parallel(step("a"), step("b")), hooks=[hook("always", "x")])
    graph = graph_of(chain(body, step("next")))

    assert graph.nodes["next"].after == ("s/@always-1/x",)


some_hooks = st.builds(
    hook,
    st.sampled_from(MOMENTS),
    st.just("x"),
    st.sampled_from(HOSTS),
    barrier=st.booleans(),
)


@given(fragments(HOSTS, depth=2), st.lists(some_hooks, max_size=4))
def test_every_hook_is_ordered_against_the_whole_body_on_its_host(
    body: ExecutionFragment | None, hooks: list[HookFragment]
) -> None:
    whole = scope("s", body, hooks=hooks)
    if whole is None or body is None:
        return
    graph = build("p", whole.nodes, joins=whole.joins, hosts=HOSTS, pools=POOLS)
    before = follows(graph)
    inner = {(f"s/{id}", host) for item in body.nodes for id, host in units_of(item)}
    for item in graph:
        if item.hook is None or item.hook.scope != "s":
            continue
        (unit,) = units_of(item)
        mine = {other for other in inner if other[1] == unit[1] or item.hook.barrier}
        if item.hook.moment == "pre":
            assert all(unit in before[other] for other in mine)
        else:
            assert before[unit] >= mine


def test_what_undoes_a_scope_moves_with_it() -> None:
    undo = chain(step("stop"), step("wipe"))
    inner = scope("inner", step("body"), compensate=undo)

    graph = graph_of(scope("outer", inner))

    (item,) = graph.compensations
    assert item.scope == "outer/inner"
    assert [vertex.id for vertex in item.nodes] == [
        "outer/inner/@compensate/stop",
        "outer/inner/@compensate/wipe",
    ]
    assert item.nodes[1].after == ("outer/inner/@compensate/stop",)


class Nested:
    """A context that knows where it is, and notes which scopes are left."""

    def __init__(self, path: str = "", left: list[str] | None = None) -> None:
        self.path = path
        self.left = [] if left is None else left

    @contextmanager
    def within(self, scope: str, name: str) -> Iterator["Nested"]:
        inner = Nested(f"{self.path}/{scope}:{name}", self.left)
        yield inner
        self.left.append(inner.path)


def test_a_function_gets_the_context_of_its_scope_for_as_long_as_it_plans() -> None:
    seen: list[tuple[object, ...]] = []

    @task("t")
    def inner(number: int, *, ctx: Nested) -> ExecutionFragment | None:
        """Note it."""
        seen.append((number, ctx.path, list(ctx.left)))
        return step("a")

    @pipeline("p")
    def outer(ctx: Nested) -> ExecutionFragment | None:
        """Plan the task."""
        return inner(7, ctx=ctx)

    ctx = Nested()
    graph_of(outer(ctx))

    assert seen == [(7, "/pipeline:p/task:t", [])]
    assert ctx.left == ["/pipeline:p/task:t", "/pipeline:p"]


def test_the_graph_of_a_pipeline_of_which_nothing_is_required_is_empty() -> None:
    assert len(as_graph("p", never(), hosts=HOSTS)) == 0


def test_the_graph_of_a_pipeline_has_its_joins_and_compensations() -> None:
    body = chain(parallel(step("a"), step("b")), parallel(step("c"), step("d")))
    whole = scope("p", body, compensate=step("undo"))
    assert whole is not None

    graph = as_graph("p", whole, hosts=HOSTS)

    assert graph == graph_of(whole)
    assert graph.joins
    assert graph.compensations
