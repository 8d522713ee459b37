"""Random plans: valid graphs of every shape there is, for property tests of all layers.

`dags` draws edges freely (not series-parallel), `fragments` uses the algebra, with scopes, hooks
and compensations; `graphs` is either. All hosts of a graph are `h1`, `h2`, …; all ids are paths
under `p`, so that selections and scopes have something to bite on. With `details`, nodes also have
parameters, retries, limits and the rest; without, examples are drawn several times faster.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache
from typing import Any, Literal, TypeVar, get_args

import msgspec
from hypothesis import strategies as st
from tests.unit_order import Order, follows, follows_on_host, units_of

from kubexm.plan import (
    Allowance,
    Cause,
    ExecutionFragment,
    ExecutionGraph,
    ExecutionNode,
    GraphExecutionResult,
    HookFragment,
    HostGroup,
    HostResult,
    Join,
    Key,
    NodeResult,
    Pool,
    ResourceConstraints,
    RetryPolicy,
    StepSpec,
    Tolerance,
    build,
    chain,
    node,
    one_of,
    parallel,
    per_host,
    prefixed,
    rolling,
    scope,
)
from kubexm.plan.policy import FailureClass, OnFailure
from kubexm.plan.result import Sign, Status
from kubexm.plan.scope import MOMENTS

POOLS = {"download": Pool(2), "packages": Pool(1, "host")}
flags = st.booleans()
sequences = st.sampled_from([chain, per_host, parallel])
C = TypeVar("C")
KINDS = ("command", "file", "service", "template")
TAGS = ("config", "network", "slow")

finite = st.floats(allow_nan=False, allow_infinity=False)
scalars = st.none() | st.booleans() | st.integers() | finite | st.text(max_size=8)
json_values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=4,
)
params: st.SearchStrategy[dict[str, Any]] = st.just({}) | st.dictionaries(
    st.text(max_size=4), json_values, max_size=3
)
seconds = st.floats(min_value=0.0, max_value=1e6)

retry_policies = st.builds(
    RetryPolicy,
    attempts=st.integers(1, 4),
    delay=seconds,
    exponential_backoff=st.booleans(),
    jitter=st.floats(0.0, 1.0),
    retry_on=st.sets(st.sampled_from(get_args(FailureClass))).map(lambda some: tuple(sorted(some))),
)
allowances = st.builds(Allowance, count=st.integers(0, 3), percent=st.floats(0.0, 100.0))
tolerances = st.builds(Tolerance, unreachable=allowances, refused=allowances, failed=allowances)
limits = st.builds(
    ResourceConstraints,
    max_concurrency_per_host=st.integers(0, 2),
    global_concurrency_limit=st.integers(0, 2),
    pools=st.sets(st.sampled_from(sorted(POOLS))).map(lambda some: tuple(sorted(some))),
)


def host_names(count: int) -> tuple[str, ...]:
    """`h1` to `h<count>`."""
    return tuple(f"h{number}" for number in range(1, count + 1))


# Strategies that are made while drawing cost more than the drawing: hence the caches.
dice = {sides: st.integers(1, sides) for sides in (2, 3, 5, 7)}


def some_of(choices: Sequence[str], min_size: int = 0) -> st.SearchStrategy[tuple[str, ...]]:
    """A part of these, in their order: none of them too, unless `min_size` is 1."""
    return _some_of(tuple(choices), min_size)


@lru_cache(maxsize=4096)
def _some_of(choices: tuple[str, ...], min_size: int) -> st.SearchStrategy[tuple[str, ...]]:
    return st.integers(min_size, 2 ** len(choices) - 1).map(
        lambda bits: tuple(choice for at, choice in enumerate(choices) if bits >> at & 1)
    )


def one(*choices: C) -> st.SearchStrategy[C]:
    """One of these."""
    return _one(choices)


@lru_cache(maxsize=256)
def _one(choices: tuple[Any, ...]) -> st.SearchStrategy[Any]:
    return st.sampled_from(choices)


@st.composite
def settings(draw: st.DrawFn) -> dict[str, Any]:
    """Everything a node may have besides its step, hosts and edges."""
    rare = st.sampled_from([False, False, True])
    return {
        "retry": draw(retry_policies) if draw(rare) else RetryPolicy(),
        "limits": draw(limits) if draw(rare) else ResourceConstraints(),
        "timeout": draw(st.none() | st.floats(0.5, 1e4)) if draw(rare) else None,
        "tolerance": draw(tolerances) if draw(rare) else None,
        "when": draw(st.none() | st.text(max_size=12)) if draw(rare) else None,
        "ignore_errors": draw(rare) and draw(flags),
        "tags": draw(some_of(TAGS)),
    }


@cache
def specs(details: bool) -> st.SearchStrategy[StepSpec]:
    """A step of some kind."""
    return st.builds(StepSpec, st.sampled_from(KINDS), params if details else st.just({}))


@cache
def details_of(details: bool) -> st.SearchStrategy[dict[str, Any]]:
    """Settings for a node, or none but its tags."""
    return settings() if details else some_of(TAGS[:1]).map(lambda tags: {"tags": tags})


@st.composite
def dags(
    draw: st.DrawFn,
    *,
    max_nodes: int = 8,
    max_hosts: int = 4,
    values: bool = True,
    details: bool = False,
) -> ExecutionGraph:
    """A graph with any edges that no cycle forbids: holes, joins, `one_of`, both kinds of edge."""
    hosts = host_names(draw(st.integers(1, max_hosts)))
    nodes: list[ExecutionNode] = []
    joins: list[Join] = []
    for number in range(draw(one(*range(1, max_nodes + 1)))):
        known = [*(vertex.id for vertex in nodes), *(join.id for join in joins)]
        floating = {vertex.id for vertex in nodes if vertex.one_of}
        after = draw(some_of(known))
        if known and draw(dice[5]) == 1:
            lane = draw(some_of([id for id in known if id not in floating]))
            joins.append(Join(_path(draw, f"j{number}"), after, lane))
            continue
        bound_late = draw(dice[5]) == 1
        lane = () if bound_late else draw(some_of([id for id in known if id not in floating]))
        nodes.append(
            ExecutionNode(
                id=_path(draw, f"n{number}"),
                name=f"node {number}",
                step=draw(specs(details)),
                hosts=draw(some_of(hosts, min_size=1)),
                one_of=bound_late,
                after=after,
                after_same_host=lane,
                **draw(details_of(details)),
            )
        )
    graph = _graph(draw, hosts, nodes, joins)
    return draw(with_values(graph)) if values else graph


def _path(draw: st.DrawFn, name: str) -> str:
    return f"p/{draw(one('m1', 'm2', 'm2/t1'))}/{name}"


def _graph(
    draw: st.DrawFn, hosts: tuple[str, ...], nodes: list[ExecutionNode], joins: list[Join]
) -> ExecutionGraph:
    groups = [HostGroup("workers", hosts, draw(st.integers(0, len(hosts))))]
    return build(
        "p",
        nodes,
        joins=joins,
        hosts=hosts,
        groups=tuple(groups if draw(flags) else ()),
        pools=dict(POOLS),
        on_failure=draw(one(*get_args(OnFailure))),
        digests={"template:x": "0123"} if draw(flags) else {},
    )


@st.composite
def with_values(draw: st.DrawFn, graph: ExecutionGraph) -> ExecutionGraph:
    """The graph with some nodes that leave values, and some that rightly count on them."""
    keys = {item.id: key for item in graph if (key := _key(draw, item)) is not None}
    if not keys:
        return graph
    orders = {"run": follows(graph), "host": follows_on_host(graph)}
    nodes = {}
    for item in graph:
        ready = [
            key.name
            for id, key in keys.items()
            if reaches(graph.nodes[id], key, item, orders[key.scope])
        ]
        provides = (keys[item.id],) if item.id in keys else ()
        needs = draw(some_of(ready, min_size=min(len(ready), draw(flags))))
        spec = msgspec.structs.replace(item.step, needs=needs, provides=provides)
        nodes[item.id] = msgspec.structs.replace(item, step=spec)
    return msgspec.structs.replace(graph, nodes=nodes)


def _key(draw: st.DrawFn, item: ExecutionNode) -> Key | None:
    if item.hook is not None or draw(flags):
        return None
    reach: Literal["run", "host"] = "host"
    if item.one_of or len(item.hosts) == 1:
        reach = draw(one("run", "host"))
    ttl = draw(st.none() | st.floats(1.0, 1e5))
    return Key(f"value of {item.id}", reach, draw(flags), ttl)


def reaches(provider: ExecutionNode, key: Key, item: ExecutionNode, before: Order) -> bool:
    """Whether every unit of `item` comes after the unit that leaves the value for it."""
    if key.scope == "run":
        (unit,) = units_of(provider)
        return all(unit in before[other] for other in units_of(item))
    floating = provider.one_of or item.one_of
    return not floating and all((provider.id, host) in before[item.id, host] for host in item.hosts)


@st.composite
def fragments(
    draw: st.DrawFn, hosts: tuple[str, ...], *, depth: int = 3, details: bool = False
) -> ExecutionFragment | None:
    """A fragment made by the algebra: None where it has nothing to do."""
    return _Algebra(draw, hosts, details).fragment(depth)


class _Algebra:
    def __init__(self, draw: st.DrawFn, hosts: tuple[str, ...], details: bool) -> None:
        self.draw = draw
        self.hosts = hosts
        self.details = details
        self.numbers: Iterator[int] = itertools.count(1)

    def fragment(self, depth: int, hosts: tuple[str, ...] = ()) -> ExecutionFragment | None:
        """Up to `depth` levels; on a part of `hosts`, else of all of them."""
        hosts = hosts or self.hosts
        makers: list[Callable[[int, tuple[str, ...]], ExecutionFragment | None]] = [self.leaf]
        if depth:
            makers = [self.sequence, self.scope, self.rolling, *makers[depth - 1 :]]
        chosen: int = self.draw(one(*range(len(makers))))
        return makers[chosen](depth - 1, hosts)

    def leaf(self, depth: int, hosts: tuple[str, ...]) -> ExecutionFragment | None:
        required = self.draw(dice[7]) > 1
        on = self.draw(some_of(hosts, min_size=1)) if required else ()
        chosen = one_of(on) if self.draw(dice[5]) == 1 else on
        spec, rest = self.draw(specs(self.details)), self.draw(details_of(self.details))
        return node(f"n{next(self.numbers)}", spec, on=chosen, **rest)

    def sequence(self, depth: int, hosts: tuple[str, ...]) -> ExecutionFragment:
        count = self.draw(one(2, 3, 4))
        parts = [self.fragment(depth, hosts) for _ in range(count)]
        return self.draw(sequences)(*parts)

    def rolling(self, depth: int, hosts: tuple[str, ...]) -> ExecutionFragment:
        size = self.draw(dice[2])
        return rolling(hosts, size, lambda some: self.fragment(depth, tuple(some)))

    def scope(self, depth: int, hosts: tuple[str, ...]) -> ExecutionFragment | None:
        hooks = [self.hook(hosts) for _ in range(self.draw(dice[3]) - 1)]
        undo = self.fragment(0, hosts) if self.draw(flags) else None
        return scope(
            f"s{next(self.numbers)}",
            self.fragment(depth, hosts),
            hooks=[hook for hook in hooks if hook is not None],
            compensate=undo,
        )

    def hook(self, hosts: tuple[str, ...]) -> HookFragment | None:
        body = self.leaf(0, hosts)
        if body is None:
            return None
        return HookFragment(self.draw(one(*MOMENTS)), body, self.draw(flags))


@st.composite
def algebraic(
    draw: st.DrawFn, *, max_hosts: int = 4, values: bool = True, details: bool = False
) -> ExecutionGraph:
    """A graph made by the algebra, with scopes, hooks, compensations and rolling batches."""
    hosts = host_names(draw(st.integers(1, max_hosts)))
    whole = prefixed("p", draw(fragments(hosts, details=details)))
    if whole is None:
        whole = prefixed("p", node("n0", StepSpec("command"), on=hosts))
        assert whole is not None
    graph = _graph(draw, hosts, list(whole.nodes), list(whole.joins))
    graph = msgspec.structs.replace(graph, compensations=whole.compensations)
    return draw(with_values(graph)) if values else graph


def graphs(
    *, max_nodes: int = 8, values: bool = True, details: bool = False
) -> st.SearchStrategy[ExecutionGraph]:
    """Any valid graph."""
    free = dags(max_nodes=max_nodes, values=values, details=details)
    return free | algebraic(values=values, details=details)


moments = st.integers(0, 4 * 10**15).map(
    lambda microseconds: datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=microseconds)
)
causes = st.builds(
    Cause, node=st.text(max_size=6), host=st.text(max_size=3), message=st.text(max_size=12)
)


@st.composite
def host_results(draw: st.DrawFn, host: str) -> HostResult:
    """What one unit came to, in any way the type allows."""
    start = draw(st.none() | moments)
    duration = timedelta(microseconds=draw(st.integers(0, 10**9)))
    return HostResult(
        host_name=host,
        status=draw(st.sampled_from(get_args(Status))),
        message=draw(st.text(max_size=12)),
        stdout=draw(st.text(max_size=12)),
        stderr=draw(st.text(max_size=12)),
        start_time=start,
        end_time=start and start + duration,
        skipped=draw(flags),
        changed=draw(flags),
        attempts=draw(st.integers(0, 3)),
        failure=draw(st.none() | st.sampled_from(get_args(FailureClass))),
        cause=draw(st.none() | causes),
        sign=draw(st.sampled_from(get_args(Sign))),
        diff=draw(st.text(max_size=12)),
    )


@st.composite
def results(draw: st.DrawFn) -> GraphExecutionResult:
    """A result that mirrors some graph, whether or not a run could end so."""
    graph = draw(dags(max_nodes=3, max_hosts=2, values=False))
    nodes = {
        item.id: NodeResult(
            node_name=item.name,
            step_name=item.step.kind,
            status=draw(st.sampled_from(get_args(Status))),
            message=draw(st.text(max_size=12)),
            start_time=draw(st.none() | moments),
            changed=draw(flags),
            host_results={host: draw(host_results(host)) for host in item.hosts},
        )
        for item in graph
    }
    inner = GraphExecutionResult("undo", "Success", {})
    return GraphExecutionResult(
        graph_name=graph.name,
        status=draw(st.sampled_from(get_args(Status))),
        node_results=nodes,
        start_time=draw(st.none() | moments),
        end_time=draw(st.none() | moments),
        dry_run=draw(flags),
        degraded=draw(flags),
        message=draw(st.text(max_size=12)),
        quarantined=draw(st.dictionaries(st.text(max_size=3), causes, max_size=2)),
        rollback=draw(st.sampled_from([None, inner])),
    )
