"""Fragments that an expander adds to the running graph: where they may lie and run."""

from __future__ import annotations

from kubexm.common.roles import CONTROL_NODE
from kubexm.engine.topology import Unit
from kubexm.errors import StepFailed
from kubexm.plan.fragment import ExecutionFragment, prefixed, replace
from kubexm.plan.graph import build
from kubexm.plan.node import NO_LIMITS, ExecutionNode

MAX_DEPTH = 3


def checked_fragment(unit: Unit, fragment: ExecutionFragment | None) -> ExecutionFragment | None:
    """The fragment under the unit's own path, or `StepFailed` if it may not be there."""
    moved = prefixed(f"{unit.node.id}/@{unit.host}", fragment)
    if moved is None:
        return None
    if _depth(unit) >= MAX_DEPTH:
        raise StepFailed(f"expands more than {MAX_DEPTH} levels deep")
    strangers = {host for node in moved.nodes for host in node.hosts} - {unit.host, CONTROL_NODE}
    if strangers:
        wanted = f"`{unit.host}` or `{CONTROL_NODE}`"
        raise StepFailed(f"expands to nodes on {', '.join(sorted(strangers))}, want {wanted}")
    # Values come from before the expander too, so only the shape is checked here.
    allowed = tuple(dict.fromkeys((unit.host, CONTROL_NODE)))
    build(unit.node.id, _without_needs(moved), joins=moved.joins, hosts=allowed)
    return moved


def _without_needs(fragment: ExecutionFragment) -> list[ExecutionNode]:
    return [
        replace(node, step=replace(node.step, needs=()), limits=NO_LIMITS)
        for node in fragment.nodes
    ]


def _depth(unit: Unit) -> int:
    depth, parent = 0, unit.node.parent
    while parent is not None:
        depth, parent = depth + 1, parent.node.parent
    return depth
