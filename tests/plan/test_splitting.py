"""One part as several, by the hosts it runs on."""

from __future__ import annotations

from kubexm.plan import ExecutionFragment, node, one_of, parallel, per_host
from kubexm.plan.fragment import prefixed
from kubexm.plan.graph import as_graph
from kubexm.plan.splitting import split
from kubexm.step.checks import Noop

_GROUPS = {"core": frozenset({"m"}), "workers": frozenset({"v", "w"})}
_ALL = ("m", "v", "w")


def part(*fragments: ExecutionFragment | None) -> ExecutionFragment:
    whole = prefixed("x", per_host(*fragments))
    assert whole is not None
    return split(whole, "x", _GROUPS)


def test_every_group_has_nodes_of_its_own_in_the_same_order() -> None:
    found = part(node("1", Noop(), on=_ALL), node("2", Noop(), on=_ALL))
    assert {one.id: (one.hosts, one.after_same_host) for one in found.nodes} == {
        "x/core/1": (("m",), ()),
        "x/core/2": (("m",), ("x/core/1",)),
        "x/workers/1": (("v", "w"), ()),
        "x/workers/2": (("v", "w"), ("x/workers/1",)),
    }


def test_what_a_group_has_not_is_replaced_by_what_stands_before_it() -> None:
    found = part(
        node("1", Noop(), on=_ALL), node("2", Noop(), on=("m",)), node("3", Noop(), on=_ALL)
    )
    waits = {one.id: one.after_same_host for one in found.nodes}
    assert waits["x/core/3"] == ("x/core/2",)
    assert waits["x/workers/3"] == ("x/workers/1",)


def test_a_node_on_one_of_several_hosts_is_there_once() -> None:
    found = part(node("1", Noop(), on=one_of(("m",))), node("2", Noop(), on=_ALL))
    assert [one.id for one in found.nodes] == ["x/core/1", "x/core/2", "x/workers/2"]


def test_joins_come_with_each_group_and_the_graph_is_sound() -> None:
    found = part(
        parallel(node("1", Noop(), on=_ALL), node("2", Noop(), on=_ALL)),
        parallel(node("3", Noop(), on=_ALL), node("4", Noop(), on=("v", "w"))),
    )
    graph = as_graph("g", found, hosts=_ALL)
    assert {join.split("/")[1] for join in graph.joins} == {"core", "workers"}
    assert graph.unit_count == 11
