"""What stored steps are about, in the words of their classes and the values that are known."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from kubexm.document import literals
from kubexm.plan import ExecutionGraph, ExecutionNode, StepSpec
from kubexm.plan.outline import kind_and_params
from kubexm.spec import conditions, parameters, references, shapes
from kubexm.spec.decisions import Facts
from kubexm.spec.inventory import InventoryHost
from kubexm.spec.references import BadReference, Reference
from kubexm.step import registry

replace = msgspec.structs.replace
Roots = Mapping[str, Sequence[Mapping[str, Any]]]
"""What references begin with, on each host that differs."""


def describe(step: StepSpec) -> str:
    """What is true after a step, in one line; references stand as they are written."""
    if step.kind not in registry.kinds():
        return kind_and_params(step)
    for parameter in parameters.parameters_of(step.kind).values():
        value = step.params.get(parameter.field, shapes.OPEN)
        if any(shapes.mismatches(value, parameter.shape)):
            # A reference where the class has no text: it has no words for that.
            return kind_and_params(step)
    return parameters.sketch(registry.find(step.kind), step.params).summary()


def as_known(
    graph: ExecutionGraph, hosts: Iterable[InventoryHost], facts: Facts | None = None
) -> ExecutionGraph:
    """The graph as people read it, not as it runs: what is known when planning is written out.

    A variable or a fact has its value where that is the same on all hosts of a node and holds no
    secret; an assertion says what it asserts.
    """
    reader = _Reader(hosts, facts or {})
    return replace(
        graph,
        nodes={id: reader.read(node) for id, node in graph.nodes.items()},
        compensations=tuple(
            replace(item, nodes=tuple(map(reader.read, item.nodes))) for item in graph.compensations
        ),
    )


class _Reader:
    """Writes out what is known of nodes."""

    def __init__(self, hosts: Iterable[InventoryHost], facts: Facts) -> None:
        self._hosts = {host.name: host for host in hosts}
        self._facts = facts
        # Most hosts have the same variables, and then it is one object.
        variables = {id(host.vars): host.vars for host in self._hosts.values()}
        self._secrets = {text for vars in variables.values() for text in _secrets(vars)}

    def read(self, node: ExecutionNode) -> ExecutionNode:
        step = node.step
        if step.references and references.holds_references(step.params):
            roots = self._roots(node)
            params = references.resolved(step.params, lambda found: self._known(found, roots))
            params = parameters.as_taken(step.kind, step.params, params)
            node = replace(node, step=replace(step, params=params))
        return _asserted(node)

    def _roots(self, node: ExecutionNode) -> Roots:
        hosts = [self._hosts[name] for name in node.hosts]
        variables = {id(host.vars): host.vars for host in hosts}
        return {
            "vars": [*variables.values()],
            "host": [host.described() for host in hosts],
            "facts": [self._facts.get(host.name, {}) for host in hosts],
        }

    def _known(self, reference: Reference, roots: Roots) -> Any:
        """What a reference names everywhere, or the reference as it is written."""
        try:
            values = [references.look_up(reference, root) for root in roots.get(reference.root, ())]
        except BadReference:
            values = []
        if values and all(value == values[0] for value in values) and self._is_public(values[0]):
            return values[0]
        return f"${{{reference}}}"

    def _is_public(self, value: Any) -> bool:
        text = references.written(value)
        return not any(secret in text for secret in self._secrets)


def _secrets(variables: Mapping[str, Any]) -> Iterator[str]:
    """Texts that were written out although they look like secrets."""
    for finding in literals.findings(variables):
        yield str(functools.reduce(references.part, finding.path, variables))


def _asserted(node: ExecutionNode) -> ExecutionNode:
    step = node.step
    expression, when = conditions.told(step.kind, step.params, node.when)
    if expression is None:
        return node
    message = f"{step.params.get('message', '')}: {expression}"
    return replace(node, step=replace(step, params={**step.params, "message": message}), when=when)
