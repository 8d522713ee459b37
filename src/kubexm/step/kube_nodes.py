"""The step about kube nodes that are to take pods."""

from __future__ import annotations

from collections.abc import Sequence

from kubexm.common.counting import few
from kubexm.runner import kubectl, workloads
from kubexm.runner.host import Command, Completed, Host
from kubexm.runtime.contexts import StepContext
from kubexm.step.contract import NotYet, Outcome, Step, Verdict
from kubexm.step.kube import awaited
from kubexm.step.parameters import require_names
from kubexm.step.registry import step


@step("nodes-ready")
class NodesReady(Step):
    """All of these kube nodes that have joined the cluster take pods.

    The step's `timeout` says how long to wait; between two looks it holds no slot. Of one that has
    not joined somebody else has told already.

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

    def probe(self, host: Host) -> Sequence[Command]:
        return (kubectl.get_command(host, "nodes", sudo=self.sudo),)

    def judge(self, answers: Sequence[Completed]) -> Verdict:
        found = {node["metadata"]["name"]: node for node in kubectl.objects_of(answers[0])}
        joined = [name for name in self.nodes if name in found]
        late = [name for name in joined if workloads.not_ready(found[name])]
        if late or not joined:
            what = f"not ready: {few(late)}" if late else "none of them has joined"
            return Verdict.needed(what, "?")
        absent = [name for name in self.nodes if name not in found]
        return Verdict.holds(f"without {few(absent)}, which did not join" if absent else "")

    async def run(self, ctx: StepContext) -> Outcome | NotYet:
        return await awaited(self, ctx)
