"""What a run has changed by a plan that a corrected one takes the place of."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from kubexm.app import foreknown
from kubexm.app.foreknown import Plan
from kubexm.engine.expansion import Expansion, Grown
from kubexm.engine.undo import FORMER, SETTLE, UNDO, is_undo
from kubexm.errors import KubexmError
from kubexm.plan.fragment import replace
from kubexm.plan.graph import ExecutionGraph
from kubexm.plan.node import ExecutionNode, StepSpec
from kubexm.plan.records import Layer, RunState
from kubexm.plan.validation import topological_order
from kubexm.spec import references
from kubexm.spec.inventory import InventoryHost
from kubexm.spec.references import Reference
from kubexm.step import registry
from kubexm.step.contract import Step


def as_planned(
    plan: Plan, state: RunState, hosts: Mapping[str, Sequence[str]], after: Iterable[Layer] = ()
) -> tuple[Layer, ...]:
    """These hosts of these nodes, so that they can be undone when the plan is no more."""
    if not hosts:
        return ()
    known = {host.name: host for host in plan.hosts}
    numbers = itertools.count(1 + _last_number((*state.former, *after)))
    return tuple(
        tuple(as_it_came_out(node, [known[name] for name in hosts[node.id]], numbers))
        for node in _in_order(plan.graph, state)
        if node.id in hosts
    )


def to_settle(state: RunState) -> tuple[Layer, ...]:
    """What a way back has undone of former plans, and was stopped before it was settled."""
    if state.turned is None:
        return ()
    settled, numbers = Settled(state), itertools.count(1 + _last_number(state.former))
    there = {
        (node.id, host) for node in itertools.chain(*state.not_undone()) for host in node.hosts
    }

    def again(node: ExecutionNode) -> ExecutionNode | None:
        undone = (host for host in node.hosts if (node.id, host) not in there)
        hosts = tuple(host for host in undone if not settled(node, host))
        id = f"{node.id.partition(FORMER)[0]}{FORMER}"
        return replace(node, id=f"{id}{next(numbers)}", hosts=hosts) if hosts else None

    layers = (tuple(filter(None, map(again, layer))) for layer in state.former)
    return tuple(filter(None, layers))


class Settled:
    """Tells whether what was there before a node was undone goes on, if it has to."""

    def __init__(self, state: RunState) -> None:
        self._done = state.done
        self._places = state.places()

    def __call__(self, node: ExecutionNode, host: str) -> bool:
        if registry.find(node.step.kind).settle is Step.settle:
            return True
        place = self._places.get((node.id.partition(FORMER)[0], host), node.id)
        ends = (self._done.get((f"{UNDO}/{id}{SETTLE}", host)) for id in (node.id, place))
        return any(end is not None and end.result.status == "Success" for end in ends)


def resources_of(node: ExecutionNode, host: InventoryHost) -> tuple[str, ...] | None:
    """What the ledger calls the things that a node changes on a host; None if only a run knows."""
    step = node.step
    if step.references:
        if _needs_a_run(step):
            return None
        step = replace(step, params=foreknown.parameters(node, host))
    try:
        return registry.load(step.kind, step.params).resources
    except KubexmError:
        return None


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


def as_it_came_out(
    node: ExecutionNode, hosts: Iterable[InventoryHost], numbers: Iterator[int]
) -> Iterator[ExecutionNode]:
    """A node for each way in which its parameters came out, with what was known then."""
    is_open = node.step.references and _needs_a_run(node.step)
    known = foreknown.parameters_in_part if is_open else foreknown.parameters
    ways: dict[bytes, list[str]] = {}
    for host in hosts:
        params = msgspec.json.encode(known(node, host))
        ways.setdefault(params, []).append(host.name)
    for params, names in ways.items():
        yield ExecutionNode(
            id=f"{node.id}{FORMER}{next(numbers)}",
            name=node.name,
            step=_settled(node.step, msgspec.json.decode(params), is_open),
            hosts=tuple(names),
            retry=node.retry,
            limits=node.limits,
            timeout=node.timeout,
        )


def _settled(step: StepSpec, params: dict[str, Any], is_open: bool) -> StepSpec:
    """A step with parameters in which only facts and values may be left to be looked up."""
    return replace(step, params=params, provides=(), references=is_open)


def _needs_a_run(step: StepSpec) -> bool:
    found = (reference for _, reference in references.scan(step.params))
    return any(isinstance(item, Reference) and item.root not in foreknown.ROOTS for item in found)
