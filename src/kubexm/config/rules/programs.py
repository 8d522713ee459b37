"""Rules of what programs read: settings that this version of one does not know are refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from kubexm.common.nearest import nearest
from kubexm.config.rules.overrides import instead_of
from kubexm.config.rules.rule import Declared, rule
from kubexm.document.findings import Finding
from kubexm.document.forms import camel
from kubexm.document.problems import unknown_key

_SINCE_V1BETA4 = (1, 31)
"""The first Kubernetes whose kubeadm reads it."""
_KEYS = {
    "cluster_configuration": (
        "apiServer certificatesDir clusterName controlPlaneEndpoint controllerManager dns etcd"
        " featureGates imageRepository kubernetesVersion networking scheduler"
    ),
    "init_configuration": (
        "bootstrapTokens certificateKey localAPIEndpoint nodeRegistration patches skipPhases"
    ),
    "join_configuration": "caCertPath controlPlane discovery nodeRegistration patches skipPhases",
}
"""What kubeadm reads in each document, since v1beta3."""
_NEW_KEYS = {
    "cluster_configuration": (
        "caCertificateValidityPeriod certificateValidityPeriod encryptionAlgorithm proxy"
    ),
    "init_configuration": "dryRun timeouts",
    "join_configuration": "dryRun timeouts",
}
"""What v1beta4 has besides."""
_OF_ALL = ("apiVersion", "kind")


@rule("kubeadm-keys", "kubernetes.kubeadm", "kubernetes.version")
def kubeadm_keys(cluster: Declared) -> Iterator[Finding]:
    """kubeadm knows what it is told."""
    kubernetes = cluster.spec.kubernetes
    is_new = reads_v1beta4(kubernetes.version)
    for name, old in _KEYS.items():
        known = [*old.split(), *(_NEW_KEYS[name].split() if is_new else ())]
        for key in getattr(kubernetes.kubeadm, name):
            if key not in known and key not in _OF_ALL:
                yield _unknown(("spec", "kubernetes", "kubeadm", camel(name), key), known)


def _unknown(place: tuple[str, ...], known: Sequence[str]) -> Finding:
    """A key that kubeadm does not know; one that is refused as well is not proposed."""
    near = nearest(place[-1], known)
    instead = instead_of((*place[1:-1], near)) if near else None
    finding = unknown_key(place, known)
    return replace(finding, hint=instead.hint) if instead else finding


def reads_v1beta4(version: str) -> bool:
    """Whether the kubeadm of this Kubernetes does."""
    return _minor(version) >= _SINCE_V1BETA4


def _minor(version: str) -> tuple[int, int]:
    major, minor, *_ = version.removeprefix("v").split(".")
    return int(major), int(minor)


_OF_STREAMS = frozenset(
    {
        "disable_tcp_service",
        "enable_tls_streaming",
        "stream_idle_timeout",
        "stream_server_address",
        "stream_server_port",
        "x509_key_pair_streaming",
    }
)
"""What containerd 2 still reads under the old name of the plugin."""
_OLD_PLUGIN = "io.containerd.grpc.v1.cri"
_NEW_PLUGINS = ("io.containerd.cri.v1.images", "io.containerd.cri.v1.runtime")


@rule("containerd-plugins", "containerRuntime")
def containerd_plugins(cluster: Declared) -> Iterator[Finding]:
    """Settings of containerd are under the name that its plugin has in this version."""
    runtime = cluster.spec.container_runtime
    plugins = runtime.config.get("plugins")
    # The catalog takes 2.x unless the file says otherwise.
    is_old = (runtime.version or "").startswith("v1.")
    wanted = (_OLD_PLUGIN,) if is_old else _NEW_PLUGINS
    for name, settings in plugins.items() if isinstance(plugins, Mapping) else ():
        if name in _NEW_PLUGINS if is_old else _is_of_before(name, settings):
            place = ("spec", "containerRuntime", "config", "plugins", name)
            message = f"containerd {'1.x' if is_old else '2.x'} does not read this under `{name}`"
            hint = f"write {' or '.join(f'`{one}`' for one in wanted)} in its place"
            yield Finding(place, message, hint, at_key=True)


def _is_of_before(name: str, settings: Any) -> bool:
    said = settings.keys() if isinstance(settings, Mapping) else ("",)
    return name == _OLD_PLUGIN and not _OF_STREAMS.issuperset(said)


RULES = (kubeadm_keys, containerd_plugins)
