"""What came of a run: results that mirror the graph, and the rules that add them up."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from datetime import datetime
from typing import Literal

import msgspec

from kubexm.plan.policy import FailureClass

Status = Literal["Pending", "Running", "Success", "Failed", "Skipped", "Cancelled", "RolledBack"]
FINAL: frozenset[Status] = frozenset(("Success", "Failed", "Skipped", "Cancelled", "RolledBack"))
_WORST: tuple[Status, ...] = ("Failed", "Cancelled", "RolledBack")
Sign = Literal["+", "~", "-", "=", "?", ""]
CONNECT = "@connect"
"""Stands for a node in the cause of a host that could not be opened."""
CAUSE = "cause: "
"""How a line of a message begins that says what is wrong, in place of what was noticed of it."""
LEFT = "left as it is"
"""What a rollback says of a change that it can't take back."""


class Cause(
    msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True
):
    """The unit in which a failure began, and what it said."""

    node: str
    host: str
    message: str
    failure: FailureClass = "failed"

    def __str__(self) -> str:
        if self.node == CONNECT:
            return f"{self.host}, which could not be reached: {self.message}"
        place = f"{self.node} on {self.host}" if self.host else self.node
        return f"{place}: {self.message}"

    @property
    def brief(self) -> str:
        """The same, without what was noticed of it if it says what is wrong."""
        known = _known_cause(self.message)
        return str(msgspec.structs.replace(self, message=known)) if known else str(self)


class HostResult(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """What one unit came to."""

    host_name: str
    status: Status = "Pending"
    message: str = ""
    stdout: str = ""
    stderr: str = ""
    start_time: datetime | None = None
    end_time: datetime | None = None
    skipped: bool = False
    changed: bool = False
    attempts: int = 0
    failure: FailureClass | None = None
    cause: Cause | None = None
    sign: Sign = ""
    diff: str = ""

    @property
    def satisfied(self) -> bool:
        """Nothing had to be done, as opposed to held back."""
        return self.status == "Skipped" and self.skipped

    @property
    def done_before(self) -> bool:
        """An earlier life of the run made the change; now there was nothing left to do."""
        return self.status == "Success" and self.changed and self.sign == "="


class NodeResult(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """What one node came to on all its hosts."""

    node_name: str
    step_name: str
    status: Status = "Pending"
    message: str = ""
    start_time: datetime | None = None
    end_time: datetime | None = None
    changed: bool = False
    host_results: dict[str, HostResult] = {}


class GraphExecutionResult(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """What a run came to; `rollback` is the run of the undo graph, if there was one."""

    graph_name: str
    status: Status
    node_results: dict[str, NodeResult]
    start_time: datetime | None = None
    end_time: datetime | None = None
    dry_run: bool = False
    degraded: bool = False
    message: str = ""
    quarantined: dict[str, Cause] = {}
    rollback: GraphExecutionResult | None = None

    @property
    def counts(self) -> dict[Status, int]:
        """How many units ended in each status."""
        counted: dict[Status, int] = {}
        for node in self.node_results.values():
            for host in node.host_results.values():
                counted[host.status] = counted.get(host.status, 0) + 1
        return counted

    @property
    def changed(self) -> int:
        """How many units changed something, or would."""
        nodes = self.node_results.values()
        return sum(host.changed for node in nodes for host in node.host_results.values())


def gist(message: str) -> str:
    """A message in one line: the cause that it names, or how it begins."""
    return _known_cause(message) or message.partition("\n")[0]


def _known_cause(message: str) -> str:
    lines = message.splitlines()
    return next((line.removeprefix(CAUSE) for line in lines if line.startswith(CAUSE)), "")


def as_left(host: HostResult, why: str) -> HostResult:
    """What a unit came to whose change a rollback left: the same, and that."""
    said = f"{host.message}; {why}" if host.message else why
    return msgspec.structs.replace(host, message=said)


def node_status(hosts: Iterable[HostResult], tolerated: Container[str] = ()) -> Status:
    """The worst of a node's hosts; failures of hosts in `tolerated` don't count."""
    statuses: set[Status] = set()
    started = False
    for host in hosts:
        if host.status == "Failed" and host.host_name in tolerated:
            started = True
            continue
        started = started or host.status in ("Success", "Running") or host.satisfied
        statuses.add("Success" if host.satisfied else host.status)
    for status in _WORST:
        if status in statuses:
            return status
    if "Running" in statuses or ("Pending" in statuses and started):
        return "Running"
    if "Pending" in statuses:
        return "Pending"
    return "Success" if started or "Success" in statuses else "Skipped"


def node_message(hosts: Mapping[str, HostResult], status: Status) -> str:
    """The root cause if the node did not succeed, else nothing."""
    if status not in ("Failed", "Skipped", "Cancelled", "RolledBack"):
        return ""
    alike = [host for host in hosts.values() if host.status == status]
    for host in alike:
        if host.status == "Failed":
            return f"{host.host_name}: {host.message}"
        if host.cause is not None:
            return str(host.cause)
    return next((host.message for host in alike if host.message), "")
