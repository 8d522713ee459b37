"""Selections: what is named, what that leaves, and that nobody starts early through the gaps."""

from itertools import accumulate
from typing import Any

import msgspec
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st
from tests.strategies import graphs, host_names, some_of
from tests.unit_order import follows, units

from kubexm.errors import Problem, UnknownPath
from kubexm.plan import (
    Compensation,
    ExecutionFragment,
    ExecutionGraph,
    ExecutionNode,
    HookFragment,
    HostGroup,
    Join,
    Key,
    StepSpec,
    build,
    chain,
    node,
    one_of,
    parallel,
    per_host,
    scope,
)
from kubexm.plan.scope import Moment
from kubexm.plan.select import Selection, in_vain, select, uncompensated, unguarded

HOSTS = host_names(3)
STEP = StepSpec("command")


def step(name: str, *hosts: str, tags: tuple[str, ...] = ()) -> ExecutionFragment:
    fragment = node(name, STEP, on=hosts or HOSTS, tags=tags)
    assert fragment is not None
    return fragment


def cluster() -> ExecutionGraph:
    """create / etcd (install: package, config; start) and runtime (install: package)."""
    whole = scope(
        "create",
        chain(
            scope(
                "etcd",
                chain(
                    scope("install", per_host(step("package", tags=("slow",)), step("config"))),
                    step("start"),
                ),
            ),
            scope("runtime", scope("install", step("package", tags=("slow",)))),
        ),
    )
    return graph_of(whole)


def graph_of(whole: ExecutionFragment | None) -> ExecutionGraph:
    assert whole is not None
    return build(
        "create",
        whole.nodes,
        joins=whole.joins,
        hosts=HOSTS,
        compensations=whole.compensations,
    )


def names(graph: ExecutionGraph) -> list[str]:
    return [id.removeprefix("create/") for id in graph.nodes]


def test_an_empty_selection_is_the_whole_graph() -> None:
    graph = cluster()

    assert select(graph, Selection()) is graph


NAMED = {
    "create": names(cluster()),
    "create/etcd": ["etcd/install/package", "etcd/install/config", "etcd/start"],
    "etcd": ["etcd/install/package", "etcd/install/config", "etcd/start"],
    "/etcd/install/": ["etcd/install/package", "etcd/install/config"],
    "etcd/install/config": ["etcd/install/config"],
    "*/install": ["etcd/install/package", "etcd/install/config", "runtime/install/package"],
    "create/*/*/package": ["etcd/install/package", "runtime/install/package"],
    "etcd/*": ["etcd/install/package", "etcd/install/config", "etcd/start"],
    "e*d/st*t": ["etcd/start"],
    "slow": ["etcd/install/package", "runtime/install/package"],
}  # fmt: skip


@pytest.mark.parametrize("pattern", NAMED)
def test_a_path_or_tag_names(pattern: str) -> None:
    assert names(select(cluster(), Selection(only=(pattern,)))) == NAMED[pattern]


@pytest.mark.parametrize(
    "pattern", ["etc", "install", "start", "etcd/inst", "create/create", "", "/"]
)
def test_a_part_of_a_segment_or_a_path_from_the_middle_names_nothing(pattern: str) -> None:
    with pytest.raises(UnknownPath, match=f"`--only {pattern}`: `create` has no such path or tag"):
        select(cluster(), Selection(only=(pattern,)))


def test_several_names_are_taken_together() -> None:
    chosen = select(cluster(), Selection(only=("etcd/start", "runtime")))

    assert names(chosen) == ["etcd/start", "runtime/install/package"]


def test_from_takes_a_node_and_all_that_depends_on_it() -> None:
    chosen = select(cluster(), Selection(from_=("etcd/install/config",)))

    assert names(chosen) == ["etcd/install/config", "etcd/start", "runtime/install/package"]


def test_skip_leaves_out() -> None:
    chosen = select(cluster(), Selection(skip=("etcd/install", "runtime")))

    assert names(chosen) == ["etcd/start"]


def test_each_part_of_a_selection_narrows_the_others() -> None:
    chosen = select(
        cluster(), Selection(only=("etcd",), from_=("etcd/install/config",), skip=("etcd/start",))
    )

    assert names(chosen) == ["etcd/install/config"]


def test_hosts_narrow_every_node() -> None:
    chosen = select(cluster(), Selection(only=("etcd/start",), hosts=("h3", "h1")))

    assert chosen.nodes["create/etcd/start"].hosts == ("h1", "h3")
    assert chosen.hosts == ("h1", "h3")


def test_hosts_may_be_named_by_a_pattern() -> None:
    assert select(cluster(), Selection(hosts=("h*",))).unit_count == cluster().unit_count


def test_one_of_is_chosen_among_the_hosts_that_are_left() -> None:
    graph = graph_of(parallel(node("a", STEP, on=one_of(HOSTS)), step("b", "h1")))

    chosen = select(graph, Selection(hosts=("h2", "h3")))

    assert [(item.id, item.hosts) for item in chosen] == [("a", ("h2", "h3"))]


def test_what_is_left_out_hands_on_its_dependencies() -> None:
    chosen = select(cluster(), Selection(skip=("etcd/install/config", "etcd/start")))

    place = Join("create/etcd/start", ("create/etcd/install/config",))
    assert chosen.joins["create/etcd/start"] == place
    assert chosen.nodes["create/runtime/install/package"].after == ("create/etcd/start",)
    before = follows(chosen)
    assert ("create/etcd/install/package", "h2") in before["create/runtime/install/package", "h1"]


def test_a_node_that_loses_all_its_hosts_hands_on_its_dependencies() -> None:
    graph = graph_of(chain(step("a"), step("b", "h3"), step("c")))

    chosen = select(graph, Selection(hosts=("h1", "h2")))

    assert chosen.joins == {"b": Join("b", ("a",))}
    assert chosen.nodes["c"].after == ("b",)


def test_joins_that_hold_nobody_back_are_gone() -> None:
    pairs = [parallel(step(f"{name}1"), step(f"{name}2")) for name in "abc"]
    graph = graph_of(chain(*pairs))

    assert select(graph, Selection(only=("b1",))).joins == {}
    assert select(graph, Selection(only=("a1", "a2"))).joins == {}
    assert set(select(graph, Selection(skip=("b*",))).joins) == {
        "b1/@join", "b1", "b2", "c1/@join",
    }  # fmt: skip


class TestValues:
    def graph(self) -> ExecutionGraph:
        token = StepSpec("token", needs=("ca",), provides=(Key("token"),))
        return graph_of(
            chain(
                node("ca", StepSpec("fetch", provides=(Key("ca"),)), on=("h3",)),
                node("other", STEP, on=HOSTS),
                node("token", token, on=one_of(HOSTS)),
                per_host(
                    node("disk", StepSpec("fetch", provides=(Key("disk", "host"),)), on=HOSTS),
                    node("join", StepSpec("join", needs=("token", "disk")), on=("h1", "h2")),
                ),
            )
        )

    def test_what_provides_a_needed_value_stays(self) -> None:
        chosen = select(self.graph(), Selection(only=("join",)))

        assert list(chosen.nodes) == ["ca", "token", "disk", "join"]

    def test_a_value_of_a_host_is_produced_where_it_is_needed(self) -> None:
        chosen = select(self.graph(), Selection(only=("join",), hosts=("h1",)))

        assert {item.id: item.hosts for item in chosen} == {
            "ca": ("h3",),
            "token": ("h1",),
            "disk": ("h1",),
            "join": ("h1",),
        }

    def test_what_provides_a_needed_value_stays_even_if_it_is_to_be_skipped(self) -> None:
        chosen = select(self.graph(), Selection(skip=("token", "other")))

        assert list(chosen.nodes) == ["ca", "token", "disk", "join"]

    def test_a_value_that_nothing_needs_is_not_produced(self) -> None:
        assert list(select(self.graph(), Selection(only=("other",))).nodes) == ["other"]


class TestHooks:
    def graph(self) -> ExecutionGraph:
        def hook(name: str) -> HookFragment:
            return HookFragment("always", step(name))

        tasks = chain(
            scope("a", step("work", "h1"), hooks=[hook("clean")]),
            scope("b", step("work"), hooks=[hook("clean")]),
        )
        return graph_of(scope("create", tasks, hooks=[hook("report")]))

    def test_a_scope_of_which_anything_is_left_keeps_its_hooks_and_so_do_those_around(self) -> None:
        chosen = select(self.graph(), Selection(only=("a/work",)))

        assert names(chosen) == ["a/work", "a/@always-1/clean", "@always-1/report"]

    def test_a_hook_without_its_scope_is_left_out(self) -> None:
        by_path = select(self.graph(), Selection(skip=("a/work",)))
        by_host = select(self.graph(), Selection(hosts=("h2",)))

        assert "a/@always-1/clean" not in names(by_path)
        assert "a/@always-1/clean" not in names(by_host)

    def test_from_takes_the_hooks_of_the_scopes_it_is_in(self) -> None:
        chosen = select(self.graph(), Selection(from_=("b/work",)))

        assert names(chosen) == ["b/work", "b/@always-1/clean", "@always-1/report"]

    def test_a_hook_that_is_skipped_is_left_out(self) -> None:
        chosen = select(self.graph(), Selection(only=("a",), skip=("@always-1",)))

        assert names(chosen) == ["a/work", "a/@always-1/clean"]
        assert not [*in_vain(self.graph(), Selection(only=("a",), skip=("@always-1",)), chosen)]

    def test_a_hook_of_each_host_stays_on_the_hosts_that_are_left_of_its_scope(self) -> None:
        by_path = select(self.graph(), Selection(only=("a",)))
        by_host = select(self.graph(), Selection(only=("b",), hosts=("h2",)))

        assert by_path.nodes["create/@always-1/report"].hosts == ("h1",)
        assert by_host.nodes["create/@always-1/report"].hosts == ("h2",)
        assert by_host.nodes["create/b/@always-1/clean"].hosts == ("h2",)


MOMENTS: tuple[Moment, ...] = ("pre", "on-failure", "always")


class TestGuards:
    """A lock around all, held on another host, and a drain of each host around each batch."""

    def graph(self, *, lock_on: str = "control-node", more: bool = False) -> ExecutionGraph:
        batches = chain(
            *(
                scope(
                    f"batch-{host}",
                    per_host(step("stop", host), step("start", host)),
                    hooks=[HookFragment(moment, step("drain", host)) for moment in MOMENTS],
                )
                for host in HOSTS
            ),
            step("here", lock_on) if more else None,
        )
        lock = [HookFragment(moment, step("lock", lock_on), barrier=True) for moment in MOMENTS]
        whole = scope("create", batches, hooks=lock)
        assert whole is not None
        hosts = tuple(dict.fromkeys((*HOSTS, lock_on)))
        return build("create", whole.nodes, joins=whole.joins, hosts=hosts)

    LOCK = ("@pre-1/lock", "@on-failure-1/lock", "@always-1/lock")

    @pytest.mark.parametrize("more", [False, True])
    @pytest.mark.parametrize(
        "selection",
        [
            Selection(from_=("batch-h3",)),
            Selection(hosts=("h3",)),
            Selection(only=("batch-h3",)),
            Selection(only=("batch-h3/start",)),
            Selection(skip=("batch-h1", "batch-h2")),
        ],
    )
    def test_no_selection_loses_a_lock_or_a_half_of_it(
        self, selection: Selection, more: bool
    ) -> None:
        chosen = select(self.graph(more=more), selection)

        drains = {f"batch-h3/@{moment}-1/drain" for moment in MOMENTS}
        assert {*self.LOCK, *drains} <= {*names(chosen)}
        assert {id.partition("/")[0] for id in names(chosen)} <= {
            "@pre-1", "@on-failure-1", "@always-1", "batch-h3", "here",
        }  # fmt: skip

    def test_a_lock_is_taken_before_what_is_left_and_released_after_it(self) -> None:
        chosen = select(self.graph(), Selection(only=("batch-h2/stop", "batch-h3/start")))

        before = follows(chosen)
        lock, unlock = (("create/" + self.LOCK[index], "control-node") for index in (0, -1))
        drained = ("create/batch-h3/@pre-1/drain", "h3")
        work = {("create/batch-h2/stop", "h2"), ("create/batch-h3/start", "h3")}
        assert all(lock in before[unit] for unit in (*work, drained))
        assert drained in before["create/batch-h3/start", "h3"]
        assert work <= before[unlock]

    def test_a_hook_on_a_host_of_its_scope_goes_if_that_is_not_among_the_hosts_asked_for(
        self,
    ) -> None:
        chosen = select(self.graph(lock_on="h1"), Selection(hosts=("h3",)))

        assert chosen.hosts == ("h3",)

    def test_hooks_that_go_with_their_host_are_told_with_that_host_and_what_keeps_them(
        self,
    ) -> None:
        (told,) = self.told(self.graph(lock_on="h1"), Selection(hosts=("h3",)))

        assert told.message == (
            "`--hosts` leaves out `h1`: what is left of `create` runs without"
            " `create/@pre-1/lock`, `create/@on-failure-1/lock` and `create/@always-1/lock`"
        )
        assert told.hint == "add `--hosts h1` to keep them"

    @pytest.mark.parametrize(
        "selection",
        [
            Selection(hosts=("h1", "h3")),
            Selection(hosts=("h*",), only=("batch-h3",)),
            Selection(only=("batch-h3",)),
            Selection(skip=("batch-h1",)),
            Selection(hosts=("h3",), skip=("@pre-1", "@on-failure-1", "@always-1")),
        ],
    )
    def test_nothing_is_told_of_hooks_that_stay_or_that_were_left_out_by_name(
        self, selection: Selection
    ) -> None:
        assert self.told(self.graph(lock_on="h1"), selection) == []

    def test_nothing_is_told_of_hooks_that_went_with_their_scope(self) -> None:
        lock = [HookFragment(moment, step("lock", "h1"), barrier=True) for moment in MOMENTS]
        first = scope("first", step("work", "h1"), hooks=lock)
        graph = graph_of(scope("create", parallel(first, step("other", "h3"))))

        assert self.told(graph, Selection(hosts=("h3",))) == []

    def test_of_many_hosts_that_are_left_out_some_are_named(self) -> None:
        hosts = host_names(9)
        hook = HookFragment("pre", step("lock", *hosts[:7]), barrier=True)
        whole = scope("create", step("work", *hosts), hooks=[hook])
        assert whole is not None
        graph = build("create", whole.nodes, joins=whole.joins, hosts=hosts)

        (told,) = self.told(graph, Selection(hosts=("h9",)))

        assert told.message.startswith(
            "`--hosts` leaves out `h1`, `h2`, `h3`, `h4`, `h5` and 2 more: what is left"
        )
        assert told.hint == "add these hosts by `--hosts` to keep it"

    def test_half_of_a_lock_is_told_where_the_other_half_is_on_another_host(self) -> None:
        hooks = [
            HookFragment("pre", step("lock", "h2"), barrier=True),
            HookFragment("always", step("unlock", "h1"), barrier=True),
        ]
        graph = graph_of(scope("create", step("work"), hooks=hooks))

        (told,) = self.told(graph, Selection(hosts=("h2", "h3")))

        assert told.message == (
            "`--hosts` leaves out `h1`: what is left of `create` runs without"
            " `create/@always-1/unlock`"
        )
        assert told.hint == "add `--hosts h1` to keep it"

    def test_a_hook_of_each_host_guards_no_other_and_one_after_the_scope_guards_nothing(
        self,
    ) -> None:
        hooks = [
            HookFragment("pre", step("drain", "h1")),
            HookFragment("always", step("undrain", "h1")),
            HookFragment("post", step("report", "h1"), barrier=True),
        ]
        graph = graph_of(scope("create", step("work"), hooks=hooks))

        assert self.told(graph, Selection(hosts=("h3",))) == []

    def told(self, graph: ExecutionGraph, selection: Selection) -> list[Problem]:
        return [*unguarded(graph, selection, select(graph, selection))]

    def test_a_hook_on_a_host_of_its_scope_stays_if_only_the_path_is_narrower(self) -> None:
        chosen = select(self.graph(lock_on="h1"), Selection(only=("batch-h3",)))

        assert {*self.LOCK} <= {*names(chosen)}
        assert chosen.hosts == ("h1", "h3")

    def test_a_hook_for_all_hosts_at_once_stays_on_those_that_are_left(self) -> None:
        hook = HookFragment("pre", step("drain"), barrier=True)
        tasks = parallel(scope("a", step("work", "h1")), scope("b", step("work", "h2", "h3")))
        graph = graph_of(scope("create", tasks, hooks=[hook]))

        chosen = select(graph, Selection(only=("b",), hosts=("h1", "h2")))

        assert {item.id: item.hosts for item in chosen} == {
            "create/@pre-1/drain": ("h2",),
            "create/b/work": ("h2",),
        }

    def test_what_a_hook_needs_is_provided(self) -> None:
        value = node("value", StepSpec("value", provides=(Key("v"),)), on=["h1"])
        reports = node("report", StepSpec("command", needs=("v",)), on=["h3"])
        assert reports is not None
        body = chain(value, step("work", "h2"), step("other", "h2"))
        graph = graph_of(scope("create", body, hooks=[HookFragment("always", reports)]))

        chosen = select(graph, Selection(only=("work",)))

        assert names(chosen) == ["value", "work", "@always-1/report"]

    def test_what_provides_a_value_is_guarded_too(self) -> None:
        mint = node("mint", StepSpec("mint", provides=(Key("v"),)), on=["h1"])
        user = node("user", StepSpec("command", needs=("v",)), on=["h2"])
        first = scope("first", mint, hooks=[HookFragment("pre", step("lock", "h1"))])
        graph = graph_of(scope("create", chain(first, user)))

        chosen = select(graph, Selection(only=("user",)))

        assert names(chosen) == ["first/@pre-1/lock", "first/mint", "user"]

    def test_a_hook_that_is_named_alone_is_a_step_like_any_other(self) -> None:
        chosen = select(self.graph(), Selection(only=("batch-h3/@always-1",)))

        assert names(chosen) == ["batch-h3/@always-1/drain"]
        assert chosen.nodes["create/batch-h3/@always-1/drain"].hook is None

    def test_a_hook_that_only_leaves_a_value_does_not_wait_for_its_scope(self) -> None:
        status = node("status", StepSpec("value", provides=(Key("v"),)), on=["h1"])
        assert status is not None
        first = scope("first", step("work", "h1"), hooks=[HookFragment("post", status)])
        user = node("user", StepSpec("command", needs=("v",)), on=["h2"])
        graph = graph_of(scope("create", chain(first, user)))

        chosen = select(graph, Selection(only=("user",)))

        assert names(chosen) == ["first/@post-1/status", "user"]
        assert chosen.nodes["create/first/@post-1/status"].hook is None


class TestCompensations:
    def graph(self) -> ExecutionGraph:
        undo = chain(step("stop"), step("wipe", "h1"), step("last"))
        body = chain(step("one"), step("two"))
        return graph_of(scope("create", chain(scope("s", body, compensate=undo), step("after"))))

    def test_a_scope_that_is_run_as_a_whole_keeps_what_undoes_it(self) -> None:
        graph = self.graph()

        assert select(graph, Selection(only=("s",))).compensations == graph.compensations

    @pytest.mark.parametrize("chosen", [Selection(only=("s/one",)), Selection(only=("after",))])
    def test_a_part_of_a_scope_is_not_undone_as_a_whole(self, chosen: Selection) -> None:
        assert select(self.graph(), chosen).compensations == ()

    @pytest.mark.parametrize(
        ("chosen", "policy", "told"),
        [
            (Selection(only=("s/one",)), "rollback", 1),
            (Selection(skip=("s/two",)), "rollback", 1),
            (Selection(skip=("s/two",)), "isolate", 0),
            (Selection(only=("after",)), "rollback", 0),
            (Selection(only=("s",)), "rollback", 0),
        ],
    )
    def test_a_part_of_a_scope_without_what_undoes_it_is_told(
        self, chosen: Selection, policy: Any, told: int
    ) -> None:
        graph = msgspec.structs.replace(self.graph(), on_failure=policy)

        found = [*uncompensated(graph, select(graph, chosen))]

        assert len(found) == told
        assert all("of `create/s` only a part is selected" in item.message for item in found)

    def test_a_scope_is_undone_on_the_hosts_it_was_run_on(self) -> None:
        (item,) = select(self.graph(), Selection(hosts=("h2",))).compensations

        assert [(vertex.id, vertex.hosts) for vertex in item.nodes] == [
            ("create/s/@compensate/stop", ("h2",)),
            ("create/s/@compensate/last", ("h2",)),
        ]
        assert item.joins == (Join("create/s/@compensate/wipe", ("create/s/@compensate/stop",)),)

    def test_what_undoes_a_scope_on_another_host_stays(self) -> None:
        undo = chain(step("stop"), step("announce", "h3"))
        graph = graph_of(scope("create", scope("s", step("one", "h1", "h2"), compensate=undo)))

        (item,) = select(graph, Selection(hosts=("h2",))).compensations

        assert [vertex.hosts for vertex in item.nodes] == [("h2", "h3"), ("h3",)]

    def test_what_undoes_nothing_on_these_hosts_is_left_out(self) -> None:
        undo = Compensation("create/etcd", (ExecutionNode("x", "x", STEP, ("h1",)),))
        graph = msgspec.structs.replace(cluster(), compensations=(undo,))

        assert select(graph, Selection(hosts=("h2",))).compensations == ()


def test_hosts_that_are_left_out_count_towards_the_minimum_of_their_group() -> None:
    groups = (HostGroup("workers", HOSTS, 2), HostGroup("others", ("h3",), 1))
    graph = msgspec.structs.replace(cluster(), groups=groups)

    chosen = select(graph, Selection(hosts=("h1", "h2")))

    assert chosen.groups == (HostGroup("workers", ("h1", "h2"), 1),)


def test_an_unknown_path_is_refused_with_the_nearest() -> None:
    with pytest.raises(UnknownPath) as caught:
        select(cluster(), Selection(skip=("etcd/instal",)))

    assert str(caught.value) == "`--skip etcd/instal`: `create` has no such path or tag"
    assert caught.value.hint == "did you mean `etcd/install`?"
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("word", "near"),
    [
        ("create/etdc", "create/etcd"),
        ("etcd/package", "etcd/install/package"),
        ("slwo", "slow"),
    ],
)
def test_the_nearest_of_all_names_is_offered(word: str, near: str) -> None:
    with pytest.raises(UnknownPath) as caught:
        select(cluster(), Selection(only=(word,)))

    assert caught.value.hint == f"did you mean `{near}`?"


def test_an_unknown_host_is_refused_with_the_nearest() -> None:
    with pytest.raises(UnknownPath) as caught:
        select(cluster(), Selection(hosts=("h11",)))

    assert str(caught.value) == "`--hosts h11`: `create` has no such host"
    assert caught.value.hint == "did you mean `h1`?"


def test_all_unknown_names_are_refused_at_once() -> None:
    with pytest.raises(UnknownPath) as caught:
        select(cluster(), Selection(only=("x", "etcd"), from_=("y",), hosts=("z",)))

    assert [problem.message for problem in caught.value.problems] == [
        "`--only x`: `create` has no such path or tag",
        "`--from y`: `create` has no such path or tag",
        "`--hosts z`: `create` has no such host",
    ]


def test_a_selection_that_leaves_nothing_is_refused() -> None:
    with pytest.raises(UnknownPath, match="the selection leaves nothing to run") as caught:
        select(cluster(), Selection(only=("etcd",), skip=("etcd",)))

    assert caught.value.hint.startswith("select more, or leave less out")


@st.composite
def selected(draw: st.DrawFn, *, skip: bool = True) -> tuple[ExecutionGraph, ExecutionGraph]:
    """A graph, and a part of it that is neither nothing nor all."""
    graph = draw(graphs())
    ids = [id.split("/") for id in graph.nodes]
    known = sorted({path for segments in ids for path in accumulate(segments, "{}/{}".format)})
    part = st.just(()) | st.lists(st.sampled_from(known), min_size=1, max_size=2).map(tuple)
    hosts = st.just(graph.hosts) | some_of(graph.hosts, min_size=1)
    try:
        skipped = draw(part) if skip else ()
        return graph, select(graph, Selection(draw(part), draw(part), skipped, draw(hosts)))
    except UnknownPath:
        reject()


@given(selected())
def test_the_order_of_what_is_left_is_what_it_was(
    both: tuple[ExecutionGraph, ExecutionGraph],
) -> None:
    graph, chosen = both

    left = units(chosen)
    before, after = follows(graph), follows(chosen)
    assert left <= units(graph)
    for unit in left:
        assert after[unit] >= before[unit] & left


@given(selected())
def test_nothing_but_hosts_and_edges_changes(both: tuple[ExecutionGraph, ExecutionGraph]) -> None:
    graph, chosen = both

    bodies = {scope for item in chosen if item.hook is None for scope in scopes_of(item.id)}
    for item in chosen:
        whole = graph.nodes[item.id]
        back = msgspec.structs.replace(
            item,
            hosts=whole.hosts,
            after=whole.after,
            after_same_host=whole.after_same_host,
            hook=whole.hook,
        )
        assert back == whole
        assert item.hook == whole.hook or item.hook is None
        assert item.hook is None or item.hook.scope in bodies


@given(selected(skip=False))
def test_a_part_is_guarded_as_the_whole_is(both: tuple[ExecutionGraph, ExecutionGraph]) -> None:
    graph, chosen = both

    left: dict[str, set[str]] = {}
    for item in chosen:
        if graph.nodes[item.id].hook is None:
            for around in scopes_of(item.id):
                left.setdefault(around, set()).update(item.hosts)
    for item in graph:
        if item.hook is not None and item.id not in chosen.nodes:
            assert left.get(item.hook.scope, set()).isdisjoint(item.hosts)


def scopes_of(id: str) -> list[str]:
    return [*accumulate(id.split("/"), "{}/{}".format)]


@given(selected())
def test_every_join_stands_between_nodes(both: tuple[ExecutionGraph, ExecutionGraph]) -> None:
    _, chosen = both

    vertices = (*chosen.nodes, *chosen.joins)
    waited = {before for id in vertices for before in chosen.dependencies(id)}
    for id in chosen.joins:
        assert id in waited
        assert chosen.dependencies(id)


@pytest.mark.parametrize(
    ("selection", "told"),
    [
        (Selection(hosts=("h1", "h3")), "`--hosts h3` has no effect"),
        (Selection(hosts=("h1",), only=("first", "second")), "`--only second` has no effect"),
        (Selection(hosts=("h1",), from_=("first", "second")), "`--from second` has no effect"),
        (Selection(only=("first",), skip=("second",)), "`--skip second` has no effect"),
        (Selection(hosts=("h1", "h2"), only=("first", "second")), None),
        (Selection(hosts=("h*",)), None),
    ],
)
def test_what_is_selected_in_vain_is_told(selection: Selection, told: str | None) -> None:
    graph = graph_of(scope("create", parallel(step("first", "h1"), step("second", "h2"))))

    found = [*in_vain(graph, selection, select(graph, selection))]

    assert [problem.message.partition(":")[0] for problem in found] == ([told] if told else [])


def test_a_host_that_only_leaves_a_value_for_the_selection_is_not_selected_in_vain() -> None:
    value = node("value", StepSpec("value", provides=(Key("v", "run"),)), on=["h2"])
    user = node("user", StepSpec("command", needs=("v",)), on=["h1"])
    graph = graph_of(scope("create", chain(value, user)))
    selection = Selection(only=("user",), hosts=("h1", "h2"))

    assert not [*in_vain(graph, selection, select(graph, selection))]


def test_to_skip_what_leaves_a_needed_value_is_told_to_be_in_vain() -> None:
    value = node("value", StepSpec("value", provides=(Key("v", "run"),)), on=["h2"])
    user = node("user", StepSpec("command", needs=("v",)), on=["h1"])
    graph = graph_of(scope("create", chain(value, user)))
    selection = Selection(skip=("value",))

    (told,) = in_vain(graph, selection, select(graph, selection))

    assert told.message == (
        "`--skip value` has no effect: what is selected needs the values that it leaves"
    )


def test_what_one_host_makes_for_all_is_made_on_a_host_that_was_asked_for() -> None:
    mint = node("mint", StepSpec("mint", provides=(Key("v", "run"),)), on=one_of(["h1", "h2"]))
    user = node("user", StepSpec("command", needs=("v",)), on=["h1", "h2"])
    graph = graph_of(scope("create", chain(mint, user)))

    chosen = select(graph, Selection(only=("user",), hosts=("h2",)))

    assert chosen.nodes["create/mint"].hosts == ("h2",)
