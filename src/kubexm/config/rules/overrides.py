"""Rules of what the operator lays over the settings of programs: it can't contradict the file.

Whatever else is written there wins over what kubexm sets, so one table has what must not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from operator import attrgetter
from typing import Any

import msgspec

from kubexm.common import layout
from kubexm.config.model.cluster import ClusterSpec
from kubexm.config.rules.rule import Declared, rule
from kubexm.document.findings import Finding
from kubexm.document.forms import camel
from kubexm.document.source import DataPath

_FIELDS = (
    "kubernetes.api_server.extra_args",
    "kubernetes.controller_manager.extra_args",
    "kubernetes.scheduler.extra_args",
    "kubernetes.kubelet.config",
    "kubernetes.kubelet.extra_args",
    "kubernetes.kube_proxy.config",
    "kubernetes.kubeadm.cluster_configuration",
    "kubernetes.kubeadm.init_configuration",
    "kubernetes.kubeadm.join_configuration",
    "etcd.extra_args",
    "container_runtime.config",
)
"""Where the file takes settings that it does not know itself."""


class Instead(msgspec.Struct, frozen=True):
    """Why something is not for an override, and what to do."""

    why: str
    hint: str = "leave it out"


def has_key(path: str) -> Instead:
    """The file has a key of its own for it."""
    return Instead(f"the file has `{path}` for it", f"write `spec.{path}` in its place")


_KUBELET = "kubernetes/kubelet"
_PROXY = "kubernetes/kubeProxy/config"
_KUBEADM = "kubernetes/kubeadm"
_CLUSTER = f"{_KUBEADM}/clusterConfiguration"
_INIT, _JOIN = f"{_KUBEADM}/initConfiguration", f"{_KUBEADM}/joinConfiguration"
_DOCUMENTS = (f"{_KUBELET}/config", _PROXY, _CLUSTER, _INIT, _JOIN)
_CONTAINERD = "containerRuntime/config"
_PLUGINS = f"{_CONTAINERD}/plugins"
_IMAGES = f"{_PLUGINS}/io.containerd.cri.v1.images"
_RUNTIME = f"{_PLUGINS}/io.containerd.cri.v1.runtime"
_OLD = f"{_PLUGINS}/io.containerd.grpc.v1.cri"
_RUNC = "containerd/runtimes/runc/options/SystemdCgroup"
_FORM = Instead("kubexm writes the document in the form that this version reads")
_PORT = Instead("others of the cluster ask at the usual port")
_HEALTH = Instead("kubeadm asks the kubelet for its health at the usual port")
_READ_ONLY = Instead(
    "it is a field of the file that the kubelet reads",
    "write `readOnlyPort` under `spec.kubernetes.kubelet.config`",
)
_OUR_CERTIFICATES = Instead(
    f"kubexm makes the certificates, and lays them to {layout.PKI}",
    "leave it out; `spec.kubernetes.certificates` has what may be said of them",
)
_HOST_ADDRESS = has_key("hosts[].internalAddresses")
_HOST_NAME = has_key("hosts[].name")
_POD_CIDR, _SERVICE_CIDR = has_key("network.podCIDR"), has_key("network.serviceCIDR")
_CGROUP = has_key("containerRuntime.systemdCgroup")
_SOCKET = Instead(f"the container runtime listens at {layout.CONTAINERD_SOCKET}")
_NAMES = Instead(
    "it follows from `network.serviceCIDR` and `dns.nodeLocal`",
    "leave it out, or write `spec.dns.nodeLocal` for another address",
)
_PODS_OF_KUBEADM = Instead(f"kubeadm lays its pods to {layout.MANIFESTS}")
_STARTED = Instead("kubexm starts the kubelet with the file that it has written")
_FIRST_START = Instead("it follows from the hosts with a member of etcd")
_REHEARSAL = Instead(
    "kubeadm would only say what it would do", "leave it out; `--dry-run` of kubexm does that"
)

_TABLE: tuple[tuple[Sequence[str], Mapping[str, Instead]], ...] = (
    (_DOCUMENTS, {"apiVersion": _FORM, "kind": _FORM}),
    (
        ("kubernetes/apiServer/extraArgs", f"{_CLUSTER}/apiServer/extraArgs"),
        {
            "secure-port": _PORT,
            "advertise-address": _HOST_ADDRESS,
            "service-cluster-ip-range": _SERVICE_CIDR,
            "etcd-servers": has_key("etcd"),
            "etcd-*file": _OUR_CERTIFICATES,
            "client-ca-file": _OUR_CERTIFICATES,
            "tls-cert-file": _OUR_CERTIFICATES,
            "tls-private-key-file": _OUR_CERTIFICATES,
            "kubelet-client-*": _OUR_CERTIFICATES,
            "proxy-client-*-file": _OUR_CERTIFICATES,
            "requestheader-client-ca-file": _OUR_CERTIFICATES,
            "service-account-key-file": _OUR_CERTIFICATES,
            "service-account-signing-key-file": _OUR_CERTIFICATES,
        },
    ),
    (
        ("kubernetes/controllerManager/extraArgs", f"{_CLUSTER}/controllerManager/extraArgs"),
        {
            "secure-port": _PORT,
            "cluster-cidr": _POD_CIDR,
            "service-cluster-ip-range": _SERVICE_CIDR,
            "node-cidr-mask-size": has_key("network.nodeMask"),
            "node-cidr-mask-size-ipv4": has_key("network.nodeMask"),
            "node-cidr-mask-size-ipv6": has_key("network.nodeMaskIpv6"),
            "cluster-name": has_key("kubernetes.clusterName"),
            "kubeconfig": _OUR_CERTIFICATES,
            "root-ca-file": _OUR_CERTIFICATES,
            "service-account-private-key-file": _OUR_CERTIFICATES,
        },
    ),
    (
        ("kubernetes/scheduler/extraArgs", f"{_CLUSTER}/scheduler/extraArgs"),
        {"secure-port": _PORT, "kubeconfig": _OUR_CERTIFICATES},
    ),
    (
        (f"{_KUBELET}/config",),
        {
            "port": _PORT,
            "healthzPort": _HEALTH,
            "clusterDNS": _NAMES,
            "clusterDomain": has_key("dns.domain"),
            "cgroupDriver": _CGROUP,
            "staticPodPath": _PODS_OF_KUBEADM,
            "containerRuntimeEndpoint": _SOCKET,
        },
    ),
    (
        (
            f"{_KUBELET}/extraArgs",
            f"{_INIT}/nodeRegistration/kubeletExtraArgs",
            f"{_JOIN}/nodeRegistration/kubeletExtraArgs",
        ),
        {
            "port": _PORT,
            "healthz-port": _HEALTH,
            "read-only-port": _READ_ONLY,
            "node-ip": _HOST_ADDRESS,
            "hostname-override": _HOST_NAME,
            "config": _STARTED,
            "kubeconfig": _STARTED,
            "bootstrap-kubeconfig": _STARTED,
            "root-dir": Instead(f"others of the cluster know it as {layout.KUBELET_DATA}"),
            "container-runtime-endpoint": _SOCKET,
            "pod-manifest-path": _PODS_OF_KUBEADM,
            "cluster-dns": _NAMES,
            "cluster-domain": has_key("dns.domain"),
            "cgroup-driver": _CGROUP,
            "max-pods": has_key("kubernetes.kubelet.maxPods"),
        },
    ),
    ((_PROXY,), {"mode": has_key("kubernetes.kubeProxy.mode"), "clusterCIDR": _POD_CIDR}),
    (
        (_CLUSTER,),
        {
            "kubernetesVersion": has_key("kubernetes.version"),
            "clusterName": has_key("kubernetes.clusterName"),
            "controlPlaneEndpoint": has_key("endpoint"),
            "imageRepository": has_key("kubernetes.imageRepository"),
            "networking": Instead(
                "the file has `network` and `dns.domain` for it",
                "write `spec.network.podCIDR`, `spec.network.serviceCIDR` or `spec.dns.domain`",
            ),
            "etcd": Instead(
                "the file has `etcd` for it",
                "write `spec.etcd`, or change its pod by `spec.kubernetes.kubeadm.patches`",
            ),
            "certificatesDir": _OUR_CERTIFICATES,
            "certificateValidityPeriod": has_key("kubernetes.certificates.duration"),
            "caCertificateValidityPeriod": has_key("kubernetes.certificates.authorityDuration"),
            "encryptionAlgorithm": has_key("kubernetes.certificates.algorithm"),
            "apiServer/certSANs": has_key("kubernetes.apiServer.certSans"),
            "dns": has_key("dns"),
            "proxy": has_key("kubernetes.kubeProxy.mode"),
        },
    ),
    (
        (_INIT, _JOIN),
        {
            "nodeRegistration/name": _HOST_NAME,
            "nodeRegistration/criSocket": _SOCKET,
            "nodeRegistration/taints": has_key("hosts[].taints"),
            "nodeRegistration/ignorePreflightErrors": has_key(
                "kubernetes.kubeadm.ignorePreflightErrors"
            ),
            "patches": has_key("kubernetes.kubeadm.patches"),
            "dryRun": _REHEARSAL,
        },
    ),
    ((_INIT,), {"localAPIEndpoint": _PORT}),
    (
        (_JOIN,),
        {
            "controlPlane": Instead("workers join with this document as well"),
            "discovery/bootstrapToken": Instead("kubexm makes a token when a host joins"),
            "discovery/file": Instead("kubexm makes a token when a host joins"),
            "caCertPath": _OUR_CERTIFICATES,
        },
    ),
    (
        ("etcd/extraArgs",),
        {
            "data-dir": has_key("etcd.dataDir"),
            "wal-dir": has_key("etcd.dataDir"),
            "name": _HOST_NAME,
            "config-file": Instead("etcd would look at nothing but that file"),
            "listen-client-urls": _HOST_ADDRESS,
            "listen-peer-urls": _HOST_ADDRESS,
            "advertise-client-urls": _HOST_ADDRESS,
            "initial-*": _FIRST_START,
            "*cert-file": _OUR_CERTIFICATES,
            "*key-file": _OUR_CERTIFICATES,
            "*trusted-ca-file": _OUR_CERTIFICATES,
            "*client-cert-auth": _OUR_CERTIFICATES,
            "heartbeat-interval": has_key("etcd.tuning.heartbeat"),
            "election-timeout": has_key("etcd.tuning.election"),
            "snapshot-count": has_key("etcd.tuning.snapshotCount"),
            "auto-compaction-*": has_key("etcd.tuning.compaction"),
            "quota-backend-bytes": has_key("etcd.tuning.quotaMib"),
            "max-request-bytes": has_key("etcd.tuning.maxRequestKib"),
        },
    ),
    (
        (_CONTAINERD,),
        {
            "version": _FORM,
            "root": has_key("containerRuntime.root"),
            "state": _SOCKET,
            "grpc/address": _SOCKET,
        },
    ),
    ((f"{_RUNTIME}/{_RUNC}", f"{_OLD}/{_RUNC}"), {"": _CGROUP}),
    (
        (f"{_IMAGES}/pinned_images/sandbox", f"{_OLD}/sandbox_image"),
        {"": has_key("containerRuntime.sandboxImage")},
    ),
    (
        (f"{_IMAGES}/registry/config_path", f"{_OLD}/registry/config_path"),
        {"": has_key("containerRuntime.registries")},
    ),
)
"""What must not be laid over: where, with `/` between keys and `*` for any letters, and why."""
Names = tuple[str, ...]
_Written = tuple[DataPath, Names, Any]


def plain(name: str) -> str:
    """A name as programs tell flags apart: to them, `secure_port` is `secure-port`."""
    return name.replace("_", "-")


def _rows() -> Iterator[tuple[Names, Instead]]:
    for places, entries in _TABLE:
        for place in places:
            for name, instead in entries.items():
                path = f"{place}/{name}".removesuffix("/")
                yield tuple(map(plain, path.split("/"))), instead


_ROWS = tuple(_rows())
_IN_PARTS = "kubexm sets parts of it"
_BY_PARTS = "leave it out, and write only what differs below it"


def _dotted(field: str) -> str:
    """A field as the file calls it."""
    return ".".join(map(camel, field.split(".")))


@rule("overrides", *map(_dotted, _FIELDS))
def overrides(cluster: Declared) -> Iterator[Finding]:
    """What the file has a key for, or others depend on, is not laid over."""
    patterns = [pattern for pattern, _ in _ROWS]
    for place, names, part in written(cluster.spec):
        if instead := instead_of(names):
            yield refused(place, names, instead)
        elif takes_away(names, part, patterns):
            yield taken_away(place, names)


def refused(place: DataPath, names: Names, instead: Instead) -> Finding:
    """That something is not for an override."""
    message = f"`{names[-1]}` can't be set here: {instead.why}"
    return Finding(place, message, instead.hint, at_key=isinstance(place[-1], str))


def taken_away(place: DataPath, names: Names) -> Finding:
    """That an override would take away more than it names."""
    message = f"`{names[-1]}` can't be taken away as a whole: {_IN_PARTS}"
    return Finding(place, message, _BY_PARTS, at_key=isinstance(place[-1], str))


def takes_away(names: Names, part: Any, patterns: Iterable[Names]) -> bool:
    """Whether a value leaves nothing of what is at places below it."""
    return _is_nothing(part) and any(
        len(pattern) > len(names) and is_like(names, pattern[: len(names)]) for pattern in patterns
    )


def _is_nothing(part: Any) -> bool:
    """Whether it is laid over a mapping or a list of flags and leaves nothing of it.

    A list stays only under one of which every entry has a name.
    """
    if not isinstance(part, list):
        return part is None
    entries = [one for one in part if isinstance(one, Mapping)]
    return len(entries) == len(part) and not (part and all("name" in one for one in entries))


def written(spec: ClusterSpec) -> Iterator[_Written]:
    """All that the overrides of a file say: where, under which names, and what."""
    for field in _FIELDS:
        names = tuple(_dotted(field).split("."))
        yield from _below(attrgetter(field)(spec), ("spec", *names), names)


def _below(value: Any, place: DataPath, names: Names) -> Iterator[_Written]:
    """Everything in a value; an entry of a list is called by its `name`, as kubeadm has flags."""
    for key, part in _parts(value):
        called = str(part["name"]) if isinstance(key, int) else str(key)
        yield (*place, key), (*names, called), part
        yield from _below(part, (*place, key), (*names, called))


def _parts(value: Any) -> Iterator[tuple[str | int, Any]]:
    if isinstance(value, Mapping):
        yield from value.items()
    elif isinstance(value, list | tuple):
        for number, part in enumerate(value):
            if isinstance(part, Mapping) and "name" in part:
                yield number, part


def instead_of(names: Sequence[str]) -> Instead | None:
    """Why something is not for an override, by its names below `spec`; None if it is."""
    return next((instead for pattern, instead in _ROWS if is_like(names, pattern)), None)


def is_like(names: Sequence[str], pattern: Sequence[str]) -> bool:
    """Whether names are those of a pattern, in the way that programs tell flags apart."""
    is_long_enough = len(names) == len(pattern)
    return is_long_enough and all(map(fnmatchcase, map(plain, names), pattern))


_ASK_READYZ = ("haproxy", "keepalived")
"""Kinds of the endpoint with a balancer that asks which API server is ready."""
_ANONYMOUS = "anonymous-auth"
_FALSE = ("false", "f", "0")
_HEALTH_ALONE = (
    "leave it out, and allow `/livez`, `/readyz` and `/healthz` alone by an"
    " AuthenticationConfiguration, with the flag `authentication-config`"
)


def is_off(part: Any) -> bool:
    """Whether a flag is switched off, as a key or an entry of a list."""
    return flag_value(part).lower() in _FALSE


def flag_value(part: Any) -> str:
    """The value of a flag, as a key or an entry of a list."""
    return str(part.get("value") if isinstance(part, Mapping) else part)


@rule("anonymous-requests", "kubernetes", "endpoint", "roleGroups", "hosts")
def anonymous_requests(cluster: Declared) -> Iterator[Finding]:
    """Those who ask the API server for its health without credentials get an answer."""
    is_asked = cluster.endpoint_kind in _ASK_READYZ
    # A patch may have given its pod other probes; haproxy can't be told otherwise.
    if not is_asked and "kube-apiserver" in cluster.spec.kubernetes.kubeadm.patches:
        return
    for place, names, part in written(cluster.spec):
        is_flag = "apiServer" in names and plain(names[-1]) == _ANONYMOUS
        if is_flag and is_off(part):
            who = "haproxy and the probes of its pod" if is_asked else "the probes of its pod"
            message = f"{who} ask the API server for its health without credentials"
            yield Finding(place, message, _HEALTH_ALONE)


RULES = (overrides, anonymous_requests)
