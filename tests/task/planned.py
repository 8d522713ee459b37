"""Whole cluster files, planned: what their steps come to on a host, as far as it is known then."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace
from tests import virtual

from kubexm.app import foreknown, planning, runs
from kubexm.app.execution import Front
from kubexm.app.params import ClusterParams, Operation, OperationParams, PlanParams, RunParams
from kubexm.app.planning import Planned
from kubexm.app.runs import RunOutcome
from kubexm.common.paths import Home
from kubexm.plan.node import ExecutionNode
from kubexm.sim import World
from kubexm.spec import references
from kubexm.step import registry
from kubexm.step.contract import Step
from kubexm.step.files import Rendered

HOSTS = [
    {"name": "cp[1:3]", "address": "10.0.0.[11:13]"},
    {"name": "w[1:2]", "address": "10.0.0.[21:22]"},
]


def written(folder: Path, **spec: Any) -> Path:
    """A cluster file; its keys are made in no time."""
    usual = {"version": "v1.36.3", "certificates": {"algorithm": "ECDSA-P256"}}
    body = {
        "hosts": HOSTS,
        "roleGroups": {"control-plane": ["cp[1:3]"]},
        "network": {"plugin": "flannel"},
        **spec,
        "kubernetes": {**usual, **spec.get("kubernetes", {})},
    }
    head = {"apiVersion": "kubexm.io/v1alpha1", "kind": "Cluster", "metadata": {"name": "demo"}}
    file = folder / "cluster.yaml"
    file.write_bytes(msgspec.json.encode({**head, "spec": body}))
    return file


def planned(file: Path, *catalogs: Path, templates: Path | None = None) -> Planned:
    """What is done to make the cluster of a file."""
    cluster = ClusterParams(file, catalogs=catalogs)
    return planning.plan(PlanParams(OperationParams(cluster, templates=templates)))


def made(file: Path, *catalogs: Path, operation: Operation = "create-cluster") -> RunOutcome:
    """What comes of it on simulated hosts, which are kept beside the file."""
    cluster = ClusterParams(file, catalogs=catalogs)
    params = RunParams(PlanParams(OperationParams(cluster, operation)), simulate=True)
    home = Home(file.parent, file.parent, file.parent)
    return virtual.hurried(runs.run(params, Front(), home))


@contextmanager
def world(outcome: RunOutcome) -> Iterator[World]:
    """The simulated hosts that were worked on."""
    assert outcome.world is not None
    opened = World.open(outcome.world)
    try:
        yield opened
    finally:
        opened.close()


def step(plan: Planned, wanted: str, host: str) -> Step:
    """The step of a host whose node is called so, or that writes the file of this path."""
    (known,) = (each for each in plan.hosts if each.name == host)
    for node in plan.graph:
        if host not in node.hosts:
            continue
        params = foreknown.parameters(node, known)
        if node.id.endswith(wanted) or params.get("path") == wanted:
            return registry.load(node.step.kind, params)
    raise LookupError(wanted)


def content(plan: Planned, path: str, host: str, facts: Mapping[str, Any] | None = None) -> str:
    """The text of a file by a template, on a host that tells `facts` of itself."""
    found = step(plan if facts is None else _told(plan, host, facts), path, host)
    assert isinstance(found, Rendered)
    return found.file().content or ""


def _told(plan: Planned, host: str, facts: Mapping[str, Any]) -> Planned:
    """The plan in which references to facts are what the host tells."""

    def resolved(reference: references.Reference) -> Any:
        if reference.root != "facts":
            return f"${{{reference}}}"
        return references.in_scope(reference, {"facts": facts})

    def told(node: ExecutionNode) -> ExecutionNode:
        if host not in node.hosts or not node.step.references:
            return node
        try:
            params = references.resolved(node.step.params, resolved)
        except references.BadReference:
            return node  # which needs what is not told here
        return replace(node, step=replace(node.step, params=params))

    nodes = {node.id: told(node) for node in plan.graph}
    return replace(plan, graph=replace(plan.graph, nodes=nodes))
