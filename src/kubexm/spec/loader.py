"""A node of a graph as steps that can run: made once if nothing differs, else for each unit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubexm.errors import InvalidInput, StepFailed
from kubexm.plan import ExecutionNode
from kubexm.runtime.contexts import UnitView
from kubexm.spec import parameters, references
from kubexm.spec.expressions import BadExpression, Expression, compile_expression
from kubexm.spec.fields import Finding, written_path
from kubexm.spec.references import BadReference, Reference
from kubexm.step import registry
from kubexm.step.contract import Step


class LoadedNode:
    """One node: its class, its step if that is the same for all units, its condition."""

    __slots__ = ("_condition", "_kind", "_params", "cls", "decisive", "static")

    def __init__(self, node: ExecutionNode) -> None:
        self._kind = node.step.kind
        self._params = node.step.params
        self._condition = _condition(node)
        self.cls: type[Step] = registry.find(self._kind)
        self.decisive = self._value_names() if node.step.needs else frozenset[str]()
        self.static: Step | None = None
        if not node.step.references:
            self.static = registry.load(self._kind, self._params)
        elif not any(True for _ in references.scan(self._params)):
            # Nothing to resolve, but perhaps an escape to take back.
            params = references.resolved(self._params, lambda reference: None)
            self.static = registry.load(self._kind, params)

    def _value_names(self) -> frozenset[str]:
        found = [item for _, item in references.scan(self.cls.looked_at(self._params))]
        found += self._condition.references if self._condition is not None else ()
        return frozenset(
            item.path[0]
            for item in found
            if isinstance(item, Reference) and item.root == "values" and item.path
        )

    def bind(self, view: UnitView) -> Step:
        """The step for one unit, its references resolved."""
        if self.static is not None:
            return self.static
        scope = _scope(view)
        try:
            params = references.resolved(
                self._params,
                lambda reference: references.in_scope(reference, scope),
            )
        except BadReference as error:
            raise StepFailed(f"a parameter can't be resolved: {error}", hint=error.hint) from error
        return _loaded(self._kind, parameters.as_taken(self._kind, self._params, params))

    def wanted(self, view: UnitView) -> bool:
        """Whether the node's `when` holds for this unit."""
        if self._condition is None:
            return True
        try:
            return self._condition.holds(_scope(view))
        except BadExpression as error:
            text = self._condition.text
            raise StepFailed(f"can't decide `when: {text}`: {error}", hint=error.hint) from error


class Loader:
    """Loads nodes, each once."""

    def __init__(self) -> None:
        self._loaded: dict[str, tuple[ExecutionNode, LoadedNode]] = {}

    def __call__(self, node: ExecutionNode) -> LoadedNode:
        known = self._loaded.get(node.id)
        if known is None or known[0] is not node:
            known = self._loaded[node.id] = (node, LoadedNode(node))
        return known[1]


def _loaded(kind: str, fields: Mapping[str, Any]) -> Step:
    try:
        return registry.load(kind, fields)
    except InvalidInput as error:
        found = list(parameters.refusals(kind, fields))
        raise StepFailed(
            "; ".join(map(_said, found)) or error.message,
            hint="; ".join(dict.fromkeys(finding.hint for finding in found)) or error.hint,
        ) from error


def _said(finding: Finding) -> str:
    """What is wrong with a parameter, beginning with its name."""
    if not finding.path or finding.message.startswith("`"):
        return finding.message
    return f"`{written_path(finding.path)}`: {finding.message}"


def _condition(node: ExecutionNode) -> Expression | None:
    if node.when is None:
        return None
    try:
        return compile_expression(node.when)
    except BadExpression as error:
        raise StepFailed(f"can't read `when: {node.when}`: {error}", hint=error.hint) from error


def _scope(view: UnitView) -> Mapping[str, Any]:
    return {"vars": view.vars, "facts": view.facts, "values": view.values, "host": view.host}
