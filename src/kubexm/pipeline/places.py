"""Who writes into a directory that another step makes waits for it, whichever part makes it.

Read off the paths that steps name, so that no task has to know who else writes where.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from posixpath import dirname

from kubexm.plan.fragment import ExecutionFragment, replace, waiting
from kubexm.plan.node import ExecutionNode, StepSpec

_MAKERS = frozenset(("directory", "data-directory"))
_WRITERS = _MAKERS | {"file", "template", "secret-file", "secret-template", "binary", "unpacked"}
"""Steps that need the directory above to be there; those of certificates make it themselves."""


def housed(fragment: ExecutionFragment) -> ExecutionFragment:
    """The fragment with an edge, on the same host, from each directory to what is put into it."""
    makers = _makers(fragment)

    def follow(node: ExecutionNode) -> ExecutionNode:
        # A hook has its own place in the order, before or after the part that it belongs to.
        if node.hook is not None or node.step.kind not in _WRITERS:
            return node
        needed = (maker.id for path in _paths(node.step) for maker in _nearest(path, node, makers))
        return waiting(node, tuple(dict.fromkeys(needed)), same_host=True)

    return replace(fragment, nodes=tuple(map(follow, fragment.nodes)))


def _makers(fragment: ExecutionFragment) -> dict[str, list[ExecutionNode]]:
    """The nodes that make directories, by path."""
    found: dict[str, list[ExecutionNode]] = {}
    for node in fragment.nodes:
        if node.step.kind in _MAKERS and node.hook is None:
            found.setdefault(node.step.params["path"], []).append(node)
    return found


def _paths(step: StepSpec) -> Iterator[str]:
    """Where a step puts something; a directory that many files go to as one of them."""
    if step.kind == "unpacked":
        yield from step.params["members"].values()
    else:
        yield step.params["path"]


def _nearest(
    path: str, node: ExecutionNode, makers: dict[str, list[ExecutionNode]]
) -> Sequence[ExecutionNode]:
    """Who makes, on a host of this node, the innermost directory that a path lies in."""
    hosts = frozenset(node.hosts)
    above = dirname(path)
    while above != "/":
        if found := [one for one in makers.get(above, ()) if not hosts.isdisjoint(one.hosts)]:
            return found
        above = dirname(above)
    return ()
