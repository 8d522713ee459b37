"""The vertices of an execution graph: nodes that do work, joins that only wait."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from kubexm.plan.policy import ResourceConstraints, RetryPolicy, Tolerance

NO_RETRY = RetryPolicy()
NO_LIMITS = ResourceConstraints()
DEFAULT_TOLERANCE = Tolerance()
ANY_HOST = "*"
"""Stands for the host of a `one_of` unit until it is bound."""


class Key(
    msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True
):
    """A value that one step leaves for others; `ttl` in seconds, None for ever."""

    name: str
    scope: Literal["run", "host"] = "run"
    secret: bool = False
    ttl: float | None = None


class StepSpec(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A step as it is stored: its kind, its parameters, the values it takes and gives.

    With `references`, a `${…}` in the parameters stands for something that each unit resolves;
    without, it is text like any other.
    """

    kind: str
    params: dict[str, Any] = {}
    needs: tuple[str, ...] = ()
    provides: tuple[Key, ...] = ()
    references: bool = False


class Hook(
    msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True
):
    """Marks a node as a hook of a scope; it runs by that scope's outcome, not by success alone."""

    scope: str
    moment: Literal["pre", "post", "on-failure", "always"]
    barrier: bool = False


class ExecutionNode(msgspec.Struct, frozen=True):
    """One step on a set of hosts; with `one_of`, on the first of them that can."""

    id: str
    name: str
    step: StepSpec
    hosts: tuple[str, ...]
    one_of: bool = False
    after: tuple[str, ...] = ()
    after_same_host: tuple[str, ...] = ()
    retry: RetryPolicy = NO_RETRY
    limits: ResourceConstraints = NO_LIMITS
    timeout: float | None = None
    tolerance: Tolerance | None = None
    when: str | None = None
    ignore_errors: bool = False
    tags: tuple[str, ...] = ()
    hook: Hook | None = None


class Join(msgspec.Struct, frozen=True):
    """A vertex without work: whoever waits for it waits for all that it names."""

    id: str
    after: tuple[str, ...] = ()
    after_same_host: tuple[str, ...] = ()


class Compensation(msgspec.Struct, frozen=True):
    """What is run to undo a whole scope, in place of the undo of each of its units."""

    scope: str
    nodes: tuple[ExecutionNode, ...]
    joins: tuple[Join, ...] = ()
