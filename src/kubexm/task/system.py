"""The operating system of every host: names, packages, kernel, clock."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from kubexm.common import layout
from kubexm.common.roles import CONTROL_PLANE, ETCD, LOADBALANCER, REGISTRY, WORKER
from kubexm.config.rules.kernel import FORWARDING, node_ports
from kubexm.plan import ExecutionFragment, node, parallel, per_host
from kubexm.plan.policy import Pool, ResourceConstraints, RetryPolicy
from kubexm.plan.scope import task
from kubexm.resource.entries import Family
from kubexm.resource.materials import SystemPackage
from kubexm.step.edits import ManagedBlock
from kubexm.step.kernel import KernelModule, KernelSettings, NoSwap
from kubexm.step.packages import Package
from kubexm.step.zone import TimeZone
from kubexm.task.context import ClusterContext
from kubexm.task.writing import data_directories, of_host, referring
from kubexm.templates.contexts.balancer import HAPROXY_DATA

PACKAGES = "packages"
POOLS = {PACKAGES: Pool(1, "host")}
"""Package managers lock each other out."""
TIME_KEEPER = "chrony"
"""A package that only hosts get that need it; see `task.clock`."""
MANAGERS: Mapping[Family, str] = {
    "apt": "facts.package_manager == 'apt'",
    "rpm": "facts.package_manager in ['dnf', 'yum']",
    "zypper": "facts.package_manager == 'zypper'",
}
ROLES = {
    "control-plane": CONTROL_PLANE,
    "worker": WORKER,
    "etcd": ETCD,
    "load-balancer": LOADBALANCER,
    "registry": REGISTRY,
}
"""The roles of the bill of materials as those of the cluster file."""
_MODULES = ("overlay", "br_netfilter")
_IPVS = ("ip_vs", "nf_conntrack")
_SCHEDULERS = ("ip_vs_rr", "ip_vs_wrr", "ip_vs_sh")
"""Modules that bring no setting."""
_BRIDGED = {
    "net.bridge.bridge-nf-call-iptables": "1",
    "net.bridge.bridge-nf-call-ip6tables": "1",
}
_RESERVED = "net.ipv4.ip_local_reserved_ports"
_SYSCTL = {
    "fs.inotify.max_user_instances": "8192",
    "fs.inotify.max_user_watches": "524288",
    "vm.max_map_count": "262144",
    # As the kubelet wants them: a kernel that is beside itself starts anew.
    "vm.overcommit_memory": "1",
    "kernel.panic": "10",
    "kernel.panic_on_oops": "1",
}
AGAIN = RetryPolicy(attempts=3, delay=5.0, exponential_backoff=True)


@task("names")
def names(ctx: ClusterContext) -> ExecutionFragment | None:
    """Every host knows the others, and the endpoint, by name."""
    marker = f"kubexm {ctx.name}"
    block = ManagedBlock(path="/etc/hosts", marker=marker, content=of_host("hosts_file"))
    return node("hosts-file", referring(block), on=ctx.hosts)


def places(ctx: ClusterContext) -> ExecutionFragment | None:
    """Where all of Kubernetes lies, which others write into and take away."""
    wanted = frozenset((*ctx.kube_nodes, *ctx.etcd, *ctx.registries))
    return data_directories(tuple(h for h in ctx.hosts if h in wanted), layout.KUBERNETES)


@task("packages")
def packages(ctx: ClusterContext) -> ExecutionFragment | None:
    """Packages of the operating system, whatever it calls them."""
    return per_host(_places(ctx), parallel(*(_of_family(ctx, family) for family in MANAGERS)))


def _places(ctx: ClusterContext) -> ExecutionFragment | None:
    """Where a package starts a program that leaves something there when it goes."""
    balancers = tuple(host for host in ctx.hosts if host in ctx.balancers)
    return data_directories(balancers, HAPROXY_DATA)


def _of_family(ctx: ClusterContext, family: Family) -> ExecutionFragment:
    """One node for all hosts that need the same packages."""
    wanted: dict[tuple[str, ...], list[str]] = {}
    for host in ctx.hosts:
        if found := tuple(_packages(ctx, host, family)):
            wanted.setdefault(found, []).append(host)
    return parallel(
        *(
            node(
                family if len(wanted) == 1 else f"{family}-{number}",
                Package(names=found),
                on=hosts,
                when=MANAGERS[family],
                retry=AGAIN,
                limits=ResourceConstraints(pools=(PACKAGES,)),
            )
            for number, (found, hosts) in enumerate(wanted.items(), 1)
        )
    )


def _packages(ctx: ClusterContext, host: str, family: Family) -> Iterator[str]:
    roles = ctx.members[host].roles
    of_bill = (one for one in ctx.bill.packages if one.family == family)
    found = (one.name for one in of_bill if one.name != TIME_KEEPER and _is_for(one, roles))
    yield from dict.fromkeys((*found, *ctx.spec.system.packages))


def _is_for(package: SystemPackage, roles: Sequence[str]) -> bool:
    return any(ROLES[role] in roles for role in package.used_on)


@task("kernel")
def kernel(ctx: ClusterContext) -> ExecutionFragment | None:
    """Modules and settings of the kernel, and no swap."""
    return parallel(
        node("no-swap", NoSwap(), on=ctx.kube_nodes) if _fails_on_swap(ctx) else None,
        per_host(_modules(ctx), _settings(ctx)),
        _loaded(ctx, _SCHEDULERS if _has_ipvs(ctx) else ()),
    )


def _fails_on_swap(ctx: ClusterContext) -> bool:
    """Whether the kubelet refuses a host with swap, as it does unless told otherwise."""
    return ctx.spec.kubernetes.kubelet.config.get("failSwapOn", True) is not False


def _has_ipvs(ctx: ClusterContext) -> bool:
    return ctx.spec.kubernetes.kube_proxy.mode == "ipvs"


def _loaded(ctx: ClusterContext, names: Iterable[str]) -> ExecutionFragment:
    return parallel(*(node(name, KernelModule(name), on=_having(ctx, name)) for name in names))


def _modules(ctx: ClusterContext) -> ExecutionFragment:
    ipvs = _IPVS if _has_ipvs(ctx) else ()
    # The cache of names has an interface of its own.
    local = ("dummy",) if ctx.spec.dns.node_local.enabled else ()
    ours = dict.fromkeys((*_MODULES, *ipvs, *local))
    known = frozenset((*ours, *(_SCHEDULERS if ipvs else ())))
    others = (name for name in ctx.spec.system.modules if name not in known)
    return parallel(
        _loaded(ctx, ours),
        *(node(name, KernelModule(name), on=ctx.hosts) for name in others),
    )


def _having(ctx: ClusterContext, module: str) -> tuple[str, ...]:
    """The hosts that get a module of ours: containers need one wherever they run."""
    return ctx.containerd_hosts if module == "overlay" else ctx.kube_nodes


def _settings(ctx: ClusterContext) -> ExecutionFragment:
    said = dict(ctx.spec.system.sysctl)
    forwarding = {FORWARDING[network.version]: "1" for network in ctx.declared.pods}
    # The ports of services must not be taken by whoever asks for any.
    reserved = {_RESERVED: node_ports(ctx.declared) or ""}
    for_nodes: dict[str, str | int] = {
        **_BRIDGED,
        **reserved,
        **_SYSCTL,
        **forwarding,
        **said,
    }
    others = tuple(host for host in ctx.hosts if host not in frozenset(ctx.kube_nodes))
    return parallel(
        node("settings", KernelSettings("90-kubexm", for_nodes), on=ctx.kube_nodes),
        node("own-settings", KernelSettings("90-kubexm", {**said}), on=others) if said else None,
    )


@task("zone")
def zone(ctx: ClusterContext) -> ExecutionFragment | None:
    """The time is told in the wanted zone."""
    wanted = ctx.spec.system.time_zone
    return None if wanted is None else node("zone", TimeZone(wanted), on=ctx.hosts)
