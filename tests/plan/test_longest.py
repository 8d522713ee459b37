"""The longest chain of a graph."""

from __future__ import annotations

from kubexm.plan import chain, node, parallel
from kubexm.plan.graph import ExecutionGraph, as_graph
from kubexm.plan.longest import longest_chain
from kubexm.step.checks import Noop

_HOSTS = ("a", "b")


def graph() -> ExecutionGraph:
    left = chain(*(node(name, Noop(), on=_HOSTS) for name in ("l1", "l2", "l3")))
    right = chain(*(node(name, Noop(), on=_HOSTS) for name in ("r1", "r2")))
    ends = parallel(*(node(name, Noop(), on=_HOSTS) for name in ("e1", "e2")))
    return as_graph("g", chain(parallel(left, right), ends), hosts=_HOSTS)


def test_without_figures_the_chain_with_most_nodes_is_the_longest() -> None:
    assert longest_chain(graph()) == ("l1", "l2", "l3", "e1")


def test_with_figures_the_chain_that_took_longest_is() -> None:
    seconds = {"l1": 1.0, "l2": 1.0, "l3": 1.0, "r1": 9.0, "r2": 1.0, "e1": 1.0, "e2": 2.0}
    assert longest_chain(graph(), seconds) == ("r1", "r2", "e2")


def test_an_empty_graph_has_none() -> None:
    assert longest_chain(as_graph("g", None)) == ()
