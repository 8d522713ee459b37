"""From a cluster file to the graph of an operation on that cluster; no host is touched."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import msgspec

from kubexm.app import (
    across,
    addon_images,
    bills,
    clusters,
    deleting,
    lasting,
    misfits,
    namesakes,
    versions,
)
from kubexm.app.cluster_hosts import MACHINES, inventory
from kubexm.app.named import HOOKS
from kubexm.app.params import OperationParams
from kubexm.app.remembered import Facts, stored_facts
from kubexm.common.about import About
from kubexm.common.counting import few
from kubexm.common.digests import Digests
from kubexm.common.paths import Home
from kubexm.common.roles import CONTROL_NODE
from kubexm.config.cluster import Cluster
from kubexm.config.members import GROUPS
from kubexm.config.rules.rule import Declared
from kubexm.document import problems
from kubexm.errors import InvalidCluster, Problem
from kubexm.pipeline import create
from kubexm.pipeline.whole import as_graph, indispensable
from kubexm.resource import catalog, declared, materials
from kubexm.resource.entries import ARCHES, Arch
from kubexm.resource.needs import NamedImage
from kubexm.sim.settings import Machine, WorldSettings
from kubexm.spec.hooks import PlannedHooks, plan_hooks
from kubexm.spec.inventory import InventoryHost
from kubexm.spec.planner import PlannedPipeline
from kubexm.task import workloads
from kubexm.task.context import API_PORT, ClusterContext, bracketed, url
from kubexm.task.hosts import variables
from kubexm.task.operator_files import OperatorFiles
from kubexm.templates import overlays
from kubexm.templates.overlays import Overlays

_SEE = "see docs/reference/cluster-file.md, which describes every key"


def plan(
    params: OperationParams, digests: Digests | None = None, facts: Facts | None = None
) -> PlannedPipeline:
    """The whole graph of an operation; `InvalidCluster` with every problem if it can't be planned.

    `facts`: what hosts have told just now; else what the store knows counts, where the file
    declares nothing.
    """
    known = catalog.load(params.cluster.catalogs)
    cluster = clusters.read_whole(params.cluster, known, params.templates)
    if params.operation == "delete-cluster":
        namesakes.refuse(cluster, params.world, params.without)
    hosts = inventory(cluster)
    told, trouble = _told(cluster.declared.name) if facts is None else (facts, ())
    ctx = _context(params, cluster, known, _architectures(hosts, told), digests)
    hooks = _hooks(params, cluster, hosts)
    with misfits.told(cluster.document):
        fragment = create.create_cluster(ctx, hooks)
    _refuse(cluster, ctx)
    created = PlannedPipeline(
        # What the file wants of a failure is said of the creation alone.
        graph=as_graph(ctx, fragment, groups=indispensable(ctx), on_failure=ctx.spec.on_failure),
        hosts=tuple(_with_variables(hosts, variables(ctx))),
        world=world(ctx),
        warnings=(*trouble, *_warnings(ctx, cluster)),
        notices=tuple(_notices(hosts, told)),
        places=_places(params, hooks),
        judge=partial(_judged, cluster.declared),
        about=_about(ctx, cluster),
    )
    if params.operation == "create-cluster":
        return created
    return deleting.turned(created, params.world, params.without)


def _about(ctx: ClusterContext, cluster: Cluster) -> About:
    """What is worth keeping of the cluster."""
    declared = cluster.declared
    return About(
        version=ctx.spec.kubernetes.version,
        endpoint=declared.endpoint_kind,
        server=ctx.endpoint,
        servers=tuple(_servers(ctx)),
        etcd=declared.etcd_kind,
        network=ctx.spec.network.plugin,
        roles={role: found for role in GROUPS if (found := ctx.having(role))},
        kubeconfig=ctx.kubeconfig_here,
        addresses={member.name: member.internal for member in declared.members},
        lasting=lasting.of(cluster),
        registries=bills.declared_registries(cluster),
        workloads=workloads.laid(ctx),
        labels=dict(declared.labels),
    )


def _servers(ctx: ClusterContext) -> Iterator[str]:
    """Where the API is reached by who is no host of the cluster, and knows no name of theirs."""
    if address := ctx.spec.endpoint.address:
        yield url(address, ctx.spec.endpoint.port)
    yield from (url(ctx.address(host), API_PORT) for host in ctx.control_planes)


def _judged(declared: Declared, facts: Facts) -> list[Problem]:
    """What is wrong between hosts: worth a warning, or reason to refuse."""
    found = across.across(facts, declared)
    across.refuse(found)
    return [
        Problem(f"{one.message} [{' '.join(one.hosts)}]", one.check, one.remedy) for one in found
    ]


def _told(name: str) -> tuple[Facts, tuple[Problem, ...]]:
    """What the hosts of a cluster told in its last run."""
    stored, trouble = stored_facts(name)
    return {host: known.facts for host, known in stored.items()}, trouble


def _context(
    params: OperationParams,
    cluster: Cluster,
    known: catalog.Catalog,
    arch: Mapping[str, Arch],
    digests: Digests | None,
) -> ClusterContext:
    spec = cluster.declared.spec
    files = OperatorFiles(cluster.document.directory, digests)
    templates = params.templates or (files.path(spec.templates) if spec.templates else None)
    named: tuple[NamedImage, ...] = ()
    if params.bundle is not None:
        named = addon_images.named(cluster, files)
        named += addon_images.brought(cluster, params.bundle)
    needs = declared.needs(cluster.declared, arch, ("apt", "rpm", "zypper"), named)
    return ClusterContext(
        declared=cluster.declared,
        catalog=known,
        bill=materials.bill(known, needs),
        arch=arch,
        files=files,
        overlays=Overlays() if templates is None else overlays.read(templates),
        is_bundled=params.bundle is not None,
        here=str(Home.from_environment().clusters / cluster.declared.name),
    )


def _architectures(hosts: Iterable[InventoryHost], facts: Facts) -> dict[str, Arch]:
    """What the file declares of each host, else what it told, else the usual one."""
    by_machine: dict[str, Arch] = {machine: arch for arch, machine in MACHINES.items()}
    return {
        host.name: by_machine.get(_machine(host, facts), ARCHES[0])
        for host in hosts
        if host.name != CONTROL_NODE
    }


def _machine(host: InventoryHost, facts: Facts) -> str:
    told = facts.get(host.name, {}).get("arch", "")
    return str(host.facts.get("arch", told))


def _hooks(
    params: OperationParams, cluster: Cluster, hosts: tuple[InventoryHost, ...]
) -> PlannedHooks:
    """The hooks of the file, as far as they are of this operation, or have to be taken back."""
    allow = params.cluster.allow_literal_secrets
    return plan_hooks(cluster.document, HOOKS, hosts, allow_literal_secrets=allow)


def _refuse(cluster: Cluster, ctx: ClusterContext) -> None:
    """What is wrong with files that the cluster file names is known once all have been read."""
    if ctx.files.findings:
        document = cluster.document
        found = problems.placed(ctx.files.findings, document, _SEE)
        said = "is not a valid cluster"
        raise problems.refusal(InvalidCluster, document, said, found, is_all=True)


def _with_variables(
    hosts: Iterable[InventoryHost], known: Mapping[str, dict[str, Any]]
) -> Iterator[InventoryHost]:
    for host in hosts:
        yield msgspec.structs.replace(host, vars=known.get(host.name, {}))


def _warnings(ctx: ClusterContext, cluster: Cluster) -> Iterator[Problem]:
    yield from versions.untested(cluster, ctx.bill.warnings)
    if ctx.is_bundled:
        yield from addon_images.notes(cluster, ctx.files)
    unknown = [file for file in ctx.bill.binaries if not file.sha256]
    if unknown and not ctx.is_bundled:
        names = ", ".join(sorted({f"{file.component} {file.version}" for file in unknown}))
        hint = "hold fast what is fetched: kubexm catalog lock -f FILE -o LOCK, then --catalog LOCK"
        yield Problem(f"the catalog has no checksums of {names}", hint=hint)


def _notices(hosts: Iterable[InventoryHost], facts: Facts) -> Iterator[Problem]:
    """What the plan takes for granted."""
    far = [host for host in hosts if host.name != CONTROL_NODE]
    if unknown := [host.name for host in far if not _machine(host, facts)]:
        message = f"the architecture of {few(unknown)} is not known, and taken to be amd64"
        hint = "declare it by `arch`; a run asks the hosts themselves"
        yield Problem(message, hint=hint)


def _places(params: OperationParams, hooks: PlannedHooks) -> dict[str, str]:
    """Where what asks for a secret or a person is written."""
    return {f"{params.operation}/{id}": place for id, place in hooks.places.items()}


def _balancers(ctx: ClusterContext) -> dict[str, tuple[str, ...]]:
    """The load balancer of a site, which leads to the control planes as theirs does."""
    if ctx.declared.endpoint_kind != "external":
        return {}
    where = ctx.spec.endpoint.address or ctx.declared.endpoint_host
    planes = tuple(f"{bracketed(ctx.address(host))}:{API_PORT}" for host in ctx.control_planes)
    return {f"{bracketed(where)}:{ctx.spec.endpoint.port}": planes}


def _site(ctx: ClusterContext) -> Iterator[str]:
    """What the file takes for granted beside its hosts: a registry, an etcd."""
    if ctx.spec.registry.host is not None:
        yield f"{ctx.spec.registry.host}:{ctx.spec.registry.port}"
    if ctx.spec.etcd.external is not None:
        yield from (urlsplit(url).netloc for url in ctx.spec.etcd.external.endpoints)
    for access in ctx.spec.container_runtime.registries.values():
        yield from (urlsplit(url).netloc for url in access.mirrors)


def world(ctx: ClusterContext) -> WorldSettings:
    """Simulated hosts like those that the file declares."""
    arm = [host for host, arch in ctx.arch.items() if arch == "arm64"]
    machine = Machine(arch=MACHINES["arm64"])
    return WorldSettings(
        addresses={member.name: member.internal for member in ctx.declared.members},
        machines=dict.fromkeys(arm, machine),
        balancers=_balancers(ctx),
        site=tuple(_site(ctx)),
        names=False,  # hosts are told each other's
        outside=not ctx.is_bundled,
        bundled=ctx.is_bundled,
    )
