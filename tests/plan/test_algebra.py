"""chain, per_host, parallel, rolling, link, one_of: what each promises about the order of units."""

from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import POOLS, fragments, host_names
from tests.unit_order import follows, units_of

from kubexm.errors import InvalidGraph
from kubexm.plan import (
    ExecutionFragment,
    ExecutionGraph,
    ExecutionNode,
    Join,
    RetryPolicy,
    StepSpec,
    Tolerance,
    build,
    chain,
    link,
    node,
    one_of,
    parallel,
    per_host,
    prefixed,
    rolling,
    settled,
)
from kubexm.plan.records import Unit

Sequence = Callable[..., ExecutionFragment]
HOSTS = host_names(3)
STEP = StepSpec("command")
some_fragments = fragments(HOSTS, depth=2)


def step(name: str, *hosts: str) -> ExecutionFragment:
    fragment = node(name, STEP, on=hosts or HOSTS)
    assert fragment is not None
    return fragment


def graph_of(fragment: ExecutionFragment) -> ExecutionGraph:
    return build("p", fragment.nodes, joins=fragment.joins, hosts=HOSTS, pools=POOLS)


def units(fragment: ExecutionFragment) -> set[Unit]:
    return {unit for vertex in fragment.nodes for unit in units_of(vertex)}


def edges(fragment: ExecutionFragment) -> dict[str, tuple[tuple[str, ...], tuple[str, ...]]]:
    vertices: list[ExecutionNode | Join] = [*fragment.nodes, *fragment.joins]
    return {vertex.id: (vertex.after, vertex.after_same_host) for vertex in vertices}


def apart(*parts: ExecutionFragment | None) -> list[ExecutionFragment]:
    moved = (prefixed(f"part-{number}", part) for number, part in enumerate(parts))
    return [part for part in moved if part is not None]


@given(some_fragments, some_fragments, some_fragments)
def test_chain_puts_every_unit_of_a_part_before_every_unit_of_the_next(
    first: ExecutionFragment | None,
    second: ExecutionFragment | None,
    third: ExecutionFragment | None,
) -> None:
    parts = apart(first, second, third)

    before = follows(graph_of(chain(*parts)))

    for number, part in enumerate(parts):
        earlier = {unit for other in parts[:number] for unit in units(other)}
        for unit in units(part):
            assert before[unit] >= earlier


@given(some_fragments, some_fragments, some_fragments)
def test_per_host_puts_a_host_after_all_it_did_before(
    first: ExecutionFragment | None,
    second: ExecutionFragment | None,
    third: ExecutionFragment | None,
) -> None:
    parts = apart(first, second, third)

    before = follows(graph_of(per_host(*parts)))

    for number, part in enumerate(parts):
        earlier = {unit for other in parts[:number] for unit in units(other)}
        for id, host in units(part):
            assert before[id, host] >= {unit for unit in earlier if unit[1] in (host, "*")}


@given(some_fragments, some_fragments)
def test_parallel_adds_no_order(
    first: ExecutionFragment | None, second: ExecutionFragment | None
) -> None:
    parts = apart(first, second)

    before = follows(graph_of(parallel(*parts)))

    for part in parts:
        alone = follows(graph_of(part))
        assert {unit: before[unit] for unit in alone} == alone


@pytest.mark.parametrize("sequence", [chain, per_host, parallel])
@given(some_fragments, some_fragments)
def test_a_part_that_is_not_required_is_neutral(
    sequence: Sequence, first: ExecutionFragment | None, second: ExecutionFragment | None
) -> None:
    linked = sequence(first, second)

    assert sequence(None, first, None, second, None) == linked
    assert sequence(first, ExecutionFragment(), second) == linked


def test_chain_makes_barriers_and_per_host_makes_same_host_edges() -> None:
    assert edges(chain(step("a"), step("b"))) == {"a": ((), ()), "b": (("a",), ())}
    assert edges(per_host(step("a"), step("b"))) == {"a": ((), ()), "b": ((), ("a",))}


Linker = Callable[..., ExecutionFragment]
either_way = pytest.mark.parametrize("linked_by", [chain, per_host])


@either_way
def test_many_exits_meet_many_entries_in_one_join(linked_by: Linker) -> None:
    names = [f"{number}" for number in range(20)]
    before = parallel(*(step(f"a{name}") for name in names))
    after = parallel(*(step(f"b{name}") for name in names))

    linked = linked_by(before, after)

    assert [join.id for join in linked.joins] == ["b0/@join"]
    assert sum(len(to) + len(lane) for to, lane in edges(linked).values()) == 40


@either_way
def test_few_exits_or_entries_need_no_join(linked_by: Linker) -> None:
    many = parallel(step("a"), step("b"))

    assert linked_by(many, step("c")).joins == ()
    assert linked_by(step("c"), many).joins == ()


@either_way
def test_joins_of_a_sequence_have_ids_of_their_own(linked_by: Linker) -> None:
    pairs = [parallel(step(f"{name}1"), step(f"{name}2")) for name in "abcd"]

    linked = linked_by(*pairs)

    assert [join.id for join in linked.joins] == ["b1/@join", "c1/@join", "d1/@join"]


def test_entries_and_exits_follow_from_the_edges() -> None:
    diamond = chain(step("top"), parallel(step("left"), step("right")), step("bottom"))

    assert diamond.entries == ("top",)
    assert diamond.exits == ("bottom",)
    assert parallel(step("a"), step("b")).entries == ("a", "b")
    assert parallel(step("a"), step("b")).exits == ("a", "b")


def test_a_barrier_waits_for_hosts_that_have_no_part_in_the_last_step() -> None:
    whole = chain(per_host(step("install"), step("configure", "h1")), step("next", "h1"))

    before = follows(graph_of(whole))

    assert ("install", "h3") in before["next", "h1"]


def test_a_hole_hands_on_what_the_missing_node_waited_for() -> None:
    whole = chain(step("first", "h1"), per_host(step("one", "h1"), step("two", "h1", "h2")))

    before = follows(graph_of(whole))

    assert before["two", "h2"] == {("first", "h1")}


def test_rolling_takes_the_next_batch_when_the_whole_batch_is_through() -> None:
    whole = rolling(HOSTS, 2, lambda hosts: per_host(step("stop", *hosts), step("start", *hosts)))

    before = follows(graph_of(whole))

    assert [vertex.id for vertex in whole.nodes] == [
        "batch-1/stop",
        "batch-1/start",
        "batch-2/stop",
        "batch-2/start",
    ]
    assert before["batch-2/stop", "h3"] == {
        (f"batch-1/{name}", host) for name in ("stop", "start") for host in ("h1", "h2")
    }


def test_rolling_one_by_one_is_named_for_the_hosts() -> None:
    whole = rolling(HOSTS, 1, lambda hosts: step("drain", *hosts))

    assert [vertex.id for vertex in whole.nodes] == ["h1/drain", "h2/drain", "h3/drain"]


def test_batches_sort_by_name_however_many_there_are() -> None:
    whole = rolling(host_names(24), 2, lambda hosts: step("drain", *hosts))

    ids = [vertex.id for vertex in whole.nodes]
    assert ids == sorted(ids)


def test_rolling_refuses_an_empty_batch() -> None:
    with pytest.raises(InvalidGraph, match="a batch of 0 hosts, want at least 1"):
        rolling(HOSTS, 0, lambda hosts: step("drain", *hosts))


def test_a_node_without_hosts_is_not_required() -> None:
    assert node("a", STEP, on=()) is None
    assert node("a", STEP, on=one_of([])) is None


def test_a_node_keeps_what_it_is_given_and_defaults_for_the_rest() -> None:
    fragment = node("a", STEP, on=HOSTS, title="the first", retry=RetryPolicy(3), timeout=None)

    assert fragment is not None
    (single,) = fragment.nodes
    assert (single.id, single.name, single.retry.attempts) == ("a", "the first", 3)
    assert (single.timeout, single.limits.pools) == (None, ())


def test_one_of_gives_one_unit_that_only_barriers_touch() -> None:
    single = node("init", STEP, on=one_of(HOSTS))
    whole = per_host(step("before"), single, step("after"))

    assert edges(whole) == {
        "before": ((), ()),
        "init": (("before",), ()),
        "after": (("init",), ()),
    }
    assert graph_of(whole).unit_count == 7


def test_link_adds_the_rare_other_edge() -> None:
    both = parallel(step("a"), step("b"))

    assert edges(link(both, before="a", after="b"))["b"] == (("a",), ())
    assert edges(link(both, before="a", after="b", same_host=True))["b"] == ((), ("a",))


def test_link_refuses_a_node_that_is_not_there() -> None:
    with pytest.raises(InvalidGraph, match="can't link `c`: the fragment has no such node"):
        link(step("a"), before="a", after="c")


def test_prefixed_moves_every_path() -> None:
    moved = prefixed("s", chain(parallel(step("a"), step("b")), parallel(step("c"), step("d"))))

    assert moved is not None
    assert edges(moved) == {
        "s/a": ((), ()),
        "s/b": ((), ()),
        "s/c": (("s/c/@join",), ()),
        "s/d": (("s/c/@join",), ()),
        "s/c/@join": (("s/a", "s/b"), ()),
    }


def test_prefixed_leaves_nothing_of_nothing() -> None:
    assert prefixed("s", None) is None
    assert prefixed("s", ExecutionFragment()) is None


def test_settings_of_a_scope_yield_to_those_of_a_node() -> None:
    own = node("own", STEP, on=HOSTS, timeout=5.0, retry=RetryPolicy(2), tags=("x",))
    strict = Tolerance()

    whole = settled(
        parallel(own, step("plain")),
        timeout=60.0,
        retry=RetryPolicy(4),
        tolerance=strict,
        tags=("x", "y"),
        ignore_errors=True,
    )

    first, second = whole.nodes
    assert (first.timeout, first.retry.attempts, first.tags) == (5.0, 2, ("x", "y"))
    assert (second.timeout, second.retry.attempts, second.tags) == (60.0, 4, ("x", "y"))
    assert first.tolerance is strict
    assert second.ignore_errors


@given(st.lists(st.sampled_from("abc"), max_size=6))
def test_edges_are_never_named_twice(names: list[str]) -> None:
    whole = parallel(step("a"), step("b"), step("c"), step("z"))
    for name in names:
        whole = link(whole, before=name, after="z")

    assert edges(whole)["z"][0] == tuple(dict.fromkeys(names))


def test_fragments_are_values() -> None:
    first = step("a")

    chain(first, step("b"))

    assert first == step("a")
    with pytest.raises(AttributeError):
        first.nodes = ()  # type: ignore[misc]  # that it is refused is the claim
    assert msgspec.structs.replace(first) == first
