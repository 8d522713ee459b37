"""Order between named parts of a fragment, said as a table: who waits for whom, and how.

`chain` and `per_host` make series; a whole operation is none: a worker is prepared while the
control plane comes up, and waits for it only when it joins.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

import msgspec

from kubexm.errors import InvalidGraph
from kubexm.plan.fragment import ExecutionFragment, replace, waiting
from kubexm.plan.node import ExecutionNode, Join
from kubexm.plan.validation import inside, scopes_around


class Wait(msgspec.Struct, frozen=True):
    """For a part: until it is through on the same host, or on all hosts."""

    part: str
    same_host: bool = False


Waits = Mapping[str, Sequence[Wait]]
"""What each part waits for, by its path in the fragment."""


def on_all(*parts: str) -> tuple[Wait, ...]:
    """Wait until these are through on every host."""
    return tuple(Wait(part) for part in parts)


def on_same(*parts: str) -> tuple[Wait, ...]:
    """Wait until these are through on the same host."""
    return tuple(Wait(part, same_host=True) for part in parts)


def ordered(fragment: ExecutionFragment, waits: Waits) -> ExecutionFragment:
    """The fragment with these edges; a part that is not there hands on what it waits for."""
    parts = _Parts(fragment)
    for part, those in waits.items():
        for wait in _each_once(_present(parts, waits, those)):
            parts.link(part, wait)
    return replace(fragment, nodes=tuple(parts.nodes.values()), joins=tuple(parts.joins))


def _each_once(waits: Iterable[Wait]) -> Iterator[Wait]:
    """Every part once: who waits for all hosts of it waits for the same host too."""
    found: dict[str, bool] = {}
    for wait in waits:
        found[wait.part] = found.get(wait.part, True) and wait.same_host
    return (Wait(part, same_host) for part, same_host in found.items())


def supplied(fragment: ExecutionFragment) -> ExecutionFragment:
    """The fragment with a barrier from whoever leaves a value of the run to all who need it."""
    leaves = {
        key.name: node.id
        for node in fragment.nodes
        for key in node.step.provides
        if key.scope == "run"
    }

    def follow(node: ExecutionNode) -> ExecutionNode:
        needed = dict.fromkeys(leaves[name] for name in node.step.needs if name in leaves)
        return waiting(node, tuple(needed), same_host=False)

    return replace(fragment, nodes=tuple(map(follow, fragment.nodes)))


class _Parts:
    """Nodes by their id and by all parts that they are in, while edges come to them."""

    def __init__(self, fragment: ExecutionFragment) -> None:
        self.nodes = {node.id: node for node in fragment.nodes}
        self.joins = [*fragment.joins]
        self._inside: dict[str, list[str]] = {}
        for id in self.nodes:
            for part in scopes_around(id):
                self._inside.setdefault(part, []).append(id)
        self._floating = {id for id, one in self.nodes.items() if one.one_of or _is_for_all(one)}

    def has(self, part: str) -> bool:
        """Whether a part has nodes."""
        return part in self._inside

    def link(self, part: str, wait: Wait) -> None:
        """Let what a part begins with wait for what another one ends with."""
        entries, exits, floating = self._entries(part), self._exits(wait.part), self._floating
        if len(entries) > 1 and len(exits) > 1:
            join = _join(part, wait, exits, floating)
            self.joins.append(join)
            exits, floating = (join.id,), set()
        fixed = tuple(id for id in exits if wait.same_host and id not in floating)
        barred = tuple(id for id in exits if id not in fixed)
        for id in entries:
            self.nodes[id] = _following(self.nodes[id], fixed, barred)

    def _of(self, part: str) -> Iterator[ExecutionNode]:
        return (self.nodes[id] for id in self._inside.get(part, ()))

    def _entries(self, part: str) -> list[str]:
        """The nodes of a part that wait for nothing inside of it."""
        return [
            node.id
            for node in self._of(part)
            if not any(inside(id, part) for id in (*node.after, *node.after_same_host))
        ]

    def _exits(self, part: str) -> tuple[str, ...]:
        """The nodes of a part that nothing inside of it waits for."""
        vertices: list[ExecutionNode | Join] = [*self._of(part)]
        vertices += [join for join in self.joins if inside(join.id, part)]
        waited = {id for one in vertices for id in (*one.after, *one.after_same_host)}
        return tuple(id for id in self._inside.get(part, ()) if id not in waited)


def _following(
    node: ExecutionNode, fixed: tuple[str, ...], barred: tuple[str, ...]
) -> ExecutionNode:
    # The host of a one_of node is not known beforehand: only a barrier makes sense there.
    if node.one_of:
        return waiting(node, (*fixed, *barred), same_host=False)
    return waiting(waiting(node, fixed, same_host=True), barred, same_host=False)


def _present(
    parts: _Parts, waits: Waits, those: Sequence[Wait], seen: tuple[str, ...] = ()
) -> Iterator[Wait]:
    """The parts to wait for that have nodes; of others what they would have waited for."""
    for wait in those:
        if wait.part in seen:
            ring = " → ".join((*seen, wait.part))
            raise InvalidGraph(f"parts wait for each other: {ring}")
        if parts.has(wait.part):
            yield wait
        else:
            behind = _present(parts, waits, waits.get(wait.part, ()), (*seen, wait.part))
            for other in behind:
                yield Wait(other.part, wait.same_host and other.same_host)


def _is_for_all(node: ExecutionNode) -> bool:
    """Whether it is done once for all hosts: then it is through for none of them before."""
    return node.hook is not None and node.hook.barrier


def _join(part: str, wait: Wait, exits: Sequence[str], floating: Container[str]) -> Join:
    """One vertex between many ends and many beginnings; it belongs to neither part."""
    same = tuple(id for id in exits if wait.same_host and id not in floating)
    return Join(f"@{part}/@after/{wait.part}", tuple(id for id in exits if id not in same), same)
