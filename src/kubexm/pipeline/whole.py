"""What all operations on a cluster have in common: their modules, and the graph they become."""

from __future__ import annotations

from collections.abc import Iterator

from kubexm.common.roles import CONTROL_NODE, CONTROL_PLANE, ETCD
from kubexm.plan.fragment import ExecutionFragment
from kubexm.plan.graph import ExecutionGraph
from kubexm.plan.graph import as_graph as made
from kubexm.plan.policy import HostGroup, OnFailure
from kubexm.step import registry
from kubexm.task import artifacts, system
from kubexm.task.context import ClusterContext
from kubexm.templates import render

MODULES = (
    "preflight",
    "assets",
    "system",
    "container-runtime",
    "pki",
    "registry",
    "etcd",
    "load-balancer",
    "control-plane",
    "network",
    "workers",
    "dns",
    "storage",
    "add-ons",
)
"""The parts of an operation, which hooks name."""


def as_graph(
    ctx: ClusterContext,
    fragment: ExecutionFragment,
    *,
    groups: tuple[HostGroup, ...] = (),
    on_failure: OnFailure = "isolate",
) -> ExecutionGraph:
    """The graph of an operation; it is called as the cluster is, whose lock its runs hold."""
    return made(
        ctx.name,
        fragment,
        hosts=(CONTROL_NODE, *ctx.hosts),
        groups=groups,
        pools={**artifacts.POOLS, **system.POOLS},
        on_failure=on_failure,
        digests=dict(_digests(ctx, fragment)),
    )


def indispensable(ctx: ClusterContext) -> tuple[HostGroup, ...]:
    """Hosts of which none may be missing when a cluster begins."""
    groups = {CONTROL_PLANE: ctx.control_planes, ETCD: ctx.etcd}
    return tuple(HostGroup(name, hosts, len(hosts)) for name, hosts in groups.items() if hosts)


def _digests(ctx: ClusterContext, fragment: ExecutionFragment) -> Iterator[tuple[str, str]]:
    """What the graph stands on beside itself."""
    yield "catalog", ctx.catalog.digest
    for kind in sorted({node.step.kind for node in fragment.nodes}):
        yield f"step:{kind}", registry.digest(kind)
    for name in sorted({node.step.params.get("template") or "" for node in fragment.nodes} - {""}):
        yield f"template:{name}", render.digest(name)
    for path, digest in sorted(ctx.files.read.items()):
        yield f"file:{path}", digest
