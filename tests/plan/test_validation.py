"""A graph that exists is valid: every way to be wrong is found, with its place and a remedy."""

import math
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import dags, reaches
from tests.unit_order import follows, follows_on_host

from kubexm.errors import InvalidGraph, Problem
from kubexm.plan import (
    Allowance,
    Compensation,
    ExecutionGraph,
    ExecutionNode,
    HostGroup,
    Join,
    Key,
    Pool,
    ResourceConstraints,
    RetryPolicy,
    StepSpec,
    Tolerance,
    build,
)

HOSTS = ("n1", "n2", "n3")
replace = msgspec.structs.replace


def a_node(id: str, *hosts: str, spec: StepSpec | None = None, **settings: Any) -> ExecutionNode:
    return ExecutionNode(id, id, spec or StepSpec("command"), hosts or HOSTS, **settings)


def problems_of(*nodes: ExecutionNode, **rest: Any) -> list[Problem]:
    with pytest.raises(InvalidGraph) as caught:
        build("g", nodes, hosts=HOSTS, **rest)
    return list(caught.value.problems)


def texts(found: list[Problem]) -> list[str]:
    return [str(problem) for problem in found]


def test_an_unknown_dependency_is_found_with_the_nearest_name() -> None:
    (problem,) = problems_of(a_node("g/install"), a_node("g/start", after=("g/instal",)))

    assert str(problem) == "g/start: depends on `g/instal`, which does not exist"
    assert problem.hint == "did you mean `g/install`?"


def test_an_unknown_dependency_of_a_join_is_found() -> None:
    found = problems_of(a_node("g/a"), joins=[Join("g/j", (), ("g/b",))])

    assert texts(found) == ["g/j: depends on `g/b`, which does not exist"]


def test_a_duplicate_id_is_refused() -> None:
    with pytest.raises(InvalidGraph, match="two nodes have the id `g/a`") as caught:
        build("g", [a_node("g/a"), a_node("g/a")], hosts=HOSTS)

    assert caught.value.hint == "give one of them another name"


def test_add_node_refuses_a_duplicate_and_keeps_the_graph() -> None:
    graph = build("g", [a_node("g/a")], hosts=HOSTS)

    more = graph.add_node(a_node("g/b", after=("g/a",)))

    assert (len(graph), len(more)) == (1, 2)
    assert more.dependencies("g/b") == ("g/a",)
    with pytest.raises(InvalidGraph, match="two nodes have the id `g/a`"):
        graph.add_node(a_node("g/a"))


def test_merging_validates_the_whole() -> None:
    graph = build("g", [a_node("g/a")], hosts=HOSTS)

    with pytest.raises(InvalidGraph) as caught:
        graph.merge([a_node("g/b", "n9")], [Join("g/j", ("g/c",))])

    assert texts(list(caught.value.problems)) == [
        "g/b: unknown host `n9`",
        "g/j: depends on `g/c`, which does not exist",
    ]


def test_a_node_and_a_join_do_not_share_an_id() -> None:
    found = problems_of(a_node("g/a"), joins=[Join("g/a")])

    assert texts(found) == ["g/a: both a node and a join have this id"]


def test_an_unknown_host_is_found_with_the_nearest_name() -> None:
    (problem,) = problems_of(a_node("g/a", "n1", "n22"))

    assert str(problem) == "g/a: unknown host `n22`"
    assert problem.hint == "did you mean `n2`?"


def test_an_unknown_kind_is_found_when_the_kinds_are_known() -> None:
    graph = build("g", [a_node("g/a", spec=StepSpec("servce"))], hosts=HOSTS)

    with pytest.raises(InvalidGraph) as caught:
        graph.validate(["command", "service"])

    (problem,) = caught.value.problems
    assert str(problem) == "g/a: unknown step kind `servce`"
    assert problem.hint == "did you mean `service`?"


def test_a_cycle_is_named_with_its_whole_path() -> None:
    (problem,) = problems_of(
        a_node("g/before"),
        a_node("g/a", after=("g/before", "g/c")),
        a_node("g/b", after_same_host=("g/a",)),
        a_node("g/c", after=("g/j",)),
        a_node("g/after", after=("g/c",)),
        joins=[Join("g/j", ("g/b",))],
    )

    assert str(problem) == ("g/b: these nodes wait for each other: g/b → g/j → g/c → g/a → g/b")
    assert problem.hint == "remove one of these dependencies"


def test_a_node_that_waits_for_itself_is_a_cycle() -> None:
    found = problems_of(a_node("g/a", after=("g/a",)))

    assert texts(found) == ["g/a: these nodes wait for each other: g/a → g/a"]


@given(dags(values=False), st.data())
def test_the_path_of_a_cycle_follows_real_edges(graph: ExecutionGraph, data: st.DataObject) -> None:
    first, *_ = graph.nodes
    *_, last = graph.nodes
    closed = replace(graph.nodes[first], after=(*graph.nodes[first].after, last))
    try:
        replace(graph, nodes={**graph.nodes, first: closed})
    except InvalidGraph as error:
        path = error.problems[0].message.rpartition(": ")[2].split(" → ")
        edges = {id: graph.dependencies(id) for id in (*graph.nodes, *graph.joins)}
        edges[first] = (*edges[first], last)
        assert path[0] == path[-1]
        assert all(before in edges[after] for before, after in pairwise(path))
        assert len(set(path)) == len(path) - 1


@pytest.mark.parametrize(
    "id", ["", "/a", "a/", "a//b", "a b", "a\tb", "a\nb", "a\u00a0b", "a\u2028"]
)
def test_what_is_no_path_is_refused(id: str) -> None:
    (problem,) = problems_of(a_node(id))

    assert problem.message == f"`{id}` is not a path"
    assert problem.hint == "use words without blanks, joined by `/`"


def test_a_node_without_hosts_is_refused() -> None:
    node = ExecutionNode("g/a", "a", StepSpec("command"), ())

    (problem,) = problems_of(node)

    assert str(problem) == "g/a: runs on no host"
    assert problem.hint == "leave the node out or give it a host"


def test_a_host_named_twice_is_refused() -> None:
    assert texts(problems_of(a_node("g/a", "n1", "n1"))) == ["g/a: names a host twice"]


def test_a_same_host_edge_never_touches_a_one_of_node() -> None:
    said = "a same-host edge touches a `one_of` node, whose host is not known beforehand"

    to_it = problems_of(a_node("g/a", one_of=True), a_node("g/b", after_same_host=("g/a",)))
    from_it = problems_of(a_node("g/a"), a_node("g/b", one_of=True, after_same_host=("g/a",)))

    assert texts(to_it) == texts(from_it) == [f"g/b: {said}"]
    assert to_it[0].hint == "depend on it with a barrier"


SETTINGS: dict[str, tuple[dict[str, Any], str]] = {
    "pool": ({"limits": ResourceConstraints(pools=("p",))}, "unknown pool `p`"),
    "attempts": ({"retry": RetryPolicy(0)}, "0 attempts, want at least 1"),
    "delay": ({"retry": RetryPolicy(2, delay=-1)}, "a negative delay or jitter"),
    "jitter": ({"retry": RetryPolicy(2, jitter=-1)}, "a negative delay or jitter"),
    "timeout": ({"timeout": 0}, "timeout of 0 s, want more than 0"),
    "limit": ({"limits": ResourceConstraints(-1)}, "a negative limit"),
    "no number": ({"timeout": math.nan}, "timeout of nan s, want more than 0"),
    "no end": ({"timeout": math.inf}, "timeout of inf s, want a number"),
    "endless delay": ({"retry": RetryPolicy(2, delay=math.inf)}, "a delay or jitter without end"),
    "endless pause": (
        {"retry": RetryPolicy(2, max_delay=math.inf)},
        "a delay or jitter without end",
    ),
    "share": (
        {"tolerance": Tolerance(failed=Allowance(percent=101))},
        "tolerates 101 % of its hosts, want 0 to 100",
    ),
    "less than none": (
        {"tolerance": Tolerance(failed=Allowance(-1))},
        "tolerates -1 hosts, want 0 or more",
    ),
}


@pytest.mark.parametrize("case", SETTINGS)
def test_a_setting_without_sense_is_refused(case: str) -> None:
    settings, said = SETTINGS[case]

    assert texts(problems_of(a_node("g/a", **settings))) == [f"g/a: {said}"]


GRAPHS: dict[str, tuple[dict[str, Any], str]] = {
    "pool": ({"pools": {"p": Pool(0)}}, "pool `p` has size 0, want at least 1"),
    "minimum": (
        {"groups": (HostGroup("w", ("n1",), 2),)},
        "group `w` wants 2 of its 1 hosts",
    ),
    "member": ({"groups": (HostGroup("w", ("n4",)),)}, "group `w` has the unknown host `n4`"),
}


@pytest.mark.parametrize("case", GRAPHS)
def test_a_graph_without_sense_is_refused(case: str) -> None:
    rest, said = GRAPHS[case]

    assert texts(problems_of(a_node("g/a"), **rest)) == [said]


def test_a_graph_without_a_name_is_refused() -> None:
    with pytest.raises(InvalidGraph) as caught:
        build("", [a_node("g/a")], hosts=HOSTS)

    assert texts(list(caught.value.problems)) == ["the graph has no name"]


@pytest.mark.parametrize("hosts", [("n1", "n1"), ("",), ("*",), ("a/b",), ("a b",)])
def test_a_host_name_without_sense_is_refused(hosts: tuple[str, ...]) -> None:
    with pytest.raises(InvalidGraph, match="host"):
        build("g", [], hosts=hosts)


def test_all_problems_are_reported_at_once() -> None:
    found = problems_of(a_node("g/a", "n9", after=("g/x",), timeout=-1), a_node("g/b", "n8"))

    assert len(found) == 4


class TestValues:
    reader = StepSpec("fetch", provides=(Key("token"),))
    local = StepSpec("fetch", provides=(Key("disk", "host"),))
    user = StepSpec("command", needs=("token",))
    local_user = StepSpec("command", needs=("disk",))

    def test_a_value_that_nothing_provides_is_found(self) -> None:
        (problem,) = problems_of(a_node("g/a", spec=self.user))

        assert str(problem) == "g/a: needs the value `token`, which nothing before it provides"
        assert problem.hint == (
            "put a step that provides it before this one: behind a barrier for a value of the run, "
            "along same-host edges for one of each host"
        )

    def test_a_provider_must_come_before(self) -> None:
        first = a_node("g/a", "n1", spec=self.reader)

        assert problems_of(first, a_node("g/b", spec=self.user))
        build("g", [first, a_node("g/b", spec=self.user, after=("g/a",))], hosts=HOSTS)

    def test_a_value_of_the_run_crosses_barriers_and_joins(self) -> None:
        nodes = [
            a_node("g/a", "n1", spec=self.reader),
            a_node("g/b", "n2", after=("g/j",)),
            a_node("g/c", "n3", spec=self.user, after_same_host=("g/b",)),
        ]

        build("g", nodes, joins=[Join("g/j", ("g/a",))], hosts=HOSTS)

    def test_a_value_of_the_run_does_not_reach_other_hosts_along_same_host_edges(self) -> None:
        found = problems_of(
            a_node("g/a", "n1", spec=self.reader),
            a_node("g/b", spec=self.user, after_same_host=("g/a",)),
        )

        assert texts(found) == [
            (
                "g/b: needs the value `token` on n2, n3, and does not wait there for `g/a`, "
                "which provides it"
            )
        ]

    def test_a_value_of_a_host_travels_same_host_edges_and_holes(self) -> None:
        nodes = [
            a_node("g/a", spec=self.local),
            a_node("g/b", "n1", after_same_host=("g/a",)),
            a_node("g/c", spec=self.local_user, after_same_host=("g/b",)),
        ]

        build("g", nodes, hosts=HOSTS)

    def test_a_value_of_a_host_does_not_cross_a_barrier(self) -> None:
        found = problems_of(
            a_node("g/a", spec=self.local), a_node("g/b", spec=self.local_user, after=("g/a",))
        )

        assert texts(found) == [
            (
                "g/b: needs the value `disk`, which `g/a` provides for each host: such a value "
                "travels along same-host edges, and a barrier is in between"
            )
        ]
        assert found[0].hint == "link them per host, or give the value run scope"

    def test_a_value_that_is_provided_elsewhere_names_who_does_it(self) -> None:
        found = problems_of(a_node("g/a", spec=self.local), a_node("g/b", spec=self.local_user))

        assert texts(found) == [
            "g/b: needs the value `disk`, and does not wait for `g/a`, which provides it"
        ]

    def test_a_value_of_a_host_does_not_reach_one_of_several(self) -> None:
        found = problems_of(
            a_node("g/a", spec=self.local),
            a_node("g/b", spec=self.local_user, after=("g/a",), one_of=True),
        )

        assert texts(found) == [
            (
                "g/b: needs the value `disk`, which `g/a` provides for each host, and the host "
                "of a `one_of` node is not known beforehand"
            )
        ]

    def test_the_hosts_that_lack_a_value_are_named(self) -> None:
        found = problems_of(
            a_node("g/a", "n1", spec=self.local),
            a_node("g/b", spec=self.local_user, after_same_host=("g/a",)),
        )

        assert texts(found) == [
            "g/b: needs the value `disk` on n2, n3, where nothing provides it: `g/a` does on n1"
        ]

    def test_two_providers_of_one_value_are_refused(self) -> None:
        found = problems_of(
            a_node("g/a", "n1", spec=self.reader), a_node("g/b", "n1", spec=self.reader)
        )

        assert texts(found) == ["g/b: provides `token`, and so does `g/a`"]

    def test_two_providers_of_one_value_on_one_host_are_refused(self) -> None:
        found = problems_of(
            a_node("g/a", "n1", "n2", spec=self.local), a_node("g/b", "n2", "n3", spec=self.local)
        )

        assert texts(found) == ["g/b: provides `disk` on n2, and so does `g/a`"]

    def test_a_value_is_of_the_run_or_of_a_host_but_not_both(self) -> None:
        found = problems_of(
            a_node("g/a", "n1", spec=self.reader),
            a_node("g/b", "n2", spec=StepSpec("fetch", provides=(Key("token", "host"),))),
        )

        assert texts(found) == ["g/b: provides `token` for each host, and `g/a` for the whole run"]

    def test_a_value_of_the_run_has_one_producing_unit(self) -> None:
        (problem,) = problems_of(a_node("g/a", spec=self.reader))

        assert str(problem) == "g/a: provides `token` for the whole run from 3 hosts"
        assert problem.hint == (
            "run it on one host, on `one_of` them, or give the value host scope"
        )
        build("g", [a_node("g/a", spec=self.reader, one_of=True)], hosts=HOSTS)

    @given(dags(max_nodes=6))
    def test_a_need_is_accepted_exactly_if_its_provider_is_before_it_for_every_unit(
        self, graph: ExecutionGraph
    ) -> None:
        orders = {"run": follows(graph), "host": follows_on_host(graph)}
        for provider in graph:
            for key in provider.step.provides:
                for node in graph:
                    greedy = replace(node, step=replace(node.step, needs=(key.name,)))
                    ready = reaches(provider, key, node, orders[key.scope])
                    assert ready == accepted(graph, greedy)


def accepted(graph: ExecutionGraph, node: ExecutionNode) -> bool:
    try:
        replace(graph, nodes={**graph.nodes, node.id: node})
    except InvalidGraph:
        return False
    return True


class TestCompensations:
    def test_the_scope_must_have_nodes(self) -> None:
        undo = Compensation("g/b", (a_node("g/b/@compensate/x"),))

        found = problems_of(a_node("g/a"), compensations=(undo,))

        assert texts(found) == ["g/b: a compensation for a scope without nodes"]

    def test_its_nodes_follow_the_same_rules(self) -> None:
        nodes = (a_node("g/@compensate/x", "n9"), a_node("g/@compensate/y", after=("g/a",)))

        found = problems_of(a_node("g/a"), compensations=(Compensation("g", nodes),))

        assert texts(found) == [
            "g/@compensate/x: unknown host `n9`",
            "g/@compensate/y: depends on `g/a`, which does not exist",
        ]

    def test_its_nodes_may_need_what_the_run_provides_where_they_run(self) -> None:
        everywhere = StepSpec("command", provides=(Key("a"),))
        here = StepSpec("command", provides=(Key("b", scope="host"),))
        needy = StepSpec("command", needs=("a", "b", "c"))
        undo = [a_node(f"g/@compensate/{host}", host, spec=needy) for host in HOSTS[:2]]

        found = problems_of(
            a_node("g/x", HOSTS[0], spec=everywhere),
            a_node("g/y", HOSTS[0], spec=here),
            compensations=(Compensation("g", tuple(undo)),),
        )

        missing = [str(problem).partition(", which")[0] for problem in found]
        assert missing == [
            f"g/@compensate/{HOSTS[0]}: needs the value `c`",
            f"g/@compensate/{HOSTS[1]}: needs the value `b`",
            f"g/@compensate/{HOSTS[1]}: needs the value `c`",
        ]

    def test_no_id_is_used_twice(self) -> None:
        again = a_node("g/@compensate/x")

        found = problems_of(a_node("g/a"), compensations=(Compensation("g", (again, again)),))

        assert texts(found) == ["g/@compensate/x: two nodes have this id"]

    def test_a_scope_has_one_compensation(self) -> None:
        undo = [Compensation("g", (a_node(f"g/@compensate/{name}"),)) for name in "xy"]

        found = problems_of(a_node("g/a"), compensations=tuple(undo))

        assert texts(found) == ["g: two compensations for one scope"]


def test_a_hundred_thousand_units_are_valid() -> None:
    hosts = tuple(f"host-{number}" for number in range(100))
    nodes: list[ExecutionNode] = []
    for number in range(1000):
        lane = (nodes[-1].id,) if number % 10 else ()
        barrier = (nodes[-1].id,) if number and not number % 10 else ()
        id = f"g/{number // 10}/{number}"
        spec = StepSpec("command")
        nodes.append(ExecutionNode(id, id, spec, hosts, after=barrier, after_same_host=lane))

    graph = build("g", nodes, hosts=hosts)

    assert graph.unit_count == 100_000


def test_many_mistakes_are_reported_without_trying_every_spelling() -> None:
    nodes = [a_node(f"g/{number}", after=(f"g/x{number}",)) for number in range(3000)]

    assert len(problems_of(*nodes)) == 3000
