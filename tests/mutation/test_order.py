"""The order of a plan by as few edges as possible, compared with the slow and obvious way."""

from __future__ import annotations

from hypothesis import given
from tests.mutation.mutants import put_off
from tests.mutation.order import Edge, Sketch
from tests.strategies import dags
from tests.unit_order import Order, follows, units_of

from kubexm.plan import ExecutionGraph, ExecutionNode, Join, StepSpec, build


def made(*vertices: ExecutionNode | Join) -> Sketch:
    nodes = [one for one in vertices if isinstance(one, ExecutionNode)]
    joins = [one for one in vertices if isinstance(one, Join)]
    return Sketch(build("p", nodes, joins=joins, hosts=("h1", "h2")))


def node(id: str, *after: str, lane: tuple[str, ...] = ()) -> ExecutionNode:
    return ExecutionNode(id, id, StepSpec("noop"), ("h1", "h2"), after=after, after_same_host=lane)


def without(order: Order, id: str) -> Order:
    return {
        unit: frozenset(other for other in before if other[0] != id)
        for unit, before in order.items()
        if unit[0] != id
    }


@given(dags(values=False))
def test_fewer_edges_make_the_same_order(graph: ExecutionGraph) -> None:
    assert follows(Sketch(graph).reduced().graph()) == follows(graph)


@given(dags(max_nodes=6, values=False))
def test_every_edge_that_is_left_is_needed(graph: ExecutionGraph) -> None:
    reduced = Sketch(graph).reduced()
    for edge in reduced.edges():
        fewer = reduced.copy()
        fewer.drop_edge(edge)
        assert follows(fewer.graph()) != follows(graph), edge


@given(dags(values=False))
def test_who_waits_for_a_node_that_is_left_out_waits_for_what_it_waited_for(
    graph: ExecutionGraph,
) -> None:
    for dropped in graph:
        sketch = Sketch(graph)
        sketch.drop_node(dropped.id)
        assert follows(sketch.graph()) == without(follows(graph), dropped.id)


@given(dags(values=False))
def test_a_node_that_is_put_off_comes_after_all_that_need_not_wait_for_it(
    graph: ExecutionGraph,
) -> None:
    sketch = Sketch(graph)
    for last in graph:
        order = follows(put_off(sketch, {last.id}).graph())
        behind = sketch.behind({last.id})
        for unit in units_of(last):
            assert order[unit] >= {other for other in order if other[0] not in behind}


@given(dags(values=False))
def test_nothing_is_lost_of_the_order_when_a_node_is_put_off(graph: ExecutionGraph) -> None:
    before = follows(graph)
    for last in graph:
        after = follows(put_off(Sketch(graph), {last.id}).graph())
        assert all(after[unit] >= before[unit] for unit in before)


def test_an_edge_that_says_what_others_say_goes() -> None:
    sketch = made(node("a"), node("b", "a"), node("c", "a", "b"))

    assert [str(edge) for edge in sketch.reduced().edges()] == ["a ⇒ b", "b ⇒ c"]


def test_a_barrier_stays_where_others_wait_on_the_same_host_only() -> None:
    sketch = made(node("a"), node("b", lane=("a",)), node("c", "a", lane=("b",)))

    assert Edge("a", "c", same_host=False) in sketch.reduced().edges()


def test_a_join_with_one_edge_on_a_side_is_plain_edges() -> None:
    join = Join("j", after_same_host=("a",))
    sketch = made(node("a"), join, node("b", lane=("j",)), node("c", "j"))

    assert [str(edge) for edge in sketch.reduced().edges()] == ["a → b", "a ⇒ c"]
