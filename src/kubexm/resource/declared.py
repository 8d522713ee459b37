"""What a cluster file asks for, as far as it decides what has to be fetched for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from kubexm.common.roles import REGISTRY
from kubexm.config.model.endpoint import EndpointKind
from kubexm.config.rules.rule import Declared
from kubexm.resource.catalog import ChartRelease
from kubexm.resource.entries import ARCHES, Arch, Family
from kubexm.resource.needs import Endpoint, NamedImage, Needs, Storage, Tool

_ENDPOINTS: Mapping[EndpointKind, Endpoint] = MappingProxyType(
    {
        "single": "single",
        "external": "external",
        "keepalived": "keepalived-haproxy",
        "haproxy": "haproxy",
        "nginx": "nginx",
        "kube-vip": "kube-vip",
    }
)
_UNKNOWN: Mapping[str, Arch] = MappingProxyType({})


def needs(
    cluster: Declared,
    arch: Mapping[str, Arch] = _UNKNOWN,
    families: tuple[Family, ...] = (),
    named_images: tuple[NamedImage, ...] = (),
) -> Needs:
    """What a declared cluster needs.

    `arch`: what is known of hosts, by name, where the file says nothing; `families`: what installs
    packages on the hosts, if packages have to be at hand too; `named_images`: what its add-ons run,
    if that has to be.
    """
    spec = cluster.spec
    return Needs(
        kubernetes=spec.kubernetes.version,
        architectures=_architectures(cluster, arch),
        etcd=cluster.etcd_kind,
        runtime=spec.container_runtime.kind,
        network=spec.network.plugin,
        endpoint=_ENDPOINTS[cluster.endpoint_kind],
        proxy=spec.kubernetes.kube_proxy.mode,
        nodelocal_dns=spec.dns.node_local.enabled,
        storage=_storage(cluster),
        tools=_tools(cluster),
        addons=tuple(addon.component for addon in spec.addons if addon.component is not None),
        charts=tuple(_charts(cluster)),
        extra_images=tuple(filter(None, [spec.container_runtime.sandbox_image])),
        named_images=named_images,
        families=families,
        keeps_time=spec.system.ntp.enabled,
        logins=any(each.auth is not None for each in spec.container_runtime.registries.values()),
        registry=_registry(cluster),
        own_registry=bool(cluster.having(REGISTRY)),
        image_repository=spec.kubernetes.image_repository,
        versions=_versions(cluster),
    )


def _architectures(cluster: Declared, known: Mapping[str, Arch]) -> tuple[Arch, ...]:
    found = {member.arch or known.get(member.name, "amd64") for member in cluster.members}
    return tuple(arch for arch in ARCHES if arch in found)


def _storage(cluster: Declared) -> tuple[Storage, ...]:
    local: tuple[Storage, ...] = ("local-path",) if cluster.spec.storage.local_path.enabled else ()
    return local if cluster.spec.storage.nfs is None else (*local, "nfs")


def _tools(cluster: Declared) -> tuple[Tool, ...]:
    """A chart that lies in a file is installed by helm as well."""
    has_chart = any(addon.chart is not None for addon in cluster.spec.addons)
    return ("crictl", "helm") if has_chart else ("crictl",)


def _charts(cluster: Declared) -> Iterator[ChartRelease]:
    """The charts that lie in a repository."""
    for addon in cluster.spec.addons:
        if (chart := addon.chart) is not None and chart.repository is not None:
            yield ChartRelease(
                name=chart.name, version=chart.version or "", repository=chart.repository
            )


def _registry(cluster: Declared) -> str | None:
    """The private registry, by the name that hosts know it by."""
    own = [member.name for member in cluster.having(REGISTRY)]
    host = cluster.spec.registry.host or next(iter(own), None)
    return None if host is None else f"{host}:{cluster.spec.registry.port}"


def _versions(cluster: Declared) -> dict[str, str]:
    """The versions that the file names of what the cluster has."""
    spec = cluster.spec
    plugin = getattr(spec.network, spec.network.plugin, None)
    local, nfs = spec.storage.local_path, spec.storage.nfs
    named = {
        "etcd": spec.etcd.version,
        spec.container_runtime.kind: spec.container_runtime.version,
        spec.network.plugin: plugin and plugin.version,
        "coredns": spec.dns.version,
        "local-path": local.version if local.enabled else None,
        "nfs": nfs and nfs.version,
    }
    return {component: version for component, version in named.items() if version}
