"""A node of a graph as steps that can run: made once if nothing differs, else for each unit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubexm.document.findings import Finding, written_path
from kubexm.errors import InvalidInput, StepFailed
from kubexm.plan import ExecutionNode
from kubexm.runtime.contexts import UnitView
from kubexm.spec import conditions, parameters, references
from kubexm.spec.expressions import BadExpression, Expression, compile_expression
from kubexm.spec.references import BadReference, Reference
from kubexm.step import registry
from kubexm.step.contract import Step


class LoadedNode:
    """One node: its class, its step if that is the same for all units, its condition.

    An assertion comes as part of the condition; here the two are told apart again, so that what
    holds is not taken for what does not apply.
    """

    __slots__ = ("_asserted", "_condition", "_kind", "_params", "cls", "decisive", "static")

    def __init__(self, node: ExecutionNode) -> None:
        self._kind = node.step.kind
        self._params = node.step.params
        self._asserted, self._condition = _expressions(node)
        self.cls: type[Step] = registry.find(self._kind)
        self.decisive = self._value_names() if node.step.needs else frozenset[str]()
        self.static: Step | None = None
        if self._asserted is not None:
            return  # each unit decides for itself
        if not node.step.references:
            self.static = registry.load(self._kind, self._params)
        elif not any(True for _ in references.scan(self._params)):
            # Nothing to resolve, but perhaps an escape to take back.
            params = references.resolved(self._params, lambda reference: None)
            self.static = registry.load(self._kind, params)

    def _value_names(self) -> frozenset[str]:
        found = [item for _, item in references.scan(self.cls.looked_at(self._params))]
        for expression in filter(None, (self._condition, self._asserted)):
            found += expression.references
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
        taken = parameters.as_taken(self._kind, self._params, params)
        if self._asserted is not None:
            taken = {**taken, **_asserted(self._asserted, taken.get("message", ""), scope)}
        return _loaded(self._kind, taken)

    def wanted(self, view: UnitView) -> bool:
        """Whether the node's `when` holds for this unit."""
        return self._condition is None or _holds("when", self._condition, _scope(view))


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


def _expressions(node: ExecutionNode) -> tuple[Expression | None, Expression | None]:
    """What a node of a file asserts, if it asserts an expression, and its `when`."""
    try:
        if not node.step.references:
            return None, _compiled(node.when)
        asserted, when = conditions.told(node.step.kind, node.step.params, node.when)
        return _compiled(asserted), _compiled(when)
    except BadExpression as error:
        raise StepFailed(f"can't read `when: {node.when}`: {error}", hint=error.hint) from error


def _compiled(text: str | None) -> Expression | None:
    return None if text is None else compile_expression(text)


def _asserted(
    expression: Expression, message: str, scope: Mapping[str, Any]
) -> Mapping[str, bool | str]:
    """The parameters of an assertion, decided for one unit, with what was found."""
    if _holds("that", expression, scope):
        return {"that": True}
    found = conditions.found(expression, scope)
    but = f", but {found}" if found else ""
    return {"that": False, "message": f"{message}: want `{expression.text}`{but}"}


def _holds(key: str, expression: Expression, scope: Mapping[str, Any]) -> bool:
    try:
        return expression.holds(scope)
    except BadExpression as error:
        said = f"can't decide `{key}: {expression.text}`: {error}"
        raise StepFailed(said, hint=error.hint) from error


def _scope(view: UnitView) -> Mapping[str, Any]:
    return {"vars": view.vars, "facts": view.facts, "values": view.values, "host": view.host}
