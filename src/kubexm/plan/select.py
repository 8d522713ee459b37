"""A part of a graph: by path, tag and host, without anybody starting early through the gaps.

What is left out counts as satisfied. Its place is taken by a join with the same edges, so the
order of what is left stays what it was in the whole graph.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property

import msgspec

from kubexm.common.nearest import did_you_mean
from kubexm.errors import Problem, UnknownPath
from kubexm.plan import guards
from kubexm.plan.graph import ExecutionGraph
from kubexm.plan.guards import Guards
from kubexm.plan.node import Compensation, ExecutionNode, Join
from kubexm.plan.policy import HostGroup
from kubexm.plan.validation import scopes_around, topological_order

replace = msgspec.structs.replace
MOST_NAMES = 5
"""More of them in a message would only be in the way."""
Kept = dict[str, tuple[str, ...]]
"""The ids of the nodes that stay, each with the hosts it keeps."""


class Selection(msgspec.Struct, frozen=True):
    """What to run of a graph; each of the four narrows what the others leave.

    A path names a node or a whole scope; the first segment, the pipeline's own, may be left out;
    `*` stands for any part of one segment, or of a host's name.
    """

    only: tuple[str, ...] = ()
    """Paths or tags: nothing but these."""
    from_: tuple[str, ...] = ()
    """Paths or tags: these and all that depends on them."""
    skip: tuple[str, ...] = ()
    """Paths or tags: all but these."""
    hosts: tuple[str, ...] = ()
    """Host names: on no other host."""


def select(graph: ExecutionGraph, selection: Selection) -> ExecutionGraph:
    """The part of the graph that is selected, what guards it, and what leaves it its values."""
    if selection == Selection():
        return graph
    names = _Names(graph)
    names.check(selection)
    kept = _kept(graph, names, selection)
    if not kept:
        raise UnknownPath(
            "the selection leaves nothing to run: all its parts together name no step on any host",
            hint="select more, or leave less out; `kubexm plan -f FILE` shows what runs where",
        )
    return _restricted(graph, kept)


def _kept(graph: ExecutionGraph, names: _Names, selection: Selection) -> Kept:
    """What is selected by itself, and what that needs and is guarded by, over and over."""
    hosts = _hosts(graph, names, selection)
    chosen = _chosen(graph, names, selection)
    alone = names.hooks_alone((*selection.only, *selection.from_))
    own = (node for node in graph if node.hook is None or node.id in alone)
    kept = _on(hosts, (node for node in own if node.id in chosen))
    around = Guards(graph, names.matching(selection.skip), hosts).around
    known: Kept = {}
    while kept != known:
        known, kept = kept, _with_providers(graph.nodes, around(kept), hosts)
    return kept


def _hosts(graph: ExecutionGraph, names: _Names, selection: Selection) -> frozenset[str]:
    return names.hosts(selection.hosts) if selection.hosts else frozenset(graph.hosts)


def in_vain(
    graph: ExecutionGraph, selection: Selection, selected: ExecutionGraph
) -> Iterator[Problem]:
    """What was asked for and had no effect, because of the rest of the selection."""
    names = _Names(graph)
    hosts = {host for node in selected for host in node.hosts}
    for pattern in dict.fromkeys(selection.hosts):
        if hosts.isdisjoint(names.hosts([pattern])):
            yield _vain("--hosts", pattern, "nothing that is selected runs there")
    for pattern in dict.fromkeys(selection.only):
        if selected.nodes.keys().isdisjoint(names.matching([pattern])):
            yield _vain("--only", pattern, "the rest of the selection leaves nothing of it")
    for pattern in dict.fromkeys(selection.from_):
        below = _downstream(graph, names.matching([pattern]))
        if selected.nodes.keys().isdisjoint(below):
            yield _vain("--from", pattern, "the rest of the selection leaves nothing of it")
    wanted = _kept(graph, names, replace(selection, skip=())).keys() if selection.skip else set()
    for pattern in dict.fromkeys(selection.skip):
        meant = names.matching([pattern]) & wanted
        if not meant:
            yield _vain("--skip", pattern, "nothing of it is selected anyway")
        elif meant <= selected.nodes.keys():
            yield _vain("--skip", pattern, "what is selected needs the values that it leaves")


def _vain(flag: str, pattern: str, reason: str) -> Problem:
    return Problem(
        f"`{flag} {pattern}` has no effect: {reason}",
        hint=f"leave `{flag} {pattern}` out, or select more",
    )


def unguarded(
    graph: ExecutionGraph, selection: Selection, selected: ExecutionGraph
) -> Iterator[Problem]:
    """Scopes that have lost hooks, such as both halves of a lock, with the hosts left out."""
    if not selection.hosts:  # nothing else takes a hook away from its host
        return
    names = _Names(graph)
    around = Guards(graph, names.matching(selection.skip), names.hosts(selection.hosts))
    kept = {node.id: node.hosts for node in selected}
    for scope, hooks in around.lost(kept).items():
        yield _unguarded(scope, hooks)


def _unguarded(scope: str, hooks: Collection[ExecutionNode]) -> Problem:
    hosts = [*dict.fromkeys(host for node in hooks for host in node.hosts)]
    missed = _listed([node.id for node in hooks])
    add = f"add `--hosts {hosts[0]}`" if len(hosts) == 1 else "add these hosts by `--hosts`"
    return Problem(
        f"`--hosts` leaves out {_listed(hosts)}: what is left of `{scope}` runs without {missed}",
        hint=f"{add} to keep {'it' if len(hooks) == 1 else 'them'}",
    )


def uncompensated(graph: ExecutionGraph, selected: ExecutionGraph) -> Iterator[Problem]:
    """Scopes of which a part is left, and so not what would undo them as a whole."""
    left = {item.scope for item in selected.compensations}
    present = _scopes(node.id for node in selected)
    if graph.on_failure != "rollback":
        return
    for item in graph.compensations:
        if item.scope in present and item.scope not in left:
            yield Problem(
                f"of `{item.scope}` only a part is selected, so its `compensate` is left out: a"
                " rollback undoes its steps one by one, as far as they have an undo",
                hint=f"select all of `{item.scope}`, or nothing of it",
            )


def _listed(words: Sequence[str]) -> str:
    shown = [f"`{word}`" for word in words[:MOST_NAMES]]
    if len(words) > MOST_NAMES:
        shown.append(f"{len(words) - MOST_NAMES} more")
    return " and ".join(filter(None, (", ".join(shown[:-1]), shown[-1])))


def named(graph: ExecutionGraph, paths: tuple[str, ...], flag: str) -> tuple[str, ...]:
    """The nodes that these paths or tags name; `UnknownPath` for those that name none."""
    if not paths:
        return ()
    names = _Names(graph)
    names.check(Selection(), {flag: paths})
    found = names.matching(paths)
    return tuple(id for id in graph.nodes if id in found)


def named_hosts(patterns: Iterable[str], hosts: Sequence[str], name: str) -> list[str]:
    """Those of a pipeline's hosts that these patterns name; `UnknownPath` if one names none."""
    found: set[str] = set()
    problems = []
    for pattern in dict.fromkeys(patterns):
        wanted = _glob(pattern)
        if some := {host for host in hosts if wanted.fullmatch(host)}:
            found |= some
        else:
            problems.append(_no_such("--hosts", pattern, name, "host", hosts))
    _refuse(problems)
    return [host for host in hosts if host in found]


def _no_such(flag: str, pattern: str, name: str, what: str, known: Iterable[str]) -> Problem:
    message = f"`{flag} {pattern}`: `{name}` has no such {what}"
    return Problem(message, hint=did_you_mean(pattern, known))


def _refuse(problems: Sequence[Problem]) -> None:
    if len(problems) == 1:
        raise UnknownPath(problems[0].message, hint=problems[0].hint)
    if problems:
        raise UnknownPath("the graph does not have all that is selected", problems=problems)


def _chosen(graph: ExecutionGraph, names: _Names, selection: Selection) -> set[str]:
    chosen = set(graph.nodes)
    if selection.only:
        chosen &= names.matching(selection.only)
    if selection.from_:
        chosen &= _downstream(graph, names.matching(selection.from_))
    return chosen - names.matching(selection.skip)


def _downstream(graph: ExecutionGraph, ids: set[str]) -> set[str]:
    order, _ = topological_order(graph.nodes, graph.joins)
    reached = set(ids)
    for id in order:
        if id not in reached and not reached.isdisjoint(graph.dependencies(id)):
            reached.add(id)
    return reached


def _on(hosts: Collection[str], nodes: Iterable[ExecutionNode]) -> Kept:
    kept = {node.id: tuple(host for host in node.hosts if host in hosts) for node in nodes}
    return {id: some for id, some in kept.items() if some}


def _with_providers(nodes: Mapping[str, ExecutionNode], kept: Kept, asked: Collection[str]) -> Kept:
    """Also the nodes that leave the values the kept ones need, where they need them.

    What one host makes for all is made on one that was asked for, if there is one.
    """
    providers = _providers(nodes)
    whole = dict(kept)
    open_ids = list(kept)
    while open_ids:
        id = open_ids.pop()
        for need in nodes[id].step.needs:
            for provider, everywhere in providers.get(need, ()):
                known = whole.get(provider, ())
                able = nodes[provider].hosts
                wanted = {*known, *whole[id]}
                if everywhere:
                    wanted = {*known} or {*asked}.intersection(able) or {*able}
                hosts = tuple(host for host in able if host in wanted)
                if hosts != known:
                    whole[provider] = hosts
                    open_ids.append(provider)
    return {id: whole[id] for id in nodes if id in whole}


def _providers(nodes: Mapping[str, ExecutionNode]) -> dict[str, list[tuple[str, bool]]]:
    found: dict[str, list[tuple[str, bool]]] = {}
    for node in nodes.values():
        for key in node.step.provides:
            found.setdefault(key.name, []).append((node.id, key.scope == "run"))
    return found


def _restricted(graph: ExecutionGraph, kept: Kept) -> ExecutionGraph:
    nodes, joins = _thinned(graph.nodes, graph.joins, kept)
    compensations = tuple(_compensations(graph, kept))
    used = {host for node in nodes.values() for host in node.hosts}
    used |= {host for item in compensations for node in item.nodes for host in node.hosts}
    return replace(
        graph,
        nodes=_without_stray_hooks(nodes),
        joins=joins,
        hosts=tuple(host for host in graph.hosts if host in used),
        groups=tuple(_groups(graph.groups, used)),
        compensations=compensations,
    )


def _without_stray_hooks(nodes: Mapping[str, ExecutionNode]) -> dict[str, ExecutionNode]:
    """A hook without its scope has no outcome to follow: it is a step like any other."""
    alive = _scopes(id for id, node in nodes.items() if node.hook is None)
    stray = {id for id, node in nodes.items() if node.hook and node.hook.scope not in alive}
    return {id: replace(node, hook=None) if id in stray else node for id, node in nodes.items()}


def _thinned(
    nodes: Mapping[str, ExecutionNode], joins: Mapping[str, Join], kept: Kept
) -> tuple[dict[str, ExecutionNode], dict[str, Join]]:
    """The kept nodes, and joins where others stood between them."""
    order, _ = topological_order(nodes, joins)
    waits: dict[str, Join] = {}
    for id in order:
        vertex = nodes.get(id) or joins[id]
        after = tuple(before for before in vertex.after if before in waits)
        lane = tuple(before for before in vertex.after_same_host if before in waits)
        # A join that waits for nothing holds nobody back.
        if id in kept or after or lane:
            waits[id] = Join(id, after, lane)
    thin = {
        id: replace(
            nodes[id],
            hosts=hosts,
            after=waits[id].after,
            after_same_host=waits[id].after_same_host,
        )
        for id, hosts in kept.items()
    }
    needed = _upstream(kept, waits)
    places = (id for id in (*joins, *nodes) if id in needed and id not in kept)
    return thin, {id: waits[id] for id in places}


def _upstream(ids: Iterable[str], waits: Mapping[str, Join]) -> set[str]:
    reached: set[str] = set()
    open_ids = list(ids)
    while open_ids:
        id = open_ids.pop()
        if id not in reached:
            reached.add(id)
            open_ids += (*waits[id].after, *waits[id].after_same_host)
    return reached


def _compensations(graph: ExecutionGraph, kept: Kept) -> Iterator[Compensation]:
    """Those of scopes that are run as a whole: for a part of one they would undo too much."""
    partial = _scopes(node.id for node in graph if node.hook is None and node.id not in kept)
    items = [item for item in graph.compensations if item.scope not in partial]
    scopes = {item.scope for item in items}
    whole = guards.scope_hosts(graph, guards.whole(graph), scopes)
    left = guards.scope_hosts(graph, kept, scopes)
    for item in items:
        gone = whole[item.scope] - left[item.scope]
        nodes = {node.id: node for node in item.nodes}
        hosts = {host for node in item.nodes for host in guards.elsewhere(node.hosts, gone)}
        some = _with_providers(nodes, _on(hosts, item.nodes), hosts)
        thin, joins = _thinned(nodes, {join.id: join for join in item.joins}, some)
        if thin:
            yield Compensation(item.scope, tuple(thin.values()), tuple(joins.values()))


def _groups(groups: Iterable[HostGroup], used: Collection[str]) -> Iterator[HostGroup]:
    """Hosts that are left out are not lost: they count towards the minimum."""
    for group in groups:
        hosts = tuple(host for host in group.hosts if host in used)
        if hosts:
            left_out = len(group.hosts) - len(hosts)
            yield HostGroup(group.name, hosts, max(0, group.minimum - left_out))


class _Names:
    """What can be named in a graph: paths with and without the pipeline's own segment, tags."""

    def __init__(self, graph: ExecutionGraph) -> None:
        self._graph = graph
        self._paths = {id: id.split("/") for id in graph.nodes}
        self._tags = {tag for node in graph for tag in node.tags}
        roots = {path[0] for path in self._paths.values()}
        self._root = roots.pop() if len(roots) == 1 else None

    def check(
        self, selection: Selection, others: Mapping[str, tuple[str, ...]] | None = None
    ) -> None:
        """Raise `UnknownPath` for every name that the graph does not have; others by flag."""
        given = (
            ("--only", selection.only, self._match, "path or tag"),
            ("--from", selection.from_, self._match, "path or tag"),
            ("--skip", selection.skip, self._match, "path or tag"),
            ("--hosts", selection.hosts, self._match_hosts, "host"),
            *((flag, paths, self._match, "path or tag") for flag, paths in (others or {}).items()),
        )
        _refuse([problem for item in given for problem in self._unknown(*item)])

    def matching(self, patterns: Iterable[str]) -> set[str]:
        """The nodes that any of these names."""
        return {id for pattern in patterns for id in self._match(pattern)}

    def hooks_alone(self, patterns: Iterable[str]) -> set[str]:
        """The hooks that are named by what names nothing else."""
        found = (set(self._match(pattern)) for pattern in patterns)
        nodes = self._graph.nodes
        return {id for ids in found if all(nodes[one].hook for one in ids) for id in ids}

    def hosts(self, patterns: Iterable[str]) -> frozenset[str]:
        """The hosts that any of these names."""
        return frozenset(host for pattern in patterns for host in self._match_hosts(pattern))

    def _unknown(
        self,
        flag: str,
        patterns: Iterable[str],
        match: Callable[[str], Iterable[str]],
        what: str,
    ) -> Iterator[Problem]:
        for pattern in dict.fromkeys(patterns):
            if not any(True for _ in match(pattern)):
                known = self._graph.hosts if what == "host" else self._known
                yield _no_such(flag, pattern, self._graph.name, what, known)

    @cached_property
    def _known(self) -> set[str]:
        full = _scopes(self._paths)
        if len(full) > 20_000:  # so many take seconds to compare; scopes alone will do
            full -= self._paths.keys()
        short = {path.partition("/")[2] for path in full} if self._root else set()
        return (full | short | self._tags) - {""}

    def _match(self, pattern: str) -> Iterator[str]:
        wanted = [_glob(segment) for segment in pattern.strip("/").split("/")]
        for id, path in self._paths.items():
            if (
                _starts(path, wanted)
                or (self._root is not None and _starts(path[1:], wanted))
                or pattern in self._graph.nodes[id].tags
            ):
                yield id

    def _match_hosts(self, pattern: str) -> Iterator[str]:
        wanted = _glob(pattern)
        return (host for host in self._graph.hosts if wanted.fullmatch(host))


def _glob(pattern: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, pattern.split("*"))), re.DOTALL)


def _starts(path: list[str], wanted: list[re.Pattern[str]]) -> bool:
    return len(path) >= len(wanted) and all(
        pattern.fullmatch(segment) for pattern, segment in zip(wanted, path, strict=False)
    )


def _scopes(ids: Iterable[str]) -> set[str]:
    """These paths and all scopes above them."""
    return {scope for id in ids for scope in scopes_around(id)}
