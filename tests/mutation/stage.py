"""Where mutants are played: the life of a cluster on simulated hosts, from a plan to its end."""

from __future__ import annotations

import gc
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import msgspec
import yaml
from tests import virtual
from tests.mutation import peers
from tests.mutation.mutants import Mutant, mutants, put_off
from tests.mutation.order import Sketch

from kubexm import engine
from kubexm.app import planning
from kubexm.app.params import ClusterParams, Operation, OperationParams, PlanParams
from kubexm.app.planning import Planned
from kubexm.app.reaching import STATE
from kubexm.common import layout
from kubexm.common.roles import CONTROL_NODE, CONTROL_PLANE, WORKER
from kubexm.connector.base import Command
from kubexm.engine import MemoryJournal, Options
from kubexm.errors import InvalidGraph
from kubexm.plan.fragment import replace
from kubexm.plan.graph import ExecutionGraph
from kubexm.plan.node import ExecutionNode
from kubexm.plan.result import GraphExecutionResult
from kubexm.runtime.build import HostConfig, Runtime, RuntimeConfig
from kubexm.sim import apiserver, etcdmembers, kubelet, kubeproxy
from kubexm.sim.assets import SimAssets
from kubexm.sim.settings import Machine, WorldSettings
from kubexm.sim.world import World
from kubexm.spec.loader import Loader

LOOKS = frozenset(("nodes-ready", "rollout", "wait"))
"""Kinds of steps that change nothing, and hold as long as a cluster works."""
_CLIENT = f"{layout.ETCD_PKI}/healthcheck-client"
TOOLS = {
    f"{layout.BINARIES}/crictl": ("images", "-q"),
    f"{layout.BINARIES}/etcdctl": (
        "--endpoints=https://127.0.0.1:2379",
        f"--cacert={layout.ETCD_PKI}/ca.crt",
        *(f"--cert={_CLIENT}.crt", f"--key={_CLIENT}.key"),
        *("endpoint", "health"),
    ),
}
"""What people look into hosts with, and how."""
CHECKS = "preflight"
OBJECTS = tuple(f"create-cluster/{module}/" for module in ("dns", "storage", "add-ons"))
_NODES = frozenset((CONTROL_PLANE, WORKER))
_UNKNOWN = "riscv64"
"""A kind of machine that no host may be."""
_ARGUMENT = "--max-requests-inflight=500"
"""What the API servers get to hear once the cluster is there."""
_PROXY = "oomScoreAdj"
"""What kube-proxy gets to hear then, if there is one."""
_QUOTA_MIB = 4096
"""What etcd may grow to then."""
_API_SERVER = f"{layout.MANIFESTS}/kube-apiserver.yaml"
_USUAL = Options()
_NOT_FOR_IT = "`when` does not hold"


class Verdict(msgspec.Struct, frozen=True):
    """What came of a mutant: what gave it away, or nothing if it survived."""

    mutant: Mutant
    caught: str
    why: str = ""


class Stage:
    """One cluster file, planned, and the hosts that it is played on."""

    def __init__(self, file: Path, machine: Machine, *, bundled: bool) -> None:
        bundle = Path("bundle") if bundled else None

        def planned(operation: Operation, of: Path = file) -> Planned:
            params = OperationParams(ClusterParams(of), operation, bundle=bundle)
            return _quick(planning.plan(PlanParams(params)))

        create = planned("create-cluster")
        self._hosts = create.hosts
        self._settings = replace(create.world, machine=machine, hesitates=True)
        self._delete = planned("delete-cluster").graph
        self.sketch = self._fitting(create.graph).reduced()
        with _changed(file, _new_settings) as other:
            changed = self._fitting(planned("create-cluster", other).graph).reduced()
        # No notes are kept on these hosts by which checks would know the cluster as their own.
        self._other = _without(changed, frozenset((CHECKS,)))
        self._bad: list[Sketch] = []
        for change in (_bad_argument, _bad_kubelet):
            with _changed(file, change) as bad:
                spoilt = self._fitting(planned("create-cluster", bad).graph).reduced()
            self._bad.append(_without(spoilt, frozenset((CHECKS,))))
        others = frozenset(node.step.kind for node in self.sketch.nodes()) - LOOKS
        self._looks = _without(self.sketch, others).graph()
        self._asked_for = _only(self.sketch, OBJECTS).graph()
        self._routed = peers.routed(create.graph)
        self._access = _access(create.graph)
        self._planes = [host.name for host in self._hosts if CONTROL_PLANE in host.roles]
        self._first = self._planes[0]
        self._kubelets = [host.name for host in self._hosts if not _NODES.isdisjoint(host.roles)]
        self._tools = [*_tools(create.graph)]
        self._keeps_time = any("/time/" in id for id in create.graph.nodes)
        self.stays = self._life_of(self.sketch.graph())
        """What is left on hosts of a cluster that was made as planned, and deleted."""
        for found in self._faults(lambda sketch: sketch):
            raise AssertionError(f"found without any mistake: {found}")

    def _fitting(self, graph: ExecutionGraph) -> Sketch:
        """The plan without steps that are for no host of this kind."""
        sketch = Sketch(graph)
        with self._world() as world:
            for id, node in self._run(world, graph).node_results.items():
                if all(_NOT_FOR_IT in host.message for host in node.host_results.values()):
                    sketch.drop_node(id)
        return sketch

    def _life_of(self, graph: ExecutionGraph) -> frozenset[str]:
        with self._world() as world:
            for one in (graph, self._delete):
                if why := _trouble(self._run(world, one)):
                    raise AssertionError(f"without any mistake: {why}")
            return _residue(world)

    def mutants(self) -> list[Mutant]:
        """Every plan with one mistake."""
        return list(mutants(self.sketch))

    def judge(self, mutant: Mutant) -> Verdict:
        """Play a mutant until something gives it away."""
        gc.collect()  # a world is large, and nobody needs the last one any more
        try:
            mutant.of(self.sketch).graph()
        except InvalidGraph as error:
            return Verdict(mutant, "validation", error.problems[0].message)
        caught, why = next(self._faults(mutant.of), ("", ""))
        return Verdict(mutant, caught, why)

    def _faults(self, mistaken: Callable[[Sketch], Sketch]) -> Iterator[tuple[str, str]]:
        sketch = mistaken(self.sketch)
        yield from self._lived(sketch.graph(), mistaken(self._other).graph())
        yield from self._unguarded(sketch)
        for bad in self._bad:
            yield from self._spread(sketch.graph(), mistaken(bad).graph())

    def trouble(self, graph: ExecutionGraph) -> str:
        """What goes wrong when a cluster is made by this plan; nothing if all goes well."""
        with self._world() as world:
            return _trouble(self._run(world, graph))

    def _lived(self, graph: ExecutionGraph, other: ExecutionGraph) -> Iterator[tuple[str, str]]:
        """What goes wrong while a cluster is made, once its hosts are rebooted, or later on."""
        with self._world() as world:
            if why := _trouble(self._run(world, graph)):
                yield "the run", why
                return
            if why := self._unsatisfied(world) or self._helpless(world):
                yield "its end", why
                return
            if why := _trouble(self._run(world, other)) or self._unheard(world):
                yield "a change", why
                return
            for host in self._names():
                world.host(host).reboot()
            if why := _trouble(self._run(world, self._looks)) or self._astray(world):
                yield "a reboot", why
                return
            if why := _trouble(self._run(world, self._delete)):
                yield "deletion", why
            elif left := _residue(world) - self.stays:
                yield "deletion", f"left: {' '.join(sorted(left))}"

    def _unsatisfied(self, world: World) -> str:
        """What the file asks for, and nobody has."""
        for graph in (self._looks, self._asked_for):
            if why := _unfinished(self._run(world, graph, Options(dry_run=True))):
                return why
        return peers.strangers(world, self._names()) or peers.cut_off(world, self._routed)

    def _helpless(self, world: World) -> str:
        """What keeps people out of the cluster, or from looking into its hosts."""
        if not world.connector(CONTROL_NODE).here(self._access).exists():
            return f"nobody is let in: no {self._access}"
        if why := peers.complaint(world, self._kubelets) or peers.idle(world, self._first):
            return why
        for host, program in self._tools:
            look = Command((program, *TOOLS[program]), changes=False)
            done = virtual.run(world.connector(host).exec(look))
            if not done.ok or "WARN" in done.error_text:
                return f"{host}: {done.error_text}"
        return ""

    def _astray(self, world: World) -> str:
        """Hosts of which nobody keeps the time, or that have lost the way to each other."""
        late = virtual.run(self._unkept(world), threads=True) if self._keeps_time else ""
        return late or peers.cut_off(world, self._routed)

    async def _unkept(self, world: World) -> str:
        async with Runtime.build(self._config(world)) as runtime:
            facts = {name: runtime.view(name, {}).facts for name in self._names()}
        return " ".join(name for name in facts if not facts[name]["clock"]["kept"])

    def _unheard(self, world: World) -> str:
        """Who goes on as if nothing had been changed."""
        for name in self._planes:
            if _ARGUMENT not in self._api_server(world, name).decode():
                return f"the API server of {name} goes on with its old settings"
        shell = world.shell_of(self._first)
        assert shell is not None, "nobody has stopped it"
        if late := [name for name in self._names() if not self._may_grow(world, name)]:
            return f"etcd of {' '.join(late)} goes on with its old settings"
        cluster = apiserver.serving(shell).cluster
        if cluster.get(kubeproxy.POD) and _PROXY not in kubeproxy.read(cluster):
            return "kube-proxy goes on with its old settings"
        return ""

    def _may_grow(self, world: World, host: str) -> bool:
        """Whether a member of etcd, if there is one, knows how large it may become by now."""
        shell = world.shell_of(host)
        member = None if shell is None else etcdmembers.running(shell)
        quota = f"{_QUOTA_MIB << 20}"
        return member is None or member.values.get("quota-backend-bytes") == quota

    def _unguarded(self, sketch: Sketch) -> Iterator[tuple[str, str]]:
        """What is changed although hosts are not fit for it, those of each check in turn."""
        checks = {node.id for node in sketch.nodes() if node.step.kind == CHECKS}
        graph = put_off(sketch, checks).graph()
        for node in self.sketch.nodes():
            if node.step.kind == CHECKS:
                with self._world(unfit=node.hosts) as world:
                    self._run(world, graph)
                    if changed := world.snapshot():
                        yield "checks", f"{sorted(changed)} changed, {node.hosts} unfit"

    def _spread(self, graph: ExecutionGraph, bad: ExecutionGraph) -> Iterator[tuple[str, str]]:
        """Who takes settings that the first control plane does not start with."""
        with self._world() as world:
            if why := _trouble(self._run(world, graph)):
                yield "the run", why  # which may end otherwise each time
                return
            before = {name: self._begun(world, name) for name in self._planes[1:]}
            self._run(world, bad)
            if taken := [name for name, was in before.items() if self._begun(world, name) != was]:
                yield "bad settings", f"taken by {' '.join(taken)} too"

    def _begun(self, world: World, host: str) -> tuple[str, bytes]:
        """What keeps the kubelet of a host from running, and what its API server begins with."""
        shell = world.shell_of(host)
        assert shell is not None, "nobody has stopped it"
        return kubelet.obstacle(shell), self._api_server(world, host)

    def _api_server(self, world: World, host: str) -> bytes:
        return virtual.run(world.connector(host).get(_API_SERVER))

    def _names(self) -> list[str]:
        return [host.name for host in self._hosts if host.name != CONTROL_NODE]

    @contextmanager
    def _world(self, unfit: Iterable[str] = ()) -> Iterator[World]:
        """Hosts that nobody has touched, some of them machines that will not do."""
        settings = _with_unfit(self._settings, unfit)
        with (
            tempfile.TemporaryDirectory() as directory,
            closing(World.create(Path(directory) / "world", settings)) as world,
        ):
            yield world

    def _run(
        self, world: World, graph: ExecutionGraph, options: Options = _USUAL
    ) -> GraphExecutionResult:
        """Carry out a plan; waiting takes no time."""
        return virtual.run(self._perform(world, graph, options), threads=True)

    async def _perform(
        self, world: World, graph: ExecutionGraph, options: Options
    ) -> GraphExecutionResult:
        async with Runtime.build(self._config(world)) as runtime:
            return await engine.execute(
                graph, runtime, options, load=Loader(), journal=MemoryJournal()
            )

    def _config(self, world: World) -> RuntimeConfig:
        hosts = [
            HostConfig(host.name, world.connector(host.name), host.described(), host.vars)
            for host in self._hosts
        ]
        return RuntimeConfig(hosts=hosts, assets=SimAssets(world))


def _without(sketch: Sketch, kinds: frozenset[str]) -> Sketch:
    """The same plan without steps of these kinds."""
    left = sketch.copy()
    for node in sketch.nodes():
        if node.step.kind in kinds:
            left.drop_node(node.id)
    return left


def _only(sketch: Sketch, modules: tuple[str, ...]) -> Sketch:
    """The steps of some modules and of who leaves them a value, as if all else were there."""
    needed = {
        name for node in sketch.nodes() if node.id.startswith(modules) for name in node.step.needs
    }
    left = sketch.copy()
    for node in sketch.nodes():
        left_by = {key.name for key in node.step.provides}
        if not (node.id.startswith(modules) or left_by & needed):
            left.drop_node(node.id)
    return left


def _new_settings(spec: dict[str, Any]) -> None:
    """What is well for everybody."""
    name, _, value = _ARGUMENT.removeprefix("--").partition("=")
    _within(spec, "kubernetes", "apiServer", "extraArgs")[name] = value
    _within(spec, "etcd", "tuning")["quotaMib"] = _QUOTA_MIB
    if _within(spec, "kubernetes", "kubeProxy").get("mode") != "none":
        _within(spec, "kubernetes", "kubeProxy", "config")[_PROXY] = -998


def _bad_argument(spec: dict[str, Any]) -> None:
    """What no API server starts with."""
    arguments = _within(spec, "kubernetes", "apiServer", "extraArgs")
    arguments["admission-control-config-file"] = "/nowhere.yaml"


def _bad_kubelet(spec: dict[str, Any]) -> None:
    """What no kubelet starts with."""
    _within(spec, "kubernetes", "kubelet", "config")["noSuchSetting"] = 1


def _within(spec: dict[str, Any], *keys: str) -> dict[str, Any]:
    """A part of a file, made if it is not there."""
    for key in keys:
        spec = spec.setdefault(key, {})
    return spec


@contextmanager
def _changed(file: Path, change: Callable[[dict[str, Any]], None]) -> Iterator[Path]:
    """The same cluster with other settings, beside the files that its file names."""
    data = yaml.safe_load(file.read_text())
    change(data["spec"])
    with tempfile.TemporaryDirectory() as directory:
        (Path(directory) / "files").symlink_to(file.parent / "files")
        other = Path(directory) / file.name
        other.write_text(yaml.safe_dump(data))
        yield other


def _access(graph: ExecutionGraph) -> Path:
    """Where this machine has what lets people into the cluster."""
    fetched = (node.step.params for node in graph if node.step.kind == "fetch")
    (path,) = (params["to"] for params in fetched if params["path"] == layout.ADMIN_CONFIG)
    return Path(path)


def _tools(graph: ExecutionGraph) -> Iterator[tuple[str, str]]:
    """Where people have what they look into hosts with."""
    for node in graph:
        if node.step.kind == "unpacked":
            places = node.step.params["members"].values()
            yield from ((host, path) for host in node.hosts for path in places if path in TOOLS)


def _with_unfit(settings: WorldSettings, hosts: Iterable[str]) -> WorldSettings:
    known = settings.machines
    unfit = {host: replace(known.get(host, settings.machine), arch=_UNKNOWN) for host in hosts}
    return replace(settings, machines={**unfit, **known, **unfit})


def _trouble(result: GraphExecutionResult) -> str:
    """Why a run is no plain success."""
    failed = (
        f"{id} on {host.host_name}: {host.message}"
        for id, node in result.node_results.items()
        for host in node.host_results.values()
        if host.status == "Failed"
    )
    is_well = result.status == "Success" and not result.degraded
    return next(failed, "" if is_well else f"{result.status}: {result.message}")


def _unfinished(result: GraphExecutionResult) -> str:
    """What of a dry run would have to be waited for."""
    waiting = (
        f"{id}: {host.message}"
        for id, node in result.node_results.items()
        for host in node.host_results.values()
        if not host.satisfied
    )
    return next(waiting, "")


def _residue(world: World) -> frozenset[str]:
    """What is on hosts after everything was taken away, but for notes of kubexm itself."""
    return frozenset(
        f"{host}:{key}"
        for host, cells in world.snapshot().items()
        for key in cells
        if STATE not in key
    )


def _quick(planned: Planned) -> Planned:
    """The same with keys that are made in no time."""
    nodes = {id: _with_short_keys(node) for id, node in planned.graph.nodes.items()}
    return replace(planned, graph=replace(planned.graph, nodes=nodes))


def _with_short_keys(node: ExecutionNode) -> ExecutionNode:
    if node.step.kind not in ("authorities", "certificates"):
        return node
    params = {**node.step.params, "algorithm": "ECDSA-P256"}
    return replace(node, step=replace(node.step, params=params))
