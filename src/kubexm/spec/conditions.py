"""Assertions as expressions: `assert: {that: facts.cpus >= 2}`, decided for each unit.

A step takes plain values, so the expression moves into the condition of the node: the assertion
fails wherever the expression is not true.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubexm.document.source import DataPath
from kubexm.spec import expressions, references
from kubexm.spec.expressions import BadExpression, Expression
from kubexm.spec.references import BadReference, Reference

KIND = "assert"
THAT = "that"


def asserted(kind: str, params: Any) -> str | None:
    """The expression that an assertion makes, if it makes one."""
    if kind != KIND or not isinstance(params, Mapping):
        return None
    that = params.get(THAT)
    return that if isinstance(that, str) and not references.is_whole(that) else None


def turned(
    kind: str, params: Mapping[str, Any], when: str | None
) -> tuple[Mapping[str, Any], str | None]:
    """Parameters without an expression, and the condition that has taken it in."""
    expression = asserted(kind, params)
    if expression is None:
        return params, when
    refused = f"not ({expression})"
    condition = f"({when}) and {refused}" if when else refused
    return {**params, THAT: False}, condition


def told(kind: str, params: Mapping[str, Any], when: str | None) -> tuple[str | None, str | None]:
    """The expression and the condition that `turned` has made one of."""
    if kind != KIND or params.get(THAT) is not False or when is None:
        return None, when
    parts = expressions.without_last_not(when)
    return (None, when) if parts is None else (parts[1], parts[0])


def found(expression: Expression, scope: Mapping[str, Any]) -> str:
    """What an expression reads, and what that is for one unit."""
    names = dict.fromkeys(expression.references)
    return ", ".join(f"`{name}` is {_told(name, scope)}" for name in names)


def _told(name: Reference, scope: Mapping[str, Any]) -> str:
    try:
        value = references.in_scope(name, scope)
    except BadReference:
        return "not there"
    if isinstance(value, str):
        return f"`{references.told(value)}`" if value else "empty"
    if isinstance(value, list | tuple | Mapping):
        return f"{references.told(value)} of {len(value)}"
    return references.told(value)


def decided(when: str | None, scope: Mapping[str, Any], *, undecided: bool = False) -> bool:
    """Whether it is known, by what is in scope, that a condition holds.

    With `undecided`, also where it is not known that it does not.
    """
    if when is None:
        return True
    try:
        holds = expressions.compile_expression(when).decided(scope)
    except BadExpression:
        return False
    return undecided if holds is None else holds


def place(kind: str, path: DataPath) -> DataPath:
    """Where the condition of a step is written."""
    return (*path, KIND, THAT) if kind == KIND else (*path, "when")
