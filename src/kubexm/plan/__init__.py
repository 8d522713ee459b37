"""The plan: an execution graph, the algebra that makes it, and what comes of running it."""

from kubexm.plan.fragment import (
    ExecutionFragment,
    OneOf,
    chain,
    link,
    node,
    one_of,
    parallel,
    per_host,
    prefixed,
    rolling,
    settled,
)
from kubexm.plan.graph import ExecutionGraph, as_graph, build
from kubexm.plan.node import Compensation, ExecutionNode, Hook, Join, Key, StepSpec
from kubexm.plan.policy import (
    Allowance,
    HostGroup,
    Pool,
    ResourceConstraints,
    RetryPolicy,
    Tolerance,
)
from kubexm.plan.result import Cause, GraphExecutionResult, HostResult, NodeResult
from kubexm.plan.scope import HookFragment, module, pipeline, scope, task

__all__ = [
    "Allowance",
    "Cause",
    "Compensation",
    "ExecutionFragment",
    "ExecutionGraph",
    "ExecutionNode",
    "GraphExecutionResult",
    "Hook",
    "HookFragment",
    "HostGroup",
    "HostResult",
    "Join",
    "Key",
    "NodeResult",
    "OneOf",
    "Pool",
    "ResourceConstraints",
    "RetryPolicy",
    "StepSpec",
    "Tolerance",
    "as_graph",
    "build",
    "chain",
    "link",
    "module",
    "node",
    "one_of",
    "parallel",
    "per_host",
    "pipeline",
    "prefixed",
    "rolling",
    "scope",
    "settled",
    "task",
]
