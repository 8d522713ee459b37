"""The step about kube nodes that are to take pods."""

from __future__ import annotations

from collections.abc import Sequence

from kubexm.common.counting import few
from kubexm.runner import kubectl, pod_evidence, workloads
from kubexm.runner.diagnosis import report
from kubexm.runtime.contexts import StepContext
from kubexm.step import let_in
from kubexm.step.contract import NotYet, Outcome, Step, Verdict
from kubexm.step.kube import awaited
from kubexm.step.parameters import require_names
from kubexm.step.registry import step


@step("nodes-ready")
class NodesReady(Step):
    """All of these kube nodes that have joined the cluster take pods.

    The step's `timeout` says how long to wait; between two looks it holds no slot. One that has
    not joined is not waited for, nor one whose host is lost in this run, by the name of the node:
    of these somebody else has told already.

    ```yaml
    - name: ready
      timeout: 5m
      nodes-ready: {nodes: [control1, worker1, worker2]}
    ```
    """

    nodes: tuple[str, ...]
    """The names of the kube nodes."""
    sudo: bool | None = None
    """Run as root through sudo; by default as `sudo` of the host says."""

    def __post_init__(self) -> None:
        require_names(self.nodes, "node")

    def summary(self) -> str:
        return f"{len(self.nodes)} nodes are ready"

    async def precheck(self, ctx: StepContext) -> Verdict:
        nodes = await kubectl.get(ctx.host, "nodes", sudo=self.sudo)
        found = {node["metadata"]["name"]: node for node in nodes}
        late = [name for name in self.nodes if name in found and workloads.not_ready(found[name])]
        absent = [name for name in self.nodes if name not in found]
        late += await let_in.expected(ctx.host, absent, sudo=self.sudo)
        awaited = [name for name in late if name not in ctx.lost]
        if awaited or len(absent) == len(self.nodes):
            what = f"not ready: {few(awaited)}" if awaited else "none of them has joined"
            return Verdict.needed(what, "?")
        return Verdict.holds(_without(late, absent))

    async def run(self, ctx: StepContext) -> Outcome | NotYet:
        return await awaited(self, ctx)

    async def diagnose(self, ctx: StepContext) -> str:
        return report(await pod_evidence.of_nodes(ctx.host, self.nodes, sudo=self.sudo))


def _without(lost: Sequence[str], absent: Sequence[str]) -> str:
    """Which nodes take no pods, and why nobody waits for them."""
    others = [name for name in absent if name not in lost]
    told = (
        f"without {few(lost)}, lost in this run" if lost else "",
        f"without {few(others)}, which did not join" if others else "",
    )
    return "; ".join(filter(None, told))
