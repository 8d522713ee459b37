"""Steps about what runs in a cluster, as seen from one of its control planes."""

from __future__ import annotations

from collections.abc import Sequence

from kubexm.errors import StepFailed
from kubexm.plan.node import Key
from kubexm.runner import kubectl, pod_evidence, workloads
from kubexm.runner.diagnosis import Section, report
from kubexm.runner.host import Command, Completed, Host
from kubexm.runner.kubectl import Object
from kubexm.runtime.contexts import StepContext
from kubexm.step import let_in
from kubexm.step.contract import NotYet, Outcome, Reader, Step, Verdict
from kubexm.step.parameters import require_names
from kubexm.step.registry import step

INTERVAL = 2.0
"""Seconds between two looks."""
_KINDS = ("deployment", "daemonset", "statefulset")


@step("rollout")
class RolledOut(Step):
    """All pods of a workload are of its latest version, and available.

    The step's `timeout` says how long to wait; between two looks it holds no slot. Pods on a host
    that is lost in this run are not waited for.

    ```yaml
    - name: dns
      timeout: 5m
      rollout: {resource: deployment/coredns, namespace: kube-system}
    ```
    """

    resource: str
    """`deployment/NAME`, `daemonset/NAME` or `statefulset/NAME`."""
    namespace: str = "kube-system"
    """Where it is."""
    sudo: bool | None = None
    """Run as root through sudo; by default as `sudo` of the host says."""

    def __post_init__(self) -> None:
        require_names((self.namespace,), "namespace")
        require_resource(self.resource, _KINDS)

    def summary(self) -> str:
        return f"{self.resource} in {self.namespace} is rolled out"

    def probe(self, host: Host) -> Sequence[Command]:
        return (kubectl.get_command(host, "-n", self.namespace, self.resource, sudo=self.sudo),)

    def judge(self, answers: Sequence[Completed]) -> Verdict:
        workload = kubectl.object_of(answers[0])
        if workload is None:
            return Verdict.needed("does not exist", "?")
        missing = workloads.unfinished(workload)
        return Verdict.needed(missing, "?") if missing else Verdict.holds()

    async def run(self, ctx: StepContext) -> Outcome | NotYet:
        found = await awaited(self, ctx)
        if isinstance(found, NotYet) and ctx.lost and await self._lacks_lost_ones_only(ctx):
            return Outcome(changed=False, message=f"{found.reason}, the others are on lost hosts")
        return found

    async def diagnose(self, ctx: StepContext) -> str:
        if (workload := await self._found(ctx)) is None:
            return ""
        about, words = (workload["metadata"]["name"],), self._pods_of(workload)
        return report(await pod_evidence.of_pods(ctx.host, *words, about=about, sudo=self.sudo))

    async def _lacks_lost_ones_only(self, ctx: StepContext) -> bool:
        if (workload := await self._found(ctx)) is None:
            return False
        pods = await kubectl.get(ctx.host, "pods", *self._pods_of(workload), sudo=self.sudo)
        lost = workloads.stranded(workload, pods, ctx.lost)
        return not workloads.unfinished(workload, without=lost)

    async def _found(self, ctx: StepContext) -> Object | None:
        words = ("-n", self.namespace, self.resource)
        return next(iter(await kubectl.get(ctx.host, *words, sudo=self.sudo)), None)

    def _pods_of(self, workload: Object) -> tuple[str, ...]:
        wanted = kubectl.selector(workload["spec"]["selector"].get("matchLabels", {}))
        return ("-n", self.namespace, "-l", wanted)


@step("node-ready")
class NodeReady(Step):
    """A kube node takes pods.

    The step's `timeout` says how long to wait; between two looks it holds no slot.

    ```yaml
    - name: ready
      timeout: 5m
      node-ready: {node: worker1}
    ```
    """

    node: str
    """The name of the kube node."""
    sudo: bool | None = None
    """Run as root through sudo; by default as `sudo` of the host says."""

    def __post_init__(self) -> None:
        require_names((self.node,), "node")

    def summary(self) -> str:
        return f"node {self.node} is ready"

    def probe(self, host: Host) -> Sequence[Command]:
        return (kubectl.get_command(host, "node", self.node, sudo=self.sudo),)

    def judge(self, answers: Sequence[Completed]) -> Verdict:
        node = kubectl.object_of(answers[0])
        if node is None:
            return Verdict.needed("the cluster has no such node", "?")
        missing = workloads.not_ready(node)
        return Verdict.needed(f"is not ready: {missing}", "?") if missing else Verdict.holds()

    async def run(self, ctx: StepContext) -> Outcome | NotYet:
        return await awaited(self, ctx)

    async def diagnose(self, ctx: StepContext) -> str:
        return report(await pod_evidence.of_nodes(ctx.host, (self.node,), sudo=self.sudo))


@step("pod-networks")
class PodNetworks(Reader):
    """The addresses that the cluster has given to the pods of each kube node were read.

    They become a value: `{node: [network, …]}`.

    ```yaml
    - name: networks
      runOnOneOf: [all]
      timeout: 2m
      pod-networks: {nodes: [control1, worker1]}
    ```
    """

    nodes: tuple[str, ...]
    """Kube nodes that have to have some, as far as they have joined; it waits for them, but for one
    whose host is lost in this run."""
    value: str = "pod_networks"
    """The name in `${values.NAME}`."""
    sudo: bool | None = None
    """Run as root through sudo; by default as `sudo` of the host says."""

    def __post_init__(self) -> None:
        require_names(self.nodes, "node")
        if not self.value.isidentifier():
            raise ValueError(f"`value` is `{self.value}`, want a name of letters, digits and _")

    def summary(self) -> str:
        return "the pod networks of all nodes are known"

    def provides(self) -> tuple[Key, ...]:
        return (Key(self.value),)

    async def precheck(self, ctx: StepContext) -> Verdict:
        return Verdict.needed("is asked for every time")

    async def run(self, ctx: StepContext) -> Outcome | NotYet:
        found = await kubectl.get(ctx.host, "nodes", sudo=self.sudo)
        networks = {node["metadata"]["name"]: _networks(node) for node in found}
        # Of one that has not joined somebody else has told already.
        absent = [name for name in self.nodes if name not in networks]
        missing = [name for name in self.nodes if networks.get(name) == []]
        missing += await let_in.expected(ctx.host, absent, sudo=self.sudo)
        missing = [name for name in missing if name not in ctx.lost]
        if not missing and networks:
            return Outcome(changed=False, values={self.value: networks})
        said = f"no addresses for pods yet: {', '.join(missing) or 'no node has joined'}"
        if ctx.dry_run:
            # Nobody makes them meanwhile: what is missing is made by steps before.
            raise StepFailed(said)
        return NotYet(INTERVAL, said)

    async def diagnose(self, ctx: StepContext) -> str:
        found = await kubectl.get(ctx.host, "nodes", sudo=self.sudo)
        bare = [node["metadata"]["name"] for node in found if not _networks(node)]
        said = Section("nodes", [f"node {name} has no addresses for pods" for name in bare])
        return report((said, *await pod_evidence.of_nodes(ctx.host, bare, sudo=self.sudo)))


def require_resource(resource: str, kinds: Sequence[str]) -> None:
    """A workload is named by its kind and its name."""
    kind, _, name = resource.partition("/")
    if kind not in kinds or not name:
        wanted = ", ".join(f"`{one}/NAME`" for one in kinds)
        raise ValueError(f"`resource` is `{resource}`, want one of {wanted}")
    require_names((name,), kind)


async def awaited(waiting: Step, ctx: StepContext) -> Outcome | NotYet:
    """What comes of waiting for what a precheck looks at."""
    verdict = await waiting.precheck(ctx)
    if verdict.satisfied:
        return Outcome(changed=False, message=verdict.reason)
    return NotYet(INTERVAL, verdict.reason)


def _networks(node: Object) -> list[str]:
    return list(node.get("spec", {}).get("podCIDRs", ()))
