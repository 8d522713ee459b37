"""Versions that a cluster file names, held against the catalog."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from kubexm.config.cluster import Cluster
from kubexm.config.rules.rule import Declared, Rule
from kubexm.document.findings import Finding, written_path
from kubexm.errors import InvalidInput, Problem
from kubexm.resource.catalog import KUBERNETES, Catalog

_TESTED = "take a version that is tested with it, or try the two on hosts that you can lose"
_Asked = Callable[[Declared], str | None]
_KUBERNETES = ("spec", "kubernetes", "version")
_PLACES: dict[str, tuple[tuple[str, ...], _Asked]] = {
    KUBERNETES: (_KUBERNETES, lambda cluster: cluster.spec.kubernetes.version),
    "etcd": (("spec", "etcd", "version"), lambda cluster: cluster.spec.etcd.version),
    "containerd": (
        ("spec", "containerRuntime", "version"),
        lambda cluster: cluster.spec.container_runtime.version,
    ),
    "flannel": (
        ("spec", "network", "flannel", "version"),
        lambda cluster: cluster.spec.network.flannel.version,
    ),
    "calico": (
        ("spec", "network", "calico", "version"),
        lambda cluster: cluster.spec.network.calico.version,
    ),
    "cilium": (
        ("spec", "network", "cilium", "version"),
        lambda cluster: cluster.spec.network.cilium.version,
    ),
    "coredns": (("spec", "dns", "version"), lambda cluster: cluster.spec.dns.version),
    "local-path": (
        ("spec", "storage", "localPath", "version"),
        lambda cluster: cluster.spec.storage.local_path.version,
    ),
    "nfs": (
        ("spec", "storage", "nfs", "version"),
        lambda cluster: getattr(cluster.spec.storage.nfs, "version", None),
    ),
}
"""Where the version of each component is written, and what it is."""


def rules(catalog: Catalog) -> tuple[Rule, ...]:
    """Every version that is named is known, and goes with this Kubernetes."""
    return tuple(
        Rule(f"version-of-{name}", (place, _KUBERNETES), _judge(catalog, name))
        for name, (place, _) in _PLACES.items()
    )


def untested(cluster: Cluster, warnings: Iterable[str]) -> Iterator[Problem]:
    """What a bill of materials warns of, at the version that the file names.

    What the file leaves to us goes with the Kubernetes that it names.
    """
    for text in warnings:
        component = text.split("`")[1]
        place, asked = _PLACES.get(component, _PLACES[KUBERNETES])
        named = place if asked(cluster.declared) is not None else _KUBERNETES
        where = str(cluster.document.at(named))
        yield Problem(f"{written_path(named)}: {text}", where, _TESTED)


def _judge(catalog: Catalog, name: str) -> Callable[[Declared], Iterator[Finding]]:
    place, asked = _PLACES[name]

    def judge(cluster: Declared) -> Iterator[Finding]:
        if (version := asked(cluster)) is None:
            return
        try:
            known = catalog.version(name, version)
        except InvalidInput as error:
            yield Finding(place, error.message, error.hint)
            return
        yield from _beside(catalog, name, known, cluster.spec.kubernetes.version)

    return judge


def _beside(catalog: Catalog, name: str, known: str, kubernetes: str) -> Iterator[Finding]:
    """What a version that is known does not go with."""
    try:
        verdict = catalog.verdict(kubernetes, name, known)
    except InvalidInput:  # that this Kubernetes is unknown is told at its own place
        return
    if verdict.level == "conflicts":
        message = f"{name} {known} does not go with Kubernetes {kubernetes}: {verdict.reason}"
        yield Finding(_PLACES[name][0], message, verdict.hint)
