"""What may be wrong with a graph; every problem is found, not the first."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Protocol

from kubexm.common.nearest import did_you_mean
from kubexm.errors import Problem
from kubexm.plan import values
from kubexm.plan.node import ANY_HOST, Compensation, ExecutionNode, Join
from kubexm.plan.policy import HostGroup, Pool

_DEEPEST = 100
"""Scopes within scopes; trees of them are walked by recursion."""


class GraphData(Protocol):
    """The parts of a graph that validation reads."""

    @property
    def name(self) -> str: ...
    @property
    def nodes(self) -> Mapping[str, ExecutionNode]: ...
    @property
    def joins(self) -> Mapping[str, Join]: ...
    @property
    def hosts(self) -> tuple[str, ...]: ...
    @property
    def groups(self) -> tuple[HostGroup, ...]: ...
    @property
    def pools(self) -> Mapping[str, Pool]: ...
    @property
    def compensations(self) -> tuple[Compensation, ...]: ...


def problems(
    graph: GraphData, kinds: Collection[str] | None, given: Iterable[ExecutionNode] = ()
) -> list[Problem]:
    """Everything that is wrong with this graph; order and values only once its edges hold.

    What the `given` nodes provide is there from the start.
    """
    found = [*_vertices(graph, kinds, _Spelling()), *_settings(graph)]
    if found:
        return found
    order, cycle = topological_order(graph.nodes, graph.joins)
    if cycle:
        path = " → ".join(cycle)
        return [
            Problem(
                f"these nodes wait for each other: {path}",
                where=cycle[0],
                hint="remove one of these dependencies",
            )
        ]
    found = list(values.problems(graph.nodes, graph.joins, order, given))
    return [*found, *_compensations(graph, kinds)]


class _Spelling:
    """Hints with the nearest name; in a large graph only for the first few wrong names."""

    def __init__(self) -> None:
        self._comparisons = 50_000  # about two seconds of them

    def __call__(self, word: str, known: Collection[str]) -> str:
        if len(known) > self._comparisons:
            return ""
        self._comparisons -= len(known)
        return did_you_mean(word, known)


def _vertices(
    graph: GraphData, kinds: Collection[str] | None, hint: _Spelling
) -> Iterator[Problem]:
    known_hosts = frozenset(graph.hosts)
    for id, node in graph.nodes.items():
        yield from _identity(id, node.id, id in graph.joins)
        yield from _edges(graph, node, hint)
        if kinds is not None and (kind := node.step.kind) not in kinds:
            yield Problem(f"unknown step kind `{kind}`", id, hint(kind, kinds))
        yield from _hosts(node, known_hosts, hint)
        yield from _node_settings(graph, node, hint)
    for id, join in graph.joins.items():
        yield from _identity(id, join.id, False)
        yield from _edges(graph, join, hint)


def _identity(key: str, id: str, taken: bool) -> Iterator[Problem]:
    if key != id:
        yield Problem(f"stored under `{key}` but called `{id}`", where=id)
    if taken:
        yield Problem("both a node and a join have this id", where=id)
    if "//" in f"/{id}/" or _has_blank(id):
        yield Problem(
            f"`{id}` is not a path", where=id, hint="use words without blanks, joined by `/`"
        )
    if id.count("/") > _DEEPEST:
        yield Problem(f"lies in more than {_DEEPEST} scopes", where=id, hint="nest less")


def _has_blank(name: str) -> bool:
    return name.split() != [name]


def _edges(graph: GraphData, vertex: ExecutionNode | Join, hint: _Spelling) -> Iterator[Problem]:
    for dependency in vertex.after + vertex.after_same_host:
        if dependency not in graph.nodes and dependency not in graph.joins:
            said = f"depends on `{dependency}`, which does not exist"
            yield Problem(said, vertex.id, hint(dependency, graph.nodes))
    if isinstance(vertex, ExecutionNode) and vertex.one_of and vertex.after_same_host:
        yield _one_of_edge(vertex.id)
    for dependency in vertex.after_same_host:
        target = graph.nodes.get(dependency)
        if target is not None and target.one_of:
            yield _one_of_edge(vertex.id)


def _one_of_edge(id: str) -> Problem:
    return Problem(
        "a same-host edge touches a `one_of` node, whose host is not known beforehand",
        where=id,
        hint="depend on it with a barrier",
    )


def _hosts(node: ExecutionNode, known: frozenset[str], hint: _Spelling) -> Iterator[Problem]:
    if not node.hosts:
        yield Problem("runs on no host", where=node.id, hint="leave the node out or give it a host")
    for host in node.hosts:
        if host not in known:
            yield Problem(f"unknown host `{host}`", node.id, hint(host, known))
    if len(set(node.hosts)) != len(node.hosts):
        yield Problem("names a host twice", where=node.id)


def _node_settings(graph: GraphData, node: ExecutionNode, hint: _Spelling) -> Iterator[Problem]:
    for pool in node.limits.pools:
        if pool not in graph.pools:
            yield Problem(f"unknown pool `{pool}`", node.id, hint(pool, graph.pools))
    if node.timeout is not None and not 0 < node.timeout < math.inf:
        wanted = "a number" if node.timeout == math.inf else "more than 0"
        yield Problem(f"timeout of {node.timeout} s, want {wanted}", where=node.id)
    if node.limits.max_concurrency_per_host < 0 or node.limits.global_concurrency_limit < 0:
        yield Problem("a negative limit", where=node.id)
    yield from _retry(node)
    yield from _tolerance(node)


def _retry(node: ExecutionNode) -> Iterator[Problem]:
    retry = node.retry
    if retry.attempts < 1:
        yield Problem(f"{retry.attempts} attempts, want at least 1", where=node.id)
    if retry.delay < 0 or retry.max_delay < 0 or retry.jitter < 0:
        yield Problem("a negative delay or jitter", where=node.id)
    if not math.isfinite(retry.delay + retry.max_delay + retry.jitter):
        yield Problem("a delay or jitter without end", where=node.id)


def _tolerance(node: ExecutionNode) -> Iterator[Problem]:
    if (given := node.tolerance) is None:
        return
    for allowance in (given.unreachable, given.refused, given.failed):
        if allowance.count < 0:
            yield Problem(f"tolerates {allowance.count} hosts, want 0 or more", where=node.id)
        if not 0 <= allowance.percent <= 100:
            said = f"tolerates {allowance.percent} % of its hosts, want 0 to 100"
            yield Problem(said, where=node.id)


def _settings(graph: GraphData) -> Iterator[Problem]:
    if not graph.name:
        yield Problem("the graph has no name")
    for host, times in Counter(graph.hosts).items():
        if times > 1:
            yield Problem(f"names the host `{host}` twice")
        # `*` stands for a host that is not chosen yet, and `/` would break the paths of expanders.
        if host == ANY_HOST or "/" in host or _has_blank(host):
            yield Problem(f"`{host}` is not a host name", hint="use a word without blanks and `/`")
    for name, pool in graph.pools.items():
        if pool.size < 1:
            yield Problem(f"pool `{name}` has size {pool.size}, want at least 1")
    for group in graph.groups:
        yield from _group(group, graph.hosts)


def _group(group: HostGroup, known: Collection[str]) -> Iterator[Problem]:
    if not 0 <= group.minimum <= len(group.hosts):
        total = len(group.hosts)
        yield Problem(f"group `{group.name}` wants {group.minimum} of its {total} hosts")
    for host in sorted(set(group.hosts).difference(known)):
        hint = did_you_mean(host, known)
        yield Problem(f"group `{group.name}` has the unknown host `{host}`", hint=hint)


def _compensations(graph: GraphData, kinds: Collection[str] | None) -> Iterator[Problem]:
    taken = {*graph.nodes, *graph.joins}
    scopes: set[str] = set()
    for compensation in graph.compensations:
        scope = compensation.scope
        if not any(inside(id, scope) for id in graph.nodes):
            yield Problem("a compensation for a scope without nodes", where=scope)
        if scope in scopes:
            yield Problem("two compensations for one scope", where=scope)
        scopes.add(scope)
        nodes, joins = compensation.nodes, compensation.joins
        for id in (*(node.id for node in nodes), *(join.id for join in joins)):
            if id in taken:
                yield Problem("two nodes have this id", where=id)
            taken.add(id)
        # By the time something is undone, the values of the run are there.
        inner = _CompensationGraph(graph, compensation)
        yield from problems(inner, kinds, given=graph.nodes.values())


class _CompensationGraph:
    """A compensation as a graph of its own, so that the same rules hold for it."""

    def __init__(self, graph: GraphData, compensation: Compensation) -> None:
        self.name = compensation.scope
        self.nodes = {node.id: node for node in compensation.nodes}
        self.joins = {join.id: join for join in compensation.joins}
        self.hosts = graph.hosts
        self.groups: tuple[HostGroup, ...] = ()
        self.pools = graph.pools
        self.compensations: tuple[Compensation, ...] = ()


def scopes_around(id: str) -> Iterator[str]:
    """The path itself, and all above it."""
    yield id
    while "/" in id:
        id = id.rpartition("/")[0]
        yield id


def inside(id: str, scope: str) -> bool:
    """Whether a path is this scope or lies under it."""
    return id == scope or id.startswith(scope + "/")


def topological_order(
    nodes: Mapping[str, ExecutionNode], joins: Mapping[str, Join]
) -> tuple[list[str], list[str]]:
    """Ids so that each follows what it depends on; else the ids of one whole cycle."""
    waiting: dict[str, int] = {}
    dependents: dict[str, list[str]] = {}
    for vertices in (nodes, joins):
        for id, vertex in vertices.items():
            dependencies = {*vertex.after, *vertex.after_same_host}
            waiting[id] = len(dependencies)
            for dependency in dependencies:
                dependents.setdefault(dependency, []).append(id)
    order = [id for id, count in waiting.items() if not count]
    for id in order:
        for dependent in dependents.get(id, ()):
            waiting[dependent] -= 1
            if not waiting[dependent]:
                order.append(dependent)
    if len(order) == len(waiting):
        return order, []
    return [], _cycle({id for id, count in waiting.items() if count}, nodes, joins)


def _cycle(
    stuck: set[str], nodes: Mapping[str, ExecutionNode], joins: Mapping[str, Join]
) -> list[str]:
    # Every stuck vertex has a stuck dependency, so walking them must come round.
    path: dict[str, int] = {}
    here = min(stuck)
    while here not in path:
        path[here] = len(path)
        vertex = nodes.get(here) or joins[here]
        here = next(id for id in vertex.after + vertex.after_same_host if id in stuck)
    ring = list(path)[path[here] :]
    return [*reversed([here, *ring[1:]]), ring[-1]] if len(ring) > 1 else [here, here]
