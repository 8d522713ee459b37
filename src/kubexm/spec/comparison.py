"""Whether a unit of a corrected pipeline is the same as before: its node and what it names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kubexm.plan import ExecutionNode
from kubexm.spec import references
from kubexm.spec.expressions import compile_expression
from kubexm.spec.inventory import InventoryHost
from kubexm.spec.references import BadReference, Reference


def same_unit(
    before: ExecutionNode,
    after: ExecutionNode,
    host_before: InventoryHost,
    host_after: InventoryHost,
) -> bool:
    """Whether a node does the same on a host as it did, with the variables of both times."""
    return before == after and all(
        _value(reference, host_before) == _value(reference, host_after)
        for reference in _early(after)
    )


def _early(node: ExecutionNode) -> Iterator[Reference]:
    """What a node names and what is known before the run."""
    named = [found for _, found in references.scan(node.step.params)]
    if node.when is not None:
        named.extend(compile_expression(node.when).references)
    for reference in named:
        if isinstance(reference, Reference) and reference.root in ("vars", "host"):
            yield reference


def _value(reference: Reference, host: InventoryHost) -> Any:
    try:
        return references.in_scope(reference, {"vars": host.vars, "host": host.described()})
    except BadReference:
        return BadReference
