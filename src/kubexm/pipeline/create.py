"""Create a cluster: its modules, and who waits for whom."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from kubexm.common.roles import CONTROL_NODE
from kubexm.module.addons import addons
from kubexm.module.assets import assets
from kubexm.module.container_runtime import container_runtime
from kubexm.module.control_plane import control_plane
from kubexm.module.dns import dns
from kubexm.module.etcd import etcd
from kubexm.module.load_balancer import load_balancer
from kubexm.module.network import network
from kubexm.module.pki import pki
from kubexm.module.preflight import preflight
from kubexm.module.registry import registry
from kubexm.module.storage import storage
from kubexm.module.system import system
from kubexm.module.workers import workers
from kubexm.pipeline.places import housed
from kubexm.pipeline.whole import MODULES
from kubexm.plan.fragment import ExecutionFragment, node, parallel, prefixed, replace
from kubexm.plan.node import ExecutionNode
from kubexm.plan.ordering import Wait, Waits, on_all, on_same, ordered, supplied
from kubexm.plan.policy import ALL_HOSTS, Tolerance
from kubexm.plan.scope import HookFragment, hooked
from kubexm.plan.splitting import Groups, split
from kubexm.plan.validation import inside
from kubexm.spec.hooks import PlannedHooks
from kubexm.step.checks import Noop
from kubexm.task.context import ClusterContext

NAME = "create-cluster"
CORE, WORKERS = "core", "workers"
_IN_LANES = frozenset(("system", "container-runtime", "pki"))
"""Modules that every host goes through."""
_OF_WORKERS = ("workers", "load-balancer/worker")
_TOLERANCE = Tolerance(failed=ALL_HOSTS)
_BEGUN = "control-plane/init/cluster"
_RUNTIME = "container-runtime/service"
_EARLY = frozenset((_BEGUN, _RUNTIME))
"""What others wait for while the rest of its module goes on, whatever hooks that has."""
_NOTHING = "nothing"
"""What a module has whose hooks are all there is of it."""
_FIRST = ("@pre-1", _NOTHING)
_STARTS = {
    "assets": on_all("preflight"),
    "registry": on_all("preflight"),
    "control-plane": on_all("preflight"),
    "network": on_all(_BEGUN),
    "workers": on_all("preflight"),
    "dns": on_all(_BEGUN),
}
"""When modules start whose parts wait each for something else: what is done before them is done
then, and no earlier."""
Plan = Callable[[ClusterContext], ExecutionFragment | None]
_PLANS: dict[str, Plan] = {
    "preflight": preflight,
    "assets": assets,
    "system": system,
    "container-runtime": container_runtime,
    "pki": pki,
    "registry": registry,
    "etcd": etcd,
    "load-balancer": load_balancer,
    "control-plane": control_plane,
    "network": network,
    "workers": workers,
    "dns": dns,
    "storage": storage,
    "add-ons": addons,
}


def create_cluster(ctx: ClusterContext, hooks: PlannedHooks) -> ExecutionFragment:
    """Everything from the first look at a host to the last add-on."""
    lanes = _lanes(ctx)
    parts = (_planned(name, ctx, hooks, lanes) for name in MODULES)
    with_hooks = frozenset(name for name, given in hooks.of.items() if given)
    table = waits(ctx, tuple(lanes) if lanes else (), with_hooks)
    whole = ordered(housed(parallel(*parts)), table)
    whole = _tolerant(whole, lanes.get(WORKERS, frozenset()))
    return prefixed(NAME, supplied(whole)) or ExecutionFragment()


def _tolerant(whole: ExecutionFragment, workers: frozenset[str]) -> ExecutionFragment:
    """A worker that fails leaves the others alone, once something has been changed."""

    def tolerates(node: ExecutionNode) -> bool:
        is_of_workers = any(inside(node.id, part) for part in _OF_WORKERS)
        return is_of_workers or (
            workers.issuperset(node.hosts) and not inside(node.id, "preflight")
        )

    nodes = (
        replace(node, tolerance=_TOLERANCE) if tolerates(node) else node for node in whole.nodes
    )
    return replace(whole, nodes=tuple(nodes))


def _planned(
    name: str, ctx: ClusterContext, hooks: PlannedHooks, lanes: Groups
) -> ExecutionFragment | None:
    """A module, with its hooks; what every host goes through, each group of them for itself."""
    found, given = _PLANS[name](ctx), hooks.of.get(name, ())
    if found is None:
        return _hooks_alone(name, given)
    if name in _IN_LANES and lanes and not given:
        return split(found, name, lanes)
    return hooked(name, found, given)


def _hooks_alone(name: str, given: Sequence[HookFragment]) -> ExecutionFragment | None:
    """The hooks of a module of which the file asks for nothing, around nothing.

    Whoever waits for the module is on other hosts than that, so each hook is one for all hosts.
    """
    if not given:
        return None
    body = node(_NOTHING, Noop("nothing but hooks", satisfied=True), on=(CONTROL_NODE,))
    return hooked(name, prefixed(name, body), [replace(hook, barrier=True) for hook in given])


def _lanes(ctx: ClusterContext) -> Groups:
    """Hosts that must not wait for each other: workers, and all whom the cluster stands on."""
    workers = frozenset(ctx.workers) - {*ctx.etcd, *ctx.balancers, *ctx.registries}
    if not workers:
        return {}
    return {CORE: frozenset(ctx.hosts) - workers, WORKERS: workers}


def waits(
    ctx: ClusterContext, lanes: Sequence[str] = (), whole: frozenset[str] = frozenset()
) -> Waits:
    """Who waits for whom: on the same host wherever that is enough, so that each goes its own way.

    Nothing is changed before every host has passed its checks. Workers get ready while the
    control plane comes up; objects of the cluster are laid as soon as its first API server is
    there, and only what needs them to run waits for nodes. `lanes`: the groups of hosts that go
    through the modules of all hosts each for itself, but for modules that are `whole`.
    """
    begun = _BEGUN
    members = (*(_member(ctx, host) for host in ctx.control_planes), "workers/join/node")
    kubelets = ("control-plane/init", "control-plane/join", "workers/join")

    def of(group: str, *parts: str) -> tuple[Wait, ...]:
        """Of parts that all hosts go through those of one group."""
        return on_same(*(_of_group(part, group if lanes else "", whole) for part in parts))

    def each(part: str, *before: str, also: tuple[Wait, ...] = ()) -> dict[str, tuple[Wait, ...]]:
        """Each group of hosts waits for itself, and `also` for what is elsewhere."""
        groups = lanes or ("",)
        return {_of_group(part, group, whole): (*of(group, *before), *also) for group in groups}

    def anywhere(*parts: str) -> tuple[Wait, ...]:
        """The same for hosts that may be in either group, as a worker with other roles is."""
        found = (wait for group in lanes or ("",) for wait in of(group, *parts))
        return tuple(dict.fromkeys(found))

    def pulled() -> dict[str, tuple[Wait, ...]]:
        """Each image waits for itself, where hosts get it from the cluster's own registry."""
        found: dict[str, tuple[Wait, ...]] = {}
        for title in ctx.image_titles.values() if ctx.registries else ():
            there = on_all(f"registry/images/{title}")
            found |= each(f"container-runtime/images/{title}", also=there)
            found[f"load-balancer/worker/image/{title}"] = there
        return found

    checked = on_all("preflight")
    usable = ("system/kernel", "system/names", "system/packages")
    lane = (*usable, "container-runtime/images", "container-runtime/plugins", "pki")
    registry = _for_registry(ctx)
    table = {
        "system": checked,
        **each("container-runtime", also=checked),
        **each(_RUNTIME, "system/kernel"),
        **each("container-runtime/images", *registry),
        **pulled(),
        **each("pki", "system/data"),
        "registry/settings": checked,
        "registry/image": of(CORE, _RUNTIME),
        "registry/service": of(CORE, "pki"),
        "registry/authority": of(CORE, "pki"),
        "etcd": checked,
        "etcd/service": of(CORE, "pki"),
        "load-balancer": checked,
        "load-balancer/haproxy": of(CORE, "system/packages"),
        "load-balancer/keepalived": of(CORE, "system/packages"),
        "load-balancer/worker/image": anywhere(_RUNTIME, *registry),
        "control-plane/prepare": checked,
        "control-plane/helm": checked,
        begun: (
            *of(CORE, *lane),
            *on_same("control-plane/prepare"),
            *_before_beginning(ctx),
        ),
        "control-plane/join": (
            *of(CORE, *lane),
            *on_same("control-plane/prepare", "load-balancer/kube-vip"),
            # A kubelet that does not start with new settings keeps them from the others.
            *on_all("control-plane/init"),
        ),
        # Without a kubelet no pod takes them.
        **{
            f"control-plane/settings/{host}": on_same(_kubelet(ctx, host))
            for host in ctx.control_planes
        },
        # What its new settings need of hosts is there once these are members.
        "control-plane/kube-proxy": on_all(*members, "control-plane/settings"),
        "control-plane/access": on_all(begun),
        "control-plane/token": on_all(begun),
        "workers/prepare": checked,
        "workers/join": (
            *anywhere(*lane),
            *on_same("workers/prepare", "load-balancer/worker"),
            *on_all(begun),
        ),
        "network/plugin": (*on_all(begun), *on_same("control-plane/helm")),
        "network/controllers": on_all("network/plugin"),
        "network/routes/networks": on_all(*members),
        "network/routes/unit": checked,
        "network/ready": on_all(
            "network/plugin", "network/routes", *kubelets, "control-plane/settings"
        ),
        "network/marks": on_all(*members),
        # Laid earlier, all its pods would go to the first host that takes some.
        "dns/coredns": on_all("network/ready"),
        "dns/node-local": on_all(begun),
        "dns/answers": on_all("dns/coredns", "dns/node-local", "network/ready"),
        "storage": on_all(begun),
        "storage/local-path/runs": on_all("network/ready"),
        "storage/nfs/runs": on_all("network/ready"),
        "add-ons": (*on_all("dns", "storage"), *on_same("control-plane/helm")),
    }
    table |= {f"{name}/{first}": _STARTS[name] for name in _STARTS for first in _FIRST}
    return {part: tuple(_with_hooks(part, table[part], whole)) for part in table}


def _with_hooks(part: str, those: Iterable[Wait], whole: frozenset[str]) -> Iterator[Wait]:
    """Who waits for a part of a module that has hooks waits for the last of them too.

    The part itself stays: where it is not there, it hands on what it would have waited for.
    """
    for wait in those:
        yield wait
        module = _module(wait.part)
        if module in whole and module != _module(part) and wait.part not in _EARLY:
            yield replace(wait, part=module)


def _module(part: str) -> str:
    return part.partition("/")[0]


def _of_group(part: str, group: str, whole: frozenset[str]) -> str:
    """A part of a module that all hosts go through, as one group of them has it."""
    module, slash, rest = part.partition("/")
    if not group or module in whole:
        return part
    return f"{module}/{group}{slash}{rest}"


def _member(ctx: ClusterContext, host: str) -> str:
    """What makes a host a control plane."""
    return _BEGUN if host == ctx.first else f"control-plane/join/{host}"


def _kubelet(ctx: ClusterContext, host: str) -> str:
    """What has the kubelet of a control plane run with its settings."""
    if host == ctx.first:
        return "control-plane/init/kubelet"
    return f"control-plane/join/{host}-kubelet"


def _for_registry(ctx: ClusterContext) -> tuple[str, ...]:
    """What a host needs to get images: its name, and for the cluster's own whom to trust."""
    if ctx.registries:
        return ("system/names", "pki")
    is_sent = ctx.is_bundled and not ctx.has_registry
    return () if is_sent else ("system/names",)


def _before_beginning(ctx: ClusterContext) -> tuple[Wait, ...]:
    """What the first API server needs that is elsewhere: its store, and the way to itself."""
    balancer = on_all("load-balancer") if ctx.balancers else on_same("load-balancer/kube-vip")
    return (*on_all("etcd/settings"), *balancer)
