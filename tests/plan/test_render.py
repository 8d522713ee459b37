"""Pictures of graphs: what people and programs are shown, compared with golden files."""

import os
import xml.etree.ElementTree as ET
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from tests.plan.sample import create_cluster, describe
from tests.strategies import graphs
from tests.unit_order import follows

from kubexm.plan import (
    ExecutionFragment,
    ExecutionGraph,
    ExecutionNode,
    StepSpec,
    build,
    chain,
    codec,
    link,
    node,
    one_of,
    parallel,
    per_host,
    prefixed,
    scope,
)
from kubexm.plan.layout import Box, arrange
from kubexm.plan.outline import Edge, edges, hosts, kind_and_params, one_line, sources
from kubexm.plan.picture import MOST_BOXES, picture
from kubexm.plan.render import as_dot, as_json, as_mermaid
from kubexm.plan.svg import as_svg
from kubexm.plan.text import LEGEND, as_text

GOLDEN = Path(__file__).parent / "golden"
HOSTS = ("n1", "n2", "n3")


def step(name: str, *hosts: str) -> ExecutionFragment:
    fragment = node(name, StepSpec("command"), on=hosts or HOSTS)
    assert fragment is not None
    return fragment


def graph_of(fragment: ExecutionFragment | None, hosts: tuple[str, ...] = HOSTS) -> ExecutionGraph:
    assert fragment is not None
    return build(
        "g",
        fragment.nodes,
        joins=fragment.joins,
        hosts=hosts,
        compensations=fragment.compensations,
    )


def lines_of(fragment: ExecutionFragment | None) -> list[str]:
    return as_text(graph_of(fragment), lambda spec: "").splitlines()


@pytest.mark.parametrize(
    ("file", "render"),
    [
        ("create-cluster.txt", as_text),
        ("create-cluster.mmd", as_mermaid),
        ("create-cluster.dot", as_dot),
        ("create-cluster.svg", as_svg),
    ],
)
def test_the_picture_of_a_cluster_is_the_golden_one(file: str, render: Callable[..., str]) -> None:
    drawn = render(create_cluster(), describe)

    if os.environ.get("UPDATE_GOLDEN"):
        (GOLDEN / file).write_text(drawn)
    assert drawn == (GOLDEN / file).read_text()


def test_json_is_the_document_of_the_graph() -> None:
    graph = create_cluster()

    assert codec.decode(as_json(graph)) == graph
    assert as_json(graph).startswith('{\n  "formatVersion": 1,\n  "kind": "ExecutionGraph",')


class TestText:
    def test_what_follows_the_line_above_needs_no_mark(self) -> None:
        whole = chain(
            scope("one", per_host(step("a"), step("b"))), scope("two", per_host(step("c")))
        )

        assert [line.split() for line in lines_of(whole)] == [
            ["one"], ["a", "[n1", "n2", "n3]"], ["b", "[n1", "n2", "n3]"],
            ["two"], ["c", "[n1", "n2", "n3]"],
        ]  # fmt: skip

    def marks(self, fragment: ExecutionFragment | None) -> dict[str, str]:
        found = {}
        for line in lines_of(fragment):
            name, _, rest = line.strip().partition("  ")
            found[name.strip()] = rest.rpartition("]")[2].strip() if "[" in rest else rest
        assert found.pop(LEGEND.partition("  ")[0], "") is not None
        return {name: mark for name, mark in found.items() if mark}

    def test_a_barrier_between_steps_is_marked(self) -> None:
        assert self.marks(chain(step("a"), step("b"))) == {"b": "⇐ a"}

    def test_what_stands_beside_is_marked(self) -> None:
        assert self.marks(parallel(step("a"), step("b"))) == {"b": "∥"}
        assert self.marks(parallel(chain(step("a"), step("b")), step("c"))) == {
            "b": "⇐ a", "c": "∥ a",
        }  # fmt: skip

    def test_what_follows_several_names_them(self) -> None:
        whole = per_host(parallel(step("a"), step("b")), step("c"))

        assert self.marks(whole) == {"b": "∥", "c": "← a, b"}

    def test_what_follows_many_names_a_few(self) -> None:
        whole = chain(parallel(*(step(name) for name in "abcde")), step("z"))

        assert self.marks(whole)["z"] == "⇐ a, b, c, … (5)"

    def test_a_scope_stands_for_all_that_ends_it(self) -> None:
        first = scope("first", parallel(step("a"), step("b")))
        second = scope("second", step("c"))

        marks = self.marks(chain(parallel(first, second), scope("third", step("d"))))

        assert marks == {"b": "∥", "second": "∥", "third": "⇐ first, second"}

    def test_an_edge_into_the_middle_of_a_scope_is_shown_there(self) -> None:
        both = parallel(
            scope("one", per_host(step("a"), step("b"))),
            scope("two", per_host(step("c"), step("d"))),
        )

        marks = self.marks(link(both, before="one/b", after="two/d"))

        assert marks == {"two": "in part ⇐ one", "c": "at once", "d": "← c  ⇐ one"}

    def test_the_marks_are_explained_only_if_there_are_any(self) -> None:
        assert lines_of(per_host(step("a"), step("b")))[-1] != LEGEND
        assert lines_of(chain(step("a"), step("b")))[-1] == LEGEND

    def test_what_is_in_a_scope_may_wait_for_different_things(self) -> None:
        inner = parallel(step("c"), step("d"))
        both = parallel(step("a"), step("b"), scope("s", scope("t", inner)))
        linked = link(both, before="a", after="s/t/c")

        marks = self.marks(link(linked, before="b", after="s/t/d"))

        assert marks == {
            "b": "∥",
            "s": "in part ⇐ a, b",
            "t": "in part ⇐ a, b",
            "c": "⇐ a",
            "d": "⇐ b",
        }

    def test_columns_stay_straight_with_chinese_names(self) -> None:
        first, second, *_ = lines_of(per_host(step("安装"), step("ab")))

        assert first.index("[") + 2 == second.index("[")

    def test_a_title_of_its_own_is_shown(self) -> None:
        fragment = node("a", StepSpec("file"), on=HOSTS, title="The first")

        assert as_text(graph_of(fragment)) == "a  The first: file  [n1 n2 n3]\n"


def test_many_hosts_are_abbreviated() -> None:
    many = tuple(f"n{number}" for number in range(1, 21))

    def shown(on: tuple[str, ...], floating: bool = False) -> str:
        return hosts(ExecutionNode("a", "a", StepSpec("x"), on, one_of=floating))

    assert shown(many[:3]) == "n1 n2 n3"
    assert shown(many) == "n1 … n20 (20)"
    assert shown(many[:2], floating=True) == "one of n1 n2"


def test_a_step_is_described_by_kind_and_parameters_for_want_of_better() -> None:
    spec = StepSpec("file", {"path": "/etc/x", "lines": ["a", 1]})

    assert kind_and_params(spec) == 'file path="/etc/x" lines=["a",1]'


def test_a_description_is_one_printable_line() -> None:
    assert one_line("a\n  b\tc\x1b[31m\u202e") == "a b c·[31m·"
    assert one_line("x" * 200) == "x" * 99 + "…"


class TestReduction:
    @given(graphs())
    def test_edges_that_are_left_out_follow_from_the_others(self, graph: ExecutionGraph) -> None:
        kept = edges(graph.nodes, graph.joins)

        nodes = {item.id: with_edges(item, kept[item.id]) for item in graph}
        joins = {item.id: with_edges(item, kept[item.id]) for item in graph.joins.values()}
        bare = {id: msgspec.structs.replace(item, step=StepSpec("x")) for id, item in nodes.items()}
        assert follows(msgspec.structs.replace(graph, nodes=bare, joins=joins)) == follows(graph)

    @given(graphs())
    def test_joins_can_be_taken_out(self, graph: ExecutionGraph) -> None:
        straight = sources(edges(graph.nodes, graph.joins), graph.joins)

        bare = {
            item.id: with_edges(
                msgspec.structs.replace(item, step=StepSpec("x")), tuple(straight[item.id])
            )
            for item in graph
        }
        assert follows(msgspec.structs.replace(graph, nodes=bare, joins={})) == follows(graph)

    def test_a_barrier_is_not_implied_by_same_host_edges(self) -> None:
        whole = link(per_host(step("a"), step("b"), step("c")), before="a", after="c")

        assert edges_of(whole)["c"] == (Edge("a", True), Edge("b", False))

    def test_a_same_host_edge_is_implied_by_a_barrier(self) -> None:
        whole = link(chain(step("a"), step("b"), step("c")), before="a", after="c", same_host=True)

        assert edges_of(whole)["c"] == (Edge("b", True),)


def edges_of(fragment: ExecutionFragment) -> dict[str, tuple[Edge, ...]]:
    graph = graph_of(fragment)
    return dict(edges(graph.nodes, graph.joins))


V = msgspec.Struct


def with_edges(vertex: V, some: tuple[Edge, ...]) -> V:
    return msgspec.structs.replace(
        vertex,
        after=tuple(edge.before for edge in some if edge.barrier),
        after_same_host=tuple(edge.before for edge in some if not edge.barrier),
    )


NASTY = "\"'\\<b>&amp;</b>]]>--><!--`${x}#{y}|[]{}();\x07\n\u202e中文🚀"


def nasty() -> ExecutionGraph:
    spec = StepSpec(NASTY, {NASTY: NASTY})
    name = NASTY.replace("\n", "").replace("/", "")
    host = name.replace("*", "")
    fragment = prefixed(name, node(name, spec, on=(host,), title=NASTY, when=NASTY))
    return graph_of(fragment, (host,))


class TestSpecialCharacters:
    def test_svg_is_well_formed_and_shows_them(self) -> None:
        texts = [element.text for element in ET.fromstring(as_svg(nasty())).iter()]

        assert "\"'\\<b>&amp;<b>]]>--><!--`${x}#{y}|[]{}();·" in " ".join(filter(None, texts))

    def test_svg_has_no_element_that_is_not_ours(self) -> None:
        elements = {
            element.tag.rpartition("}")[2] for element in ET.fromstring(as_svg(nasty())).iter()
        }

        assert elements == {"svg", "title", "style", "defs", "marker", "path", "rect", "g", "text"}

    def test_mermaid_labels_hold_no_character_it_would_read(self) -> None:
        (label,) = [
            line for line in as_mermaid(nasty()).splitlines() if line.strip().startswith("n0")
        ]

        inner = label.strip().removeprefix('n0["').removesuffix('"]').replace("<br/>", "")
        assert not set('"<>&`\\[]{}()|') & set(inner)

    def test_dot_strings_end_where_they_should(self) -> None:
        dot = as_dot(nasty())

        assert "\\\"'\\\\<b>&amp;amp;" in dot
        assert dot.count("\n") == 9

    def test_text_has_no_control_character(self) -> None:
        assert all(letter.isprintable() or letter == "\n" for letter in as_text(nasty()))


class TestSvg:
    def test_many_tasks_are_folded_into_one_box_each(self) -> None:
        tasks = [
            scope(f"task-{number}", per_host(*(step(f"step-{n}") for n in range(10))))
            for number in range(30)
        ]
        graph = graph_of(scope("p", scope("module", chain(*tasks))))

        drawn = as_svg(graph)

        assert len(graph) == 300
        assert drawn.count("10 steps, 30 units") == 30
        assert ">step-9<" not in drawn

    def test_few_nodes_are_all_shown(self) -> None:
        drawn = as_svg(graph_of(scope("p", per_host(*(step(f"step-{n}") for n in range(5))))))

        assert all(f">step-{number}<" in drawn for number in range(5))

    def test_a_flat_graph_is_drawn_in_full_and_stays_in_shape(self) -> None:
        root = arranged(graph_of(per_host(*(step(f"step-{n}") for n in range(300)))))

        assert len([box for box in root.everything() if not box.items]) == 300 > MOST_BOXES
        assert 0.4 < root.width / root.height < 4

    def test_many_nodes_with_the_same_neighbours_share_one_arrow(self) -> None:
        graph = graph_of(chain(step("a"), parallel(*(step(f"b{n}") for n in range(50))), step("c")))

        drawn = as_svg(graph)

        assert "50 side by side" in drawn
        assert drawn.count('class="arrow"') == 3  # one of them in the legend

    def test_barriers_are_solid_and_same_host_edges_dashed(self) -> None:
        lane = as_svg(graph_of(per_host(step("a"), step("b"))))
        barrier = as_svg(graph_of(chain(step("a"), step("b"))))

        assert (lane.count('"arrow lane"'), barrier.count('"arrow lane"')) == (2, 1)

    @given(graphs())
    def test_any_graph_gives_a_picture(self, graph: ExecutionGraph) -> None:
        root = ET.fromstring(as_svg(graph, lambda spec: spec.kind))

        names = {element.text for element in root.iter("{http://www.w3.org/2000/svg}text")}
        assert names >= {item.id.rpartition("/")[2] for item in graph}

    @given(graphs())
    def test_boxes_lie_inside_their_scope_and_beside_each_other(
        self, graph: ExecutionGraph
    ) -> None:
        for box in arranged(graph).everything():
            assert all(holds(box, item) for item in box.items)
            assert not any(overlap(*pair) for pair in combinations(box.items, 2))

    @given(graphs())
    def test_whoever_waits_stands_in_a_later_layer(self, graph: ExecutionGraph) -> None:
        for box in arranged(graph).everything():
            for flow in box.flows.values():
                if flow.before.rank < flow.after.rank and flow.before.line is flow.after.line:
                    assert ends(flow.before, box.vertical) < begins(flow.after, box.vertical)


def arranged(graph: ExecutionGraph) -> Box:
    root, _ = picture(graph)
    arrange(root)
    return root


def holds(outer: Box, inner: Box) -> bool:
    return (
        outer.x < inner.x
        and outer.y < inner.y
        and inner.x + inner.width < outer.x + outer.width
        and inner.y + inner.height < outer.y + outer.height
    )


def overlap(one: Box, other: Box) -> bool:
    return (
        one.x < other.x + other.width
        and other.x < one.x + one.width
        and one.y < other.y + other.height
        and other.y < one.y + one.height
    )


def ends(box: Box, vertical: bool) -> float:
    return box.y + box.height if vertical else box.x + box.width


def begins(box: Box, vertical: bool) -> float:
    return box.y if vertical else box.x


def test_a_one_of_node_says_so_in_every_picture() -> None:
    graph = graph_of(node("a", StepSpec("x"), on=one_of(HOSTS)))

    for drawn in (as_text(graph), as_mermaid(graph), as_dot(graph), as_svg(graph)):
        assert "one of n1 n2 n3" in drawn


def test_joins_are_points_and_no_boxes() -> None:
    graph = graph_of(chain(parallel(step("a"), step("b")), parallel(step("c"), step("d"))))

    assert '"c/@join" [shape=point' in as_dot(graph)
    assert "j0(( ))" in as_mermaid(graph)
    assert "@join" not in as_svg(graph)
    assert "@join" not in as_text(graph)


class TestCompensations:
    def graph(self) -> ExecutionGraph:
        undo = chain(parallel(step("stop"), step("drop")), parallel(step("wipe"), step("forget")))
        first = scope("first", per_host(step("a"), step("b")), compensate=undo)
        return graph_of(scope("p", chain(scope("before", step("x")), first, step("after"))))

    @pytest.mark.parametrize("render", [as_text, as_mermaid, as_dot, as_svg])
    def test_every_picture_shows_what_undoes_a_scope(self, render: Callable[..., str]) -> None:
        drawn = render(self.graph())

        assert all(name in drawn for name in ("stop", "drop", "wipe", "forget"))
        assert "@compensate" in drawn
        assert "in place of the undo of each step" in drawn

    def test_it_is_dashed(self) -> None:
        graph = self.graph()

        assert "labeljust=l, style=dashed" in as_dot(graph)
        assert "style s4 stroke-dasharray" in as_mermaid(graph)
        assert as_svg(graph).count('<rect class="undo"') == 1
        assert as_svg(graph).count('rx="6" class="undo"') == 1

    def test_its_edges_and_joins_are_drawn(self) -> None:
        join = "p/first/@compensate/wipe/@join"

        assert f'"{join}" [shape=point' in as_dot(self.graph())
        assert f'"p/first/@compensate/stop" -> "{join}"' in as_dot(self.graph())

    def test_it_is_at_the_end_of_its_scope_and_changes_no_other_arrow(self) -> None:
        graph = self.graph()
        bare = msgspec.structs.replace(graph, compensations=())

        boxes = list(arranged(graph).everything())

        (around,) = [box for box in boxes if any(item.aside for item in box.items)]
        assert around.items[-1].aside
        assert all(ends(item, True) < around.items[-1].y for item in around.items[:-1])
        inside = set(around.items[-1].everything())
        assert sum(len(box.flows) for box in boxes if box not in inside) == sum(
            len(box.flows) for box in arranged(bare).everything()
        )

    def test_a_folded_task_counts_the_steps_that_are_run(self) -> None:
        tasks = [
            scope(
                f"task-{number}",
                per_host(*(step(f"step-{n}") for n in range(10))),
                compensate=step("undo"),
            )
            for number in range(30)
        ]

        drawn = as_svg(graph_of(scope("p", scope("module", chain(*tasks)))))

        assert drawn.count("10 steps, 30 units") == 30

    def test_a_picture_without_any_explains_none(self) -> None:
        assert "in place of the undo" not in as_svg(graph_of(step("a")))
