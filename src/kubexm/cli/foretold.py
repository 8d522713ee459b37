"""What a dry run found: signs, reasons and differences, hosts with the same answer together."""

from __future__ import annotations

from collections.abc import Iterable

from kubexm.plan.result import GraphExecutionResult, HostResult, NodeResult

SHOWN_HOSTS = 6


def foretold(result: GraphExecutionResult) -> str:
    """The tree of what would be done, then one line of counts."""
    lines: list[str] = []
    above: list[str] = []
    for id, node in result.node_results.items():
        path = id.split("/")
        lines.extend(_headings(above, path[:-1]))
        above = path[:-1]
        lines.extend(_node(path[-1], node, "  " * len(above)))
    return "\n".join([*lines, "", counted(result)])


def _headings(above: list[str], path: list[str]) -> Iterable[str]:
    shared = 0
    while shared < min(len(above), len(path)) and above[shared] == path[shared]:
        shared += 1
    return [f"{'  ' * depth}{name}" for depth, name in enumerate(path) if depth >= shared]


def _node(name: str, node: NodeResult, indent: str) -> Iterable[str]:
    groups: dict[tuple[str, str, str], list[str]] = {}
    for host in node.host_results.values():
        groups.setdefault((_sign(host), _reason(host), host.diff), []).append(host.host_name)
    for (sign, reason, diff), hosts in groups.items():
        told = f"  {reason}" if reason else ""
        yield f"{indent}{sign} {name}{told}  [{_named(hosts)}]"
        yield from (f"{indent}    {line}" for line in diff.splitlines())


def _sign(host: HostResult) -> str:
    if host.status == "Failed":
        return "✗"
    return host.sign or ("·" if host.status in ("Skipped", "Cancelled") else "=")


def _reason(host: HostResult) -> str:
    return host.message.splitlines()[0] if host.message and host.sign != "=" else ""


def _named(hosts: list[str]) -> str:
    more = f" … {len(hosts)} hosts" if len(hosts) > SHOWN_HOSTS else ""
    return " ".join(hosts[:SHOWN_HOSTS]) + more


def counted(result: GraphExecutionResult) -> str:
    """How many units would change, are as wanted, or can't be known."""
    hosts = [host for node in result.node_results.values() for host in node.host_results.values()]
    parts = [
        (sum(host.changed for host in hosts), "to change"),
        (sum(host.satisfied for host in hosts), "as wanted"),
        (sum(host.sign == "?" for host in hosts), "known only when reached"),
        (sum(host.status == "Failed" for host in hosts), "failed"),
        (sum(host.status == "Skipped" and not host.satisfied for host in hosts), "held back"),
    ]
    told = [f"{count:,} {word}" for count, word in parts if count]
    return " · ".join(told) or "nothing to do"
