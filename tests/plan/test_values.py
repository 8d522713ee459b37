"""Values of hosts are carried across barriers by edges that make nobody wait for more."""

import msgspec
from hypothesis import given
from tests.strategies import dags
from tests.unit_order import Order, follows

from kubexm.plan import ExecutionGraph, ExecutionNode, Key, StepSpec, values
from kubexm.plan.validation import topological_order

replace = msgspec.structs.replace
LEAVES = StepSpec("fetch", provides=(Key("disk", "host"),))
NEEDS = StepSpec("command", needs=("disk",))


def carried(*nodes: ExecutionNode) -> dict[str, tuple[str, ...]]:
    """The same-host edges of nodes in order, afterwards."""
    known = {node.id: node for node in nodes}
    linked = values.carried(known, {}, list(known))
    return {id: node.after_same_host for id, node in linked.items() if node.after_same_host}


def test_an_edge_is_added_behind_a_barrier_and_only_to_the_first_of_a_host() -> None:
    assert carried(
        ExecutionNode("a", "a", LEAVES, ("n1", "n2")),
        ExecutionNode("b", "b", StepSpec("noop"), ("n1",), after=("a",)),
        ExecutionNode("c", "c", NEEDS, ("n1", "n2"), after=("b",)),
        ExecutionNode("d", "d", NEEDS, ("n1", "n2"), after_same_host=("c",)),
    ) == {"c": ("a",), "d": ("c",)}


def test_of_several_providers_those_count_that_share_a_host_with_who_needs_it() -> None:
    assert carried(
        ExecutionNode("a", "a", LEAVES, ("n1",)),
        ExecutionNode("b", "b", LEAVES, ("n2",), after=("a",)),
        ExecutionNode("c", "c", LEAVES, ("n3",), after=("b",)),
        ExecutionNode("d", "d", NEEDS, ("n1", "n2"), after=("c",)),
    ) == {"d": ("a", "b")}


def test_who_does_not_come_before_and_who_has_no_known_host_get_no_edge() -> None:
    assert not carried(
        ExecutionNode("a", "a", LEAVES, ("n1",)),
        ExecutionNode("b", "b", NEEDS, ("n1",)),
        ExecutionNode("c", "c", NEEDS, ("n1",), one_of=True, after=("a",)),
    )


@given(dags(max_nodes=6))
def test_what_is_before_on_all_hosts_is_reached_and_no_unit_waits_for_more(
    graph: ExecutionGraph,
) -> None:
    order, _ = topological_order(graph.nodes, graph.joins)
    before = follows(graph)
    for provider in graph:
        for node in graph:
            nodes = leaving_and_needing(graph, provider, node)

            linked = values.carried(nodes, graph.joins, order)

            wrong = list(values.problems(linked, graph.joins, order))
            assert (not wrong) == is_before(provider, node, before)
            assert follows(replace(graph, nodes=bare(linked))) == before


def leaving_and_needing(
    graph: ExecutionGraph, provider: ExecutionNode, node: ExecutionNode
) -> dict[str, ExecutionNode]:
    nodes = bare(graph.nodes)
    nodes[provider.id] = replace(nodes[provider.id], step=LEAVES)
    step = replace(nodes[node.id].step, needs=("disk",))
    nodes[node.id] = replace(nodes[node.id], step=step)
    return nodes


def bare(nodes: dict[str, ExecutionNode]) -> dict[str, ExecutionNode]:
    return {id: replace(node, step=StepSpec("noop")) for id, node in nodes.items()}


def is_before(provider: ExecutionNode, node: ExecutionNode, before: Order) -> bool:
    if provider.one_of or node.one_of:
        return False
    return all((provider.id, host) in before[node.id, host] for host in node.hosts)
