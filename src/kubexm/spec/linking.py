"""How siblings follow each other: by the link of their scope, and by what each says it is after."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise

import msgspec

from kubexm.document.findings import Finding
from kubexm.plan import ExecutionFragment, ExecutionNode, Join, chain, parallel, per_host, values
from kubexm.plan.validation import topological_order
from kubexm.spec.model import AfterSpec, Link

_SEQUENCES = {"per-host": per_host, "barrier": chain, "parallel": parallel}


class Sibling(msgspec.Struct, frozen=True):
    """A named part of a scope; without a fragment it is a hole, which its neighbours close."""

    name: str
    fragment: ExecutionFragment | None
    after: tuple[AfterSpec, ...] = ()


def sequence(fragments: Sequence[ExecutionFragment | None], link: Link) -> ExecutionFragment | None:
    """These fragments in order, linked as the scope says; None if there are none."""
    whole = _SEQUENCES[link](*fragments)
    return whole if whole.nodes else None


def linked(siblings: Sequence[Sibling], link: Link, *, same_host: bool) -> ExecutionFragment | None:
    """The siblings in order, with the further edges they ask for; `same_host` is their scope."""
    whole = sequence([sibling.fragment for sibling in siblings], link)
    by_name = {sibling.name: sibling for sibling in siblings}
    for sibling in siblings:
        for after in sibling.after if sibling.fragment is not None else ():
            host = same_host if after.scope is None else after.scope == "host"
            for other in _present(after.name, by_name, set()):
                if whole is not None and sibling.fragment is not None:
                    whole = _joined(whole, other, sibling.fragment, host)
    return whole


def cycles(siblings: Sequence[Sibling], link: Link) -> Iterator[Finding]:
    """Siblings that wait for each other, by the place of an `after` in the ring."""
    sorter: TopologicalSorter[str] = TopologicalSorter()
    for number, sibling in enumerate(siblings):
        before = [siblings[number - 1].name] if number and link != "parallel" else []
        sorter.add(sibling.name, *before, *(other.name for other in sibling.after))
    try:
        sorter.prepare()
    except CycleError as error:
        yield _ring(error.args[1], siblings, link)


def _ring(ring: Sequence[str], siblings: Sequence[Sibling], link: Link) -> Finding:
    """A ring, each in it waited for by the next, at one of its edges that are written."""
    waits = [(after, before) for before, after in pairwise(ring)]
    place = {sibling.name: number for number, sibling in enumerate(siblings)}
    free = link == "parallel"
    path, first, second = next(
        ((number, "after", index), sibling.name, other.name)
        for number, sibling in enumerate(siblings)
        for index, other in enumerate(sibling.after)
        # Where the file gives the order, only what goes against it can be wrong.
        if (sibling.name, other.name) in waits and (free or place[other.name] > number)
    )
    message = f"these wait for each other: {' → '.join(ring)}"
    if free:
        return Finding(path, message, "remove one of the edges")
    hint = f"move `{second}` before `{first}`, or say `link: parallel` around them"
    return Finding(path, f"{message}; `{first}` comes before `{second}` in the file", hint)


def with_values(whole: ExecutionFragment) -> ExecutionFragment:
    """The fragment, with the edges that values of hosts need to reach those who name them."""
    nodes = {node.id: node for node in whole.nodes}
    joins = {join.id: join for join in whole.joins}
    if len(nodes) < len(whole.nodes):
        return whole  # an id is there twice: the graph will be refused
    order, _ = topological_order(nodes, joins)
    return msgspec.structs.replace(whole, nodes=tuple(values.carried(nodes, joins, order).values()))


def without_needs(whole: ExecutionFragment, left: Container[str]) -> ExecutionFragment:
    """The fragment, with nodes that do not need these values."""

    def contented(nodes: Iterable[ExecutionNode]) -> tuple[ExecutionNode, ...]:
        return tuple(_without_needs(node, left) for node in nodes)

    return msgspec.structs.replace(
        whole,
        nodes=contented(whole.nodes),
        compensations=tuple(
            msgspec.structs.replace(item, nodes=contented(item.nodes))
            for item in whole.compensations
        ),
    )


def _without_needs(node: ExecutionNode, left: Container[str]) -> ExecutionNode:
    needs = tuple(need for need in node.step.needs if need not in left)
    if needs == node.step.needs:
        return node
    return msgspec.structs.replace(node, step=msgspec.structs.replace(node.step, needs=needs))


def strangers(siblings: Sequence[Sibling]) -> Iterator[Finding]:
    """Neighbours that share no host: linked host by host, neither waits for the other."""
    before: Sibling | None = None
    for number, sibling in enumerate(siblings):
        if sibling.fragment is None:
            continue
        if before is not None and _apart(before, sibling):
            message = f"shares no host with `{before.name}` before it, and so does not wait for it"
            hint = f"say `after: [{{name: {before.name}, scope: all}}]`, or `link: barrier` around"
            yield Finding((number,), message, hint)
        before = sibling


def _apart(before: Sibling, sibling: Sibling) -> bool:
    if sibling.after or before.fragment is None or sibling.fragment is None:
        return False
    nodes = (*before.fragment.nodes, *sibling.fragment.nodes)
    hosts = {host for node in before.fragment.nodes for host in node.hosts}
    return not any(node.one_of for node in nodes) and all(
        hosts.isdisjoint(node.hosts) for node in sibling.fragment.nodes
    )


def _present(
    name: str, by_name: Mapping[str, Sibling], seen: set[str]
) -> Iterator[ExecutionFragment]:
    """The fragment of a sibling, or of those that a hole itself is after."""
    if name in seen:
        return
    seen.add(name)
    sibling = by_name[name]
    if sibling.fragment is not None:
        yield sibling.fragment
        return
    for after in sibling.after:
        yield from _present(after.name, by_name, seen)


def _joined(
    whole: ExecutionFragment,
    before: ExecutionFragment,
    after: ExecutionFragment,
    same_host: bool,
) -> ExecutionFragment:
    floating = {node.id for node in before.nodes if node.one_of}
    entries = frozenset(after.entries)
    here = tuple(id for id in before.exits if same_host and id not in floating)
    everywhere = tuple(id for id in before.exits if id not in here)
    joins: tuple[Join, ...] = ()
    if len(everywhere) > 1 and len(entries) > 1:
        joins = (Join(f"{after.entries[0]}/@after-{before.nodes[0].id.split('/')[0]}", everywhere),)
        everywhere = (joins[0].id,)
    nodes = tuple(
        _waiting(node, here, everywhere) if node.id in entries else node for node in whole.nodes
    )
    return msgspec.structs.replace(whole, nodes=nodes, joins=(*whole.joins, *joins))


def _waiting(
    node: ExecutionNode, here: tuple[str, ...], everywhere: tuple[str, ...]
) -> ExecutionNode:
    if node.one_of:
        # The host of such a node is not known beforehand: only a barrier makes sense there.
        here, everywhere = (), (*here, *everywhere)
    return msgspec.structs.replace(
        node,
        after=tuple(dict.fromkeys((*node.after, *everywhere))),
        after_same_host=tuple(dict.fromkeys((*node.after_same_host, *here))),
    )
