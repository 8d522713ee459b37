"""Results as an indented tree, hosts with the same answer together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from kubexm.plan.node import ANY_HOST
from kubexm.plan.result import GraphExecutionResult, HostResult, NodeResult

SHOWN_HOSTS = 6

Told = tuple[str, str, str]
"""What is said of a unit: a mark, a reason, and more lines below."""


Tell = Callable[[str, HostResult], Told]
"""Says it of a node by its path, and of one of its hosts."""


def tree(result: GraphExecutionResult, tell: Tell) -> Iterator[str]:
    """A line for each node and each thing that is said of its hosts, below its path."""
    above: list[str] = []
    for id, node in result.node_results.items():
        path = id.split("/")
        yield from _headings(above, path[:-1])
        above = path[:-1]
        yield from _node(id, node, "  " * len(above), tell)


def named(hosts: list[str]) -> str:
    """The first few hosts, and how many there are."""
    more = f" … {len(hosts)} hosts" if len(hosts) > SHOWN_HOSTS else ""
    shown = ("one of its hosts" if host == ANY_HOST else host for host in hosts[:SHOWN_HOSTS])
    return " ".join(shown) + more


def _headings(above: list[str], path: list[str]) -> Iterable[str]:
    shared = 0
    while shared < min(len(above), len(path)) and above[shared] == path[shared]:
        shared += 1
    return [f"{'  ' * depth}{name}" for depth, name in enumerate(path) if depth >= shared]


def _node(id: str, node: NodeResult, indent: str, tell: Tell) -> Iterator[str]:
    name = id.rpartition("/")[2]
    groups: dict[Told, list[str]] = {}
    for host in node.host_results.values():
        groups.setdefault(tell(id, host), []).append(host.host_name)
    for (mark, reason, more), hosts in groups.items():
        told = f"  {reason}" if reason else ""
        yield f"{indent}{mark} {name}{told}  [{named(hosts)}]"
        yield from (f"{indent}    {line}" for line in more.splitlines())
