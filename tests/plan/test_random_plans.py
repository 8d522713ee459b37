"""The strategies that other property tests stand on draw what they promise."""

from collections.abc import Callable

import pytest
from hypothesis import Phase, find, given, settings
from tests.strategies import graphs
from tests.unit_order import units

from kubexm.plan import ExecutionGraph

TRAITS: dict[str, Callable[[ExecutionGraph], bool]] = {
    "a join": lambda graph: bool(graph.joins),
    "a hook": lambda graph: any(node.hook for node in graph),
    "a one_of node": lambda graph: any(node.one_of for node in graph),
    "a compensation": lambda graph: bool(graph.compensations),
    "a barrier": lambda graph: any(node.after for node in graph),
    "a value that is needed": lambda graph: any(node.step.needs for node in graph),
    "a hole": lambda graph: any(
        set(node.hosts) - set(graph.nodes[id].hosts)
        for node in graph
        for id in node.after_same_host
        if id in graph.nodes
    ),
}


@given(graphs())
def test_random_graphs_are_valid_and_count_their_units(graph: ExecutionGraph) -> None:
    graph.validate()

    assert graph.unit_count == len(units(graph))


@pytest.mark.parametrize("trait", TRAITS)
def test_random_graphs_have(trait: str) -> None:
    unshrunk = settings(phases=[Phase.generate])

    assert TRAITS[trait](find(graphs(), TRAITS[trait], settings=unshrunk))
