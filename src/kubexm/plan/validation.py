"""What may be wrong with a graph; every problem is found, not the first."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from kubexm.common.nearest import did_you_mean
from kubexm.errors import Problem
from kubexm.plan.node import Compensation, ExecutionNode, Join
from kubexm.plan.policy import HostGroup, Pool

_BAD_ID = frozenset(" \t\n\r")


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


def problems(graph: GraphData, kinds: Container[str] | None) -> list[Problem]:
    """Everything that is wrong with this graph; order and values only once its edges hold."""
    found = [*_vertices(graph, kinds), *_settings(graph)]
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
    return [*_values(graph, order), *_compensations(graph, kinds)]


def _vertices(graph: GraphData, kinds: Container[str] | None) -> Iterator[Problem]:
    known_hosts = frozenset(graph.hosts)
    for id, node in graph.nodes.items():
        yield from _identity(id, node.id, id in graph.joins)
        yield from _edges(graph, node)
        if kinds is not None and node.step.kind not in kinds:
            yield Problem(f"unknown step kind `{node.step.kind}`", where=id)
        yield from _hosts(node, known_hosts)
        yield from _node_settings(graph, node)
    for id, join in graph.joins.items():
        yield from _identity(id, join.id, False)
        yield from _edges(graph, join)


def _identity(key: str, id: str, taken: bool) -> Iterator[Problem]:
    if key != id:
        yield Problem(f"stored under `{key}` but called `{id}`", where=id)
    if taken:
        yield Problem("both a node and a join have this id", where=id)
    if not id or not all(id.split("/")) or not _BAD_ID.isdisjoint(id):
        yield Problem(
            f"`{id}` is not a path", where=id, hint="use words without blanks, joined by `/`"
        )


def _edges(graph: GraphData, vertex: ExecutionNode | Join) -> Iterator[Problem]:
    for dependency in vertex.after + vertex.after_same_host:
        if dependency not in graph.nodes and dependency not in graph.joins:
            hint = did_you_mean(dependency, graph.nodes)
            yield Problem(f"depends on `{dependency}`, which does not exist", vertex.id, hint)
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


def _hosts(node: ExecutionNode, known: frozenset[str]) -> Iterator[Problem]:
    if not node.hosts:
        yield Problem(
            "runs on no host", where=node.id, hint="leave the node out or give it a host"
        )
    for host in node.hosts:
        if host not in known:
            yield Problem(f"unknown host `{host}`", node.id, did_you_mean(host, known))
    if len(set(node.hosts)) != len(node.hosts):
        yield Problem("names a host twice", where=node.id)


def _node_settings(graph: GraphData, node: ExecutionNode) -> Iterator[Problem]:
    for pool in node.limits.pools:
        if pool not in graph.pools:
            yield Problem(f"unknown pool `{pool}`", node.id, did_you_mean(pool, graph.pools))
    if node.retry.attempts < 1:
        yield Problem(f"{node.retry.attempts} attempts, want at least 1", where=node.id)
    if node.retry.delay < 0 or node.retry.jitter < 0:
        yield Problem("a negative delay or jitter", where=node.id)
    if node.timeout is not None and node.timeout <= 0:
        yield Problem(f"timeout of {node.timeout} s, want more than 0", where=node.id)
    if node.limits.max_concurrency_per_host < 0 or node.limits.global_concurrency_limit < 0:
        yield Problem("a negative limit", where=node.id)


def _settings(graph: GraphData) -> Iterator[Problem]:
    if not graph.name:
        yield Problem("the graph has no name")
    for name, pool in graph.pools.items():
        if pool.size < 1:
            yield Problem(f"pool `{name}` has size {pool.size}, want at least 1")
    for group in graph.groups:
        if not 0 <= group.minimum <= len(group.hosts):
            total = len(group.hosts)
            yield Problem(f"group `{group.name}` wants {group.minimum} of its {total} hosts")


def _compensations(graph: GraphData, kinds: Container[str] | None) -> Iterator[Problem]:
    for compensation in graph.compensations:
        scope = compensation.scope
        if not any(inside(id, scope) for id in graph.nodes):
            yield Problem("a compensation for a scope without nodes", where=scope)
        yield from problems(_CompensationGraph(graph, compensation), kinds)


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


def _values(graph: GraphData, order: Sequence[str]) -> Iterator[Problem]:
    providers = {id: node.step.provides for id, node in graph.nodes.items() if node.step.provides}
    if not providers and not any(node.step.needs for node in graph.nodes.values()):
        return
    yield from _providers(graph, providers)
    yield from _needs(graph, order)


def _providers(graph: GraphData, providers: Iterable[str]) -> Iterator[Problem]:
    run_scoped: dict[str, str] = {}
    host_scoped: dict[tuple[str, str], str] = {}
    for id in providers:
        node = graph.nodes[id]
        for key in node.step.provides:
            if key.scope == "run":
                if not node.one_of and len(node.hosts) != 1:
                    yield Problem(
                        f"provides `{key.name}` for the whole run from {len(node.hosts)} hosts",
                        where=id,
                        hint="run it on one host, on `one_of` them, or give the value host scope",
                    )
                other = run_scoped.setdefault(key.name, id)
                if other != id:
                    yield Problem(f"provides `{key.name}`, and so does `{other}`", where=id)
                continue
            for host in node.hosts:
                other = host_scoped.setdefault((key.name, host), id)
                if other != id:
                    yield Problem(
                        f"provides `{key.name}` on `{host}`, and so does `{other}`", where=id
                    )


def _needs(graph: GraphData, order: Sequence[str]) -> Iterator[Problem]:
    """One pass in order: what the run has, and on which hosts, before each vertex."""
    for_run: dict[str, frozenset[str]] = {}
    on_hosts: dict[str, dict[str, frozenset[str]]] = {}
    for id in order:
        vertex = graph.nodes.get(id) or graph.joins[id]
        run_keys = frozenset[str]().union(
            *(for_run[dependency] for dependency in vertex.after + vertex.after_same_host)
        )
        host_keys = _union(on_hosts[dependency] for dependency in vertex.after_same_host)
        if isinstance(vertex, ExecutionNode):
            yield from _missing(vertex, run_keys, host_keys)
            run_keys, host_keys = _with_provided(vertex, run_keys, host_keys)
        for_run[id], on_hosts[id] = run_keys, host_keys


def _union(parts: Iterable[dict[str, frozenset[str]]]) -> dict[str, frozenset[str]]:
    united: dict[str, frozenset[str]] = {}
    for part in parts:
        for key, hosts in part.items():
            united[key] = united[key] | hosts if key in united else hosts
    return united


def _missing(
    node: ExecutionNode, run_keys: frozenset[str], host_keys: Mapping[str, frozenset[str]]
) -> Iterator[Problem]:
    for need in node.step.needs:
        if need in run_keys:
            continue
        lacking = [host for host in node.hosts if host not in host_keys.get(need, ())]
        if lacking:
            where = "" if len(lacking) == len(node.hosts) else f" on {', '.join(lacking[:5])}"
            yield Problem(
                f"needs the value `{need}`, which nothing before it provides{where}",
                where=node.id,
                hint="put a step that provides it before this one, on the same hosts",
            )


def _with_provided(
    node: ExecutionNode, run_keys: frozenset[str], host_keys: dict[str, frozenset[str]]
) -> tuple[frozenset[str], dict[str, frozenset[str]]]:
    for key in node.step.provides:
        if key.scope == "run":
            run_keys = run_keys | {key.name}
        else:
            hosts = host_keys.get(key.name, frozenset()) | frozenset(node.hosts)
            host_keys = {**host_keys, key.name: hosts}
    return run_keys, host_keys
