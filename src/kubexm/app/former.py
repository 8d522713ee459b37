"""What a run has changed by a plan that a corrected one takes the place of."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from kubexm.app import foreknown
from kubexm.app.foreknown import Plan
from kubexm.engine.expansion import Expansion, Grown
from kubexm.engine.undo import FORMER, is_undo
from kubexm.plan.fragment import replace
from kubexm.plan.graph import ExecutionGraph
from kubexm.plan.node import ExecutionNode, StepSpec
from kubexm.plan.records import Layer, RunState
from kubexm.plan.validation import topological_order
from kubexm.spec import references
from kubexm.spec.inventory import InventoryHost
from kubexm.spec.references import Reference


def as_planned(
    plan: Plan, state: RunState, hosts: Mapping[str, Sequence[str]]
) -> tuple[Layer, ...]:
    """These hosts of these nodes, so that they can be undone when the plan is no more."""
    if not hosts:
        return ()
    known = {host.name: host for host in plan.hosts}
    numbers = itertools.count(1 + _last_number(state.former))
    return tuple(
        tuple(_as_it_came_out(node, [known[name] for name in hosts[node.id]], numbers))
        for node in _in_order(plan.graph, state)
        if node.id in hosts
    )


def hosts_of(former: Iterable[Layer]) -> set[str]:
    """Where the nodes of these layers are."""
    return {host for layer in former for node in layer for host in node.hosts}


def on_hosts(former: Iterable[Layer], hosts: Collection[str]) -> tuple[Layer, ...]:
    """What is left of these layers if there are no other hosts."""
    layers = (tuple(_on(layer, hosts)) for layer in former)
    return tuple(layer for layer in layers if layer)


def _on(layer: Layer, hosts: Collection[str]) -> Iterator[ExecutionNode]:
    for node in layer:
        if there := tuple(host for host in node.hosts if host in hosts):
            yield replace(node, hosts=there)


def _last_number(former: Iterable[Layer]) -> int:
    numbers = (int(node.id.rpartition("/")[2]) for layer in former for node in layer)
    return max(numbers, default=0)


def _in_order(graph: ExecutionGraph, state: RunState) -> Iterator[ExecutionNode]:
    """All nodes, also those that were added, so that each comes after what it stood on."""
    added = [
        Expansion(node, done.result.host_name, done.fragment)
        for (node, _), done in state.done.items()
        if done.fragment is not None and not is_undo(node)
    ]
    grown = Grown(graph, added)
    order, _ = topological_order(grown.nodes, grown.joins)
    return (grown.nodes[id] for id in order if id in grown.nodes)


def _as_it_came_out(
    node: ExecutionNode, hosts: Iterable[InventoryHost], numbers: Iterator[int]
) -> Iterator[ExecutionNode]:
    """A node for each way in which its parameters came out, with what was known then."""
    ways: dict[bytes, list[str]] = {}
    for host in hosts:
        params = msgspec.json.encode(foreknown.parameters(node, host))
        ways.setdefault(params, []).append(host.name)
    for params, names in ways.items():
        yield ExecutionNode(
            id=f"{node.id}{FORMER}{next(numbers)}",
            name=node.name,
            step=_settled(node.step, msgspec.json.decode(params)),
            hosts=tuple(names),
            retry=node.retry,
            limits=node.limits,
            timeout=node.timeout,
        )


def _settled(step: StepSpec, params: dict[str, Any]) -> StepSpec:
    """A step with parameters in which only facts and values may be left to be looked up."""
    found = [reference for _, reference in references.scan(step.params)]
    left = any(isinstance(item, Reference) and item.root not in foreknown.ROOTS for item in found)
    return replace(step, params=params, provides=(), references=step.references and left)
