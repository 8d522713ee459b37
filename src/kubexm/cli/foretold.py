"""What a dry run found: signs, reasons and differences."""

from __future__ import annotations

from kubexm.cli.tree import Told, tree
from kubexm.plan.result import GraphExecutionResult, HostResult


def foretold(result: GraphExecutionResult) -> str:
    """The tree of what would be done, then one line of counts."""
    lines = [*tree(result, _told), "", counted(result)]
    if result.status == "Cancelled":
        lines.append(f"cancelled, {result.message}: nothing is known of what was not looked at")
    elif result.status == "Success" and result.message:
        lines.append(result.message)
    return "\n".join(lines)


def _told(_id: str, host: HostResult) -> Told:
    return _sign(host), _reason(host), host.diff


def _sign(host: HostResult) -> str:
    if host.status == "Failed":
        return "✗"
    return host.sign or ("·" if host.status in ("Skipped", "Cancelled") else "=")


def _reason(host: HostResult) -> str:
    return host.message.splitlines()[0] if host.message and host.sign != "=" else ""


def counted(result: GraphExecutionResult) -> str:
    """How many units would change, are satisfied, or can't be known."""
    hosts = [host for node in result.node_results.values() for host in node.host_results.values()]
    parts = [
        (sum(host.changed for host in hosts), "to change"),
        (sum(_sign(host) == "=" for host in hosts), "satisfied"),
        (sum(host.sign == "?" for host in hosts), "known only when reached"),
        (sum(host.status == "Failed" for host in hosts), "failed"),
        (sum(host.status == "Skipped" and not host.satisfied for host in hosts), "held back"),
        (sum(host.status == "Cancelled" for host in hosts), "not looked at"),
    ]
    told = [f"{count:,} {word}" for count, word in parts if count]
    return " · ".join(told) or "nothing to do"
