"""Pieces of graph and the algebra that links them: chain, per_host, parallel, rolling, link."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

import msgspec

from kubexm.errors import InvalidGraph
from kubexm.plan.node import Compensation, ExecutionNode, Join, StepSpec
from kubexm.plan.policy import ResourceConstraints, RetryPolicy, Tolerance

replace = msgspec.structs.replace


class OneOf(msgspec.Struct, frozen=True):
    """Candidates for a node that runs on one of them."""

    hosts: tuple[str, ...]


class DescribesStep(Protocol):
    """A step that can be stored as data."""

    def spec(self) -> StepSpec: ...


class ExecutionFragment(msgspec.Struct, frozen=True):
    """Nodes and joins that belong together; entries and exits follow from the edges."""

    nodes: tuple[ExecutionNode, ...] = ()
    joins: tuple[Join, ...] = ()
    compensations: tuple[Compensation, ...] = ()

    @property
    def entries(self) -> tuple[str, ...]:
        """The nodes that wait for nothing inside the fragment."""
        return tuple(node.id for node in self.nodes if not node.after and not node.after_same_host)

    @property
    def exits(self) -> tuple[str, ...]:
        """The nodes that nothing inside the fragment waits for."""
        waited = {
            id
            for vertices in (self.nodes, self.joins)
            for vertex in vertices
            for id in (*vertex.after, *vertex.after_same_host)
        }
        return tuple(node.id for node in self.nodes if node.id not in waited)


EMPTY = ExecutionFragment()


def one_of(hosts: Iterable[str]) -> OneOf:
    """Run on the first of these hosts that is not quarantined when the node starts."""
    return OneOf(tuple(hosts))


def node(
    name: str,
    step: DescribesStep | StepSpec,
    *,
    on: Sequence[str] | OneOf,
    title: str = "",
    retry: RetryPolicy | None = None,
    limits: ResourceConstraints | None = None,
    **settings: Any,
) -> ExecutionFragment | None:
    """A fragment of one node; None if there is no host to run it on."""
    hosts = on.hosts if isinstance(on, OneOf) else tuple(on)
    if not hosts:
        return None
    given = {"retry": retry, "limits": limits, **settings}
    single = ExecutionNode(
        id=name,
        name=title or name,
        step=step if isinstance(step, StepSpec) else step.spec(),
        hosts=hosts,
        one_of=isinstance(on, OneOf),
        **{key: value for key, value in given.items() if value is not None},
    )
    return ExecutionFragment((single,))


def parallel(*fragments: ExecutionFragment | None) -> ExecutionFragment:
    """All of them side by side, without edges."""
    parts = [fragment for fragment in fragments if fragment is not None]
    return ExecutionFragment(
        tuple(node for part in parts for node in part.nodes),
        tuple(join for part in parts for join in part.joins),
        tuple(compensation for part in parts for compensation in part.compensations),
    )


def chain(*fragments: ExecutionFragment | None) -> ExecutionFragment:
    """One after the other, with a barrier between: each waits for every host of the one before."""
    return _in_sequence(fragments, _barrier)


def per_host(*fragments: ExecutionFragment | None) -> ExecutionFragment:
    """One after the other on each host alone: a host goes on when it has finished itself."""
    return _in_sequence(fragments, _same_host)


def rolling(
    hosts: Sequence[str], batch: int, build: Callable[[Sequence[str]], ExecutionFragment | None]
) -> ExecutionFragment:
    """`build` for a batch of hosts at a time, the next only when the whole batch is through."""
    if batch < 1:
        raise InvalidGraph(f"a batch of {batch} hosts, want at least 1")
    batches = [hosts[start : start + batch] for start in range(0, len(hosts), batch)]
    width = len(str(len(batches)))
    return chain(
        *(
            prefixed(some[0] if batch == 1 else f"batch-{number:0{width}}", build(some))
            for number, some in enumerate(batches, 1)
        )
    )


def link(
    fragment: ExecutionFragment, *, before: str, after: str, same_host: bool = False
) -> ExecutionFragment:
    """One more edge, for the rare graph that is not made of series and parallels."""
    known = {node.id for node in fragment.nodes}
    for id in (before, after):
        if id not in known:
            raise InvalidGraph(f"can't link `{id}`: the fragment has no such node")
    nodes = tuple(
        waiting(node, (before,), same_host=same_host) if node.id == after else node
        for node in fragment.nodes
    )
    return replace(fragment, nodes=nodes)


def prefixed(scope: str, fragment: ExecutionFragment | None) -> ExecutionFragment | None:
    """The fragment with every path moved under a scope; None stays None."""
    if fragment is None or not fragment.nodes:
        return None
    rename = _Prefix(scope)
    return ExecutionFragment(
        tuple(rename.node(node) for node in fragment.nodes),
        tuple(rename.join(join) for join in fragment.joins),
        tuple(rename.compensation(item) for item in fragment.compensations),
    )


class _Prefix:
    """Moves ids under a scope; equal edge tuples stay one object, as many nodes share them."""

    def __init__(self, scope: str) -> None:
        self._scope = scope
        self._seen: dict[tuple[str, ...], tuple[str, ...]] = {}

    def id(self, id: str) -> str:
        return f"{self._scope}/{id}" if id else self._scope

    def ids(self, ids: tuple[str, ...]) -> tuple[str, ...]:
        if not ids:
            return ids
        if (moved := self._seen.get(ids)) is None:
            moved = self._seen[ids] = tuple(self.id(id) for id in ids)
        return moved

    def node(self, node: ExecutionNode) -> ExecutionNode:
        return replace(
            node,
            id=self.id(node.id),
            after=self.ids(node.after),
            after_same_host=self.ids(node.after_same_host),
            hook=node.hook and replace(node.hook, scope=self.id(node.hook.scope)),
        )

    def join(self, join: Join) -> Join:
        return Join(self.id(join.id), self.ids(join.after), self.ids(join.after_same_host))

    def compensation(self, item: Compensation) -> Compensation:
        return Compensation(
            self.id(item.scope),
            tuple(self.node(node) for node in item.nodes),
            tuple(self.join(join) for join in item.joins),
        )


def waiting(node: ExecutionNode, ids: tuple[str, ...], *, same_host: bool) -> ExecutionNode:
    """The node, after these too."""
    if not ids:
        return node
    if same_host:
        return replace(node, after_same_host=_merged(node.after_same_host, ids))
    return replace(node, after=_merged(node.after, ids))


def settled(
    fragment: ExecutionFragment,
    *,
    tolerance: Tolerance | None = None,
    tags: Sequence[str] = (),
    retry: RetryPolicy | None = None,
    timeout: float | None = None,
    ignore_errors: bool = False,
) -> ExecutionFragment:
    """The fragment with these settings wherever a node has none of its own."""
    nodes = tuple(
        replace(
            node,
            tolerance=node.tolerance if node.tolerance is not None else tolerance,
            tags=(*node.tags, *(tag for tag in tags if tag not in node.tags)),
            retry=retry if retry is not None and node.retry == RetryPolicy() else node.retry,
            timeout=node.timeout if node.timeout is not None else timeout,
            ignore_errors=node.ignore_errors or ignore_errors,
        )
        for node in fragment.nodes
    )
    return replace(fragment, nodes=nodes)


_Linker = Callable[
    [ExecutionFragment, ExecutionFragment], tuple[ExecutionFragment, tuple[Join, ...]]
]


def _in_sequence(
    fragments: Iterable[ExecutionFragment | None], linked: _Linker
) -> ExecutionFragment:
    parts = [part for part in fragments if part is not None and part.nodes]
    done = parts[:1]
    joins: list[Join] = []
    for part in parts[1:]:
        moved, more = linked(parts[len(done) - 1], part)
        done.append(moved)
        joins.extend(more)
    whole = parallel(*done)
    return replace(whole, joins=(*whole.joins, *joins))


def _barrier(
    first: ExecutionFragment, second: ExecutionFragment
) -> tuple[ExecutionFragment, tuple[Join, ...]]:
    exits, entries = first.exits, frozenset(second.entries)
    joins: tuple[Join, ...] = ()
    if len(exits) > 1 and len(entries) > 1:
        joins = (Join(f"{second.entries[0]}/@join", exits),)
        exits = (joins[0].id,)
    return _after(second, entries, lambda node: waiting(node, exits, same_host=False)), joins


def _same_host(
    first: ExecutionFragment, second: ExecutionFragment
) -> tuple[ExecutionFragment, tuple[Join, ...]]:
    # The host of a one_of node is not known beforehand: only a barrier makes sense there.
    floating = {node.id for node in first.nodes if node.one_of}
    exits, entries = first.exits, frozenset(second.entries)
    fixed = tuple(id for id in exits if id not in floating)
    barred = tuple(id for id in exits if id in floating)
    joins: tuple[Join, ...] = ()
    if len(exits) > 1 and len(entries) > 1:
        joins = (Join(f"{second.entries[0]}/@join", barred, fixed),)
        exits = fixed = (joins[0].id,)
        barred = ()

    def follow(node: ExecutionNode) -> ExecutionNode:
        if node.one_of:
            return waiting(node, exits, same_host=False)
        return waiting(waiting(node, fixed, same_host=True), barred, same_host=False)

    return _after(second, entries, follow), joins


def _after(
    fragment: ExecutionFragment,
    entries: frozenset[str],
    follow: Callable[[ExecutionNode], ExecutionNode],
) -> ExecutionFragment:
    nodes = tuple(follow(node) if node.id in entries else node for node in fragment.nodes)
    return replace(fragment, nodes=nodes)


def _merged(known: tuple[str, ...], more: tuple[str, ...]) -> tuple[str, ...]:
    return more if not known else tuple(dict.fromkeys((*known, *more)))
