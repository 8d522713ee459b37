"""Values in a graph: which nodes leave them, and which nodes they reach.

A value of the run comes from one unit and crosses barriers. A value of a host travels along
same-host edges, since only those say that the unit on this very host is done.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from kubexm.errors import Problem
from kubexm.plan.node import ExecutionNode, Join

Nodes = Mapping[str, ExecutionNode]
Joins = Mapping[str, Join]
_Leaving = Mapping[str, Sequence[ExecutionNode]]
"""The nodes that leave a value, by its name."""


class NotAwaited(Problem, frozen=True):
    """A value that a node needs is left by another one, for which it does not wait."""

    provider: str = ""
    same_host: bool = False
    """Whether the other one runs wherever the value is missed."""


def problems(
    nodes: Nodes, joins: Joins, order: Sequence[str], given: Iterable[ExecutionNode] = ()
) -> Iterator[Problem]:
    """What is wrong with the values of these nodes; what the `given` provide is there already."""
    if not any(node.step.provides or node.step.needs for node in nodes.values()):
        return
    yield from _providers(nodes)
    reach, leaving = _Reach(_provided(given)), _leaving(nodes)
    for id in order:
        vertex = nodes.get(id) or joins[id]
        known = reach.before(vertex)
        if isinstance(vertex, ExecutionNode):
            for need, hosts in _lacking(vertex, known):
                yield from _missing(vertex, need, hosts, known, leaving)
        reach.add(vertex, known)


def carried(nodes: Nodes, joins: Joins, order: Sequence[str]) -> dict[str, ExecutionNode]:
    """The nodes, with a same-host edge from whatever leaves a host the value that they need there.

    It is added only where the one is before the other anyway, behind a barrier: so nobody waits
    for more than before.
    """
    linked = dict(nodes)
    leaves = _by_host(nodes)
    reach = _Reach(_Known())
    for id in order if leaves else ():
        vertex = linked.get(id) or joins[id]
        known = reach.before(vertex)
        if isinstance(vertex, ExecutionNode) and (more := tuple(_behind(vertex, known, leaves))):
            edges = (*vertex.after_same_host, *more)
            vertex = linked[id] = msgspec.structs.replace(vertex, after_same_host=edges)
            known = reach.before(vertex)
        reach.add(vertex, known)
    return linked


def _leaving(nodes: Nodes) -> _Leaving:
    found: dict[str, list[ExecutionNode]] = {}
    for node in nodes.values():
        for key in node.step.provides:
            found.setdefault(key.name, []).append(node)
    return found


def _by_host(nodes: Nodes) -> dict[tuple[str, str], str]:
    """Who leaves a value for a host; without those whose host is not known beforehand."""
    return {
        (key.name, host): node.id
        for node in nodes.values()
        for key in node.step.provides
        for host in node.hosts
        if key.scope == "host" and not node.one_of
    }


def _behind(
    node: ExecutionNode, known: _Known, leaves: Mapping[tuple[str, str], str]
) -> Iterable[str]:
    """Who comes before a node and leaves a host what does not reach the node there."""
    if node.one_of:
        return ()
    lacking = ((need, host) for need, hosts in _lacking(node, known) for host in hosts)
    found = (leaves.get(pair) for pair in lacking)
    return dict.fromkeys(id for id in found if id is not None and id in known.before)


def _providers(nodes: Nodes) -> Iterator[Problem]:
    run_scoped: dict[str, str] = {}
    host_scoped: dict[tuple[str, str], str] = {}
    for id, node in nodes.items():
        for key in node.step.provides:
            if key.ttl is not None and not 0 < key.ttl < math.inf:
                said = f"provides `{key.name}` for {key.ttl} s, want more than 0"
                yield Problem(said, where=id, hint="leave out `ttl` for a value that stays")
            if key.scope == "run":
                yield from _run_provider(node, key.name, run_scoped)
            else:
                yield from _host_provider(node, key.name, host_scoped)
    for (name, _), id in host_scoped.items():
        if (other := run_scoped.pop(name, None)) is not None:
            said = f"provides `{name}` for each host, and `{other}` for the whole run"
            yield Problem(said, where=id, hint="give one of the values another name")


def _run_provider(node: ExecutionNode, key: str, known: dict[str, str]) -> Iterator[Problem]:
    if not node.one_of and len(node.hosts) != 1:
        yield Problem(
            f"provides `{key}` for the whole run from {len(node.hosts)} hosts",
            where=node.id,
            hint="run it on one host, on `one_of` them, or give the value host scope",
        )
    if (other := known.setdefault(key, node.id)) != node.id:
        yield _doubled(node, f"provides `{key}`, and so does `{other}`")


def _host_provider(
    node: ExecutionNode, key: str, known: dict[tuple[str, str], str]
) -> Iterator[Problem]:
    shared: dict[str, list[str]] = {}
    for host in node.hosts:
        if (other := known.setdefault((key, host), node.id)) != node.id:
            shared.setdefault(other, []).append(host)
    for other, hosts in shared.items():
        yield _doubled(node, f"provides `{key}` on {_listed(hosts)}, and so does `{other}`")


def _doubled(node: ExecutionNode, said: str) -> Problem:
    return Problem(said, where=node.id, hint="give one of the values another name")


class _Known(msgspec.Struct, frozen=True):
    """The values that are there when a vertex opens, and those a barrier on it would give."""

    anywhere: frozenset[str] = frozenset()
    on_hosts: Mapping[str, frozenset[str]] = {}
    """Along same-host edges: a value of a host, or of the run where it was made."""
    after_barrier: frozenset[str] = frozenset()
    before: frozenset[str] = frozenset()
    """The nodes that leave values and come before, by whatever edges."""


class _Reach:
    """What is known at each vertex, told in topological order."""

    def __init__(self, given: _Known) -> None:
        self._given = given
        self._known: dict[str, _Known] = {}

    def before(self, vertex: ExecutionNode | Join) -> _Known:
        """What there is before a vertex."""
        barred = [self._known[id] for id in vertex.after]
        here = [self._known[id] for id in vertex.after_same_host]
        anywhere = self._given.anywhere.union(
            *(one.after_barrier for one in barred), *(one.anywhere for one in here)
        )
        return _Known(
            anywhere,
            _union([self._given.on_hosts, *(one.on_hosts for one in here)]),
            anywhere.union(*(one.after_barrier for one in here)),
            frozenset[str]().union(*(one.before for one in (*barred, *here))),
        )

    def add(self, vertex: ExecutionNode | Join, known: _Known) -> None:
        """Note what there is behind a vertex."""
        if isinstance(vertex, ExecutionNode) and vertex.step.provides:
            known = _with_provided(vertex, known)
        self._known[vertex.id] = known


def _provided(nodes: Iterable[ExecutionNode]) -> _Known:
    anywhere: set[str] = set()
    on_hosts: dict[str, frozenset[str]] = {}
    for node in nodes:
        for key in node.step.provides:
            if key.scope == "run":
                anywhere.add(key.name)
            else:
                on_hosts[key.name] = on_hosts.get(key.name, frozenset()) | frozenset(node.hosts)
    return _Known(frozenset(anywhere), on_hosts)


def _union(parts: Iterable[Mapping[str, frozenset[str]]]) -> dict[str, frozenset[str]]:
    united: dict[str, frozenset[str]] = {}
    for part in parts:
        for key, hosts in part.items():
            united[key] = united[key] | hosts if key in united else hosts
    return united


def _with_provided(node: ExecutionNode, known: _Known) -> _Known:
    on_hosts = dict(known.on_hosts)
    passed = known.after_barrier
    for key in node.step.provides:
        if key.scope == "run":
            passed |= {key.name}
        on_hosts[key.name] = on_hosts.get(key.name, frozenset()) | frozenset(node.hosts)
    return _Known(known.anywhere, on_hosts, passed, known.before | {node.id})


def _lacking(node: ExecutionNode, known: _Known) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The values that do not reach a node, each with the hosts on which they are missed."""
    for need in node.step.needs:
        if need not in known.anywhere:
            there = known.on_hosts.get(need, frozenset())
            hosts = tuple(host for host in node.hosts if node.one_of or host not in there)
            if hosts:
                yield need, hosts


def _missing(
    node: ExecutionNode, need: str, hosts: Sequence[str], known: _Known, leaving: _Leaving
) -> Iterator[Problem]:
    """Why a value does not reach some hosts of a node: who leaves it, and what is in the way."""
    others = [one for one in leaving.get(need, ()) if one.id != node.id]
    some = "" if len(hosts) == len(node.hosts) else f" on {_listed(hosts)}"
    if not others:
        yield _unprovided(node, need, some)
    elif _is_of_the_run(others, need) or not any(one.id in known.before for one in others):
        yield _not_awaited(node, need, some, others[0], hosts)
    elif node.one_of or any(one.one_of for one in others):
        yield _of_no_known_host(node, need, others[0].id)
    else:
        yield from _of_each_host(node, need, hosts, known, others)


def _is_of_the_run(leaving: Iterable[ExecutionNode], need: str) -> bool:
    keys = (key for one in leaving for key in one.step.provides)
    return any(key.name == need and key.scope == "run" for key in keys)


def _unprovided(node: ExecutionNode, need: str, some: str) -> Problem:
    return Problem(
        f"needs the value `{need}`, which nothing before it provides{some}",
        where=node.id,
        hint="put a step that provides it before this one: behind a barrier for a value of "
        "the run, along same-host edges for one of each host",
    )


def _not_awaited(
    node: ExecutionNode, need: str, some: str, other: ExecutionNode, hosts: Iterable[str]
) -> Problem:
    there = f"there for `{other.id}`" if some else f"for `{other.id}`"
    return NotAwaited(
        f"needs the value `{need}`{some}, and does not wait {there}, which provides it",
        where=node.id,
        hint="depend on it with a barrier",
        provider=other.id,
        same_host=not (node.one_of or other.one_of) and {*other.hosts}.issuperset(hosts),
    )


def _of_no_known_host(node: ExecutionNode, need: str, id: str) -> Problem:
    return Problem(
        f"needs the value `{need}`, which `{id}` provides for each host, and the host of a "
        "`one_of` node is not known beforehand",
        where=node.id,
        hint="run both on hosts that are known, or give the value run scope",
    )


def _of_each_host(
    node: ExecutionNode,
    need: str,
    hosts: Sequence[str],
    known: _Known,
    leaving: Sequence[ExecutionNode],
) -> Iterator[Problem]:
    there = {host: one for one in leaving for host in one.hosts}
    if lacking := [host for host in hosts if host not in there]:
        others = f"`{leaving[0].id}` does on {_listed(leaving[0].hosts)}"
        yield Problem(
            f"needs the value `{need}` on {_listed(lacking)}, where nothing provides it: {others}",
            where=node.id,
            hint="provide it on these hosts too, or run this on the others alone",
        )
    behind = {there[host].id: there[host] for host in hosts if host in there}
    for id, one in behind.items():
        if id not in known.before:
            yield _not_awaited(node, need, "", one, one.hosts)
        else:
            yield _behind_a_barrier(node, need, id)


def _behind_a_barrier(node: ExecutionNode, need: str, id: str) -> Problem:
    return Problem(
        f"needs the value `{need}`, which `{id}` provides for each host: such a value travels "
        "along same-host edges, and a barrier is in between",
        where=node.id,
        hint="link them per host, or give the value run scope",
    )


def _listed(hosts: Sequence[str]) -> str:
    more = f" and {len(hosts) - 5} more" if len(hosts) > 5 else ""
    return f"{', '.join(hosts[:5])}{more}"
