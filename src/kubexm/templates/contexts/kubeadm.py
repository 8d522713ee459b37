"""What kubeadm is told: how a cluster begins, and how a host joins it."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from kubexm.common import layout
from kubexm.templates.context import Context, Template


class Taint(msgspec.Struct, frozen=True, kw_only=True):
    """What keeps pods away from a kube node."""

    key: str
    """Its name."""
    value: str = ""
    """More exactly."""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] = "NoSchedule"
    """How."""


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """The kube node that a host becomes."""

    name: str
    """What it is called."""
    addresses: tuple[str, ...] = ()
    """Where it is reached, one of each family at most; nothing if its kubelet knows already."""
    taints: tuple[Taint, ...] | None = None
    """What keeps pods away from it; if nothing is said, what kubeadm gives a control plane, and
    none for a worker. An empty list for a control plane that is a worker too."""
    kubelet_args: dict[str, str] = msgspec.field(default_factory=dict)
    """Flags of its kubelet, without `--`."""
    ignored_errors: tuple[str, ...] = ()
    """Checks of kubeadm that only warn."""
    cri_socket: str = layout.CRI_SOCKET
    """Where its container runtime listens."""


class ApiEndpoint(msgspec.Struct, frozen=True, kw_only=True):
    """Where the API server of one control plane is."""

    address: str
    """Its address, which others are told."""
    port: int = 6443
    """The port that it opens."""


class Image(msgspec.Struct, frozen=True, kw_only=True):
    """An image in place of the one that kubeadm takes by itself."""

    repository: str
    """The registry with the folder."""
    tag: str
    """The tag."""


class EtcdTuning(msgspec.Struct, frozen=True, kw_only=True):
    """How etcd behaves under load."""

    heartbeat_ms: int = 250
    """How often the leader says that it is there."""
    election_ms: int = 5000
    """How long the others wait for it."""
    snapshot_count: int = 10_000
    """Changes between two snapshots on disk."""
    compaction_seconds: int = 8 * 3600
    """How long old versions of keys are kept."""
    quota_bytes: int = 2048 * 1024**2
    """How large it may become."""
    max_request_bytes: int = 1536 * 1024
    """The largest request."""


class StackedEtcd(msgspec.Struct, frozen=True, kw_only=True):
    """An etcd that kubeadm runs as a pod on each control plane."""

    data_dir: str = "/var/lib/etcd"
    """Where its data lie."""
    image: Image | None = None
    """Its image, if it is not the one that kubeadm takes by itself."""
    tuning: EtcdTuning = EtcdTuning()
    """How it behaves under load."""
    args: dict[str, str] = msgspec.field(default_factory=dict)
    """More flags, without `--`; they win."""


class ExternalEtcd(msgspec.Struct, frozen=True, kw_only=True):
    """An etcd that kubeadm does not run."""

    endpoints: tuple[str, ...]
    """Its members, such as `https://10.0.0.5:2379`."""
    ca: str
    """The file with the certificate of its authority."""
    certificate: str
    """The file with the certificate that lets the API server in."""
    key: str
    """The file with the key of that certificate."""


class Audit(msgspec.Struct, frozen=True, kw_only=True):
    """What the API server writes down of requests."""

    max_age_days: int = 30
    """How long it is kept."""
    max_backups: int = 10
    """How many old files are kept."""
    max_size_mib: int = 100
    """How large a file becomes."""
    policy: str = layout.AUDIT_POLICY
    """The file with the rules."""
    log: str = layout.AUDIT_LOG
    """The file that it writes."""


class Certificates(msgspec.Struct, frozen=True, kw_only=True):
    """The certificates that kubeadm finds, or makes when it renews them."""

    seconds: int = 365 * 86400
    """How long a certificate is good for."""
    authority_seconds: int = 3650 * 86400
    """How long an authority is good for."""
    algorithm: str = "RSA-2048"
    """The kind of keys."""
    directory: str = layout.PKI
    """Where they lie."""


class Timeouts(msgspec.Struct, frozen=True, kw_only=True):
    """How long kubeadm waits."""

    health_seconds: int = 240
    """For a part of the control plane, and for the kubelet, to be well."""
    discovery_seconds: int = 300
    """For the cluster to be found by a host that joins, and for its certificate."""


class InitConfig(Context, frozen=True, kw_only=True):
    """How a cluster begins, and what all of its control planes have in common."""

    version: str
    """The version of Kubernetes, such as `v1.36.3`."""
    cluster_name: str
    """What the cluster calls itself."""
    endpoint: str
    """Where the API servers are reached: `HOST:PORT`, an IPv6 address in brackets."""
    api: ApiEndpoint
    """The API server of this host."""
    node: Node
    """The kube node that this host becomes."""
    pod_cidrs: tuple[str, ...]
    """The addresses of pods."""
    service_cidrs: tuple[str, ...]
    """The addresses of services."""
    dns_domain: str
    """The domain of services."""
    kubelet: dict[str, Any]
    """The document of `kubernetes/kubelet`, for the cluster to know."""
    node_mask: int | None = None
    """The prefix of the IPv4 addresses of the pods of one host; nothing of either family if the
    pod network hands them out itself."""
    node_mask_ipv6: int | None = None
    """The same for IPv6."""
    proxy_mode: Literal["iptables", "ipvs", "nftables", "none"] = "iptables"
    """How kube-proxy works; `none` where something else takes its place."""
    image_repository: str = "registry.k8s.io"
    """Where the images of Kubernetes come from."""
    dns: Image | None = None
    """The image of CoreDNS, if kubeadm is to install it; else somebody else does."""
    stacked_etcd: StackedEtcd | None = None
    """The etcd that kubeadm runs; either this or an external one."""
    external_etcd: ExternalEtcd | None = None
    """The etcd that is there already."""
    cert_sans: tuple[str, ...] = ()
    """Names and addresses that the certificate of the API server is for, beyond the usual ones."""
    certificates: Certificates = Certificates()
    """The certificates of the cluster."""
    audit: Audit | None = None
    """What the API server writes down of requests; nothing if it does not."""
    encryption: str = ""
    """The file that says how the API server encrypts what it stores; empty if it does not."""
    feature_gates: dict[str, bool] = msgspec.field(default_factory=dict)
    """Features to switch on or off, in every component."""
    api_server_args: dict[str, str] = msgspec.field(default_factory=dict)
    """More flags of the API server, without `--`; they win."""
    controller_manager_args: dict[str, str] = msgspec.field(default_factory=dict)
    """More flags of the controller manager, without `--`; they win."""
    scheduler_args: dict[str, str] = msgspec.field(default_factory=dict)
    """More flags of the scheduler, without `--`; they win."""
    patches: str = ""
    """A directory with patches of what kubeadm writes."""
    timeouts: Timeouts = Timeouts()
    """How long kubeadm waits."""


class JoinConfig(Context, frozen=True, kw_only=True):
    """How a host joins a cluster."""

    endpoint: str
    """Where the API servers are reached: `HOST:PORT`, an IPv6 address in brackets."""
    node: Node
    """The kube node that this host becomes."""
    api: ApiEndpoint | None = None
    """The API server of this host; nothing for a worker."""
    patches: str = ""
    """A directory with patches of what kubeadm writes."""
    timeouts: Timeouts = Timeouts()
    """How long kubeadm waits."""
    token: str = ""
    """What lets the host in; it is known when the host joins."""
    ca_hashes: tuple[str, ...] = ()
    """The authority of the cluster, as `sha256:…`; it is known when the host joins."""


_KUBELET = {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}
_PLAIN = InitConfig(
    version="v1.36.3",
    cluster_name="demo",
    endpoint="api.demo.kubexm.internal:6443",
    api=ApiEndpoint(address="10.0.0.11"),
    node=Node(name="cp1", addresses=("10.0.0.11",)),
    pod_cidrs=("10.233.64.0/18",),
    service_cidrs=("10.233.0.0/18",),
    dns_domain="cluster.local",
    kubelet={**_KUBELET, "cgroupDriver": "systemd", "maxPods": 110},
    node_mask=24,
    stacked_etcd=StackedEtcd(),
)
_FULL = InitConfig(
    version="v1.36.3",
    cluster_name="1e3",
    endpoint="[fd00::10]:8443",
    api=ApiEndpoint(address="10.0.0.11", port=8443),
    node=Node(
        name="cp1",
        addresses=("10.0.0.11", "fd00::11"),
        taints=(Taint(key="zone", value="on", effect="NoExecute"),),
        kubelet_args={"node-labels": "a=b"},
        ignored_errors=("SystemVerification", "Swap"),
    ),
    pod_cidrs=("10.233.64.0/18", "fd00:64::/56"),
    service_cidrs=("10.233.0.0/18", "fd00:233::/112"),
    dns_domain="k8s.example.com",
    kubelet={**_KUBELET, "clusterDNS": ["10.233.0.10", "fd00:233::a"]},
    node_mask=25,
    node_mask_ipv6=64,
    proxy_mode="nftables",
    image_repository="registry.internal:5000/kubernetes",
    dns=Image(repository="registry.internal:5000/coredns", tag="v1.14.2"),
    stacked_etcd=StackedEtcd(
        data_dir="/data/etcd",
        image=Image(repository="registry.internal:5000/kubernetes", tag="3.6.8-0"),
        tuning=EtcdTuning(compaction_seconds=0),
        args={"log-level": "warn", "heartbeat-interval": "100"},
    ),
    cert_sans=("api.example.com", "203.0.113.7"),
    certificates=Certificates(algorithm="ECDSA-P256"),
    audit=Audit(),
    encryption=layout.ENCRYPTION_CONFIG,
    feature_gates={"ContextualLogging": True, "HPAScaleToZero": False},
    api_server_args={"event-ttl": "2h", "audit-log-maxage": "7"},
    controller_manager_args={"terminated-pod-gc-threshold": "100"},
    scheduler_args={"v": "3"},
    patches=layout.PATCHES,
)
_WITHOUT = InitConfig(
    version="v1.36.3",
    cluster_name="demo",
    endpoint="10.0.0.10:6443",
    api=ApiEndpoint(address="10.0.0.11"),
    node=Node(name="cp1", taints=()),
    pod_cidrs=("10.233.64.0/18",),
    service_cidrs=("10.233.0.0/18",),
    dns_domain="cluster.local",
    kubelet=_KUBELET,
    proxy_mode="none",
    external_etcd=ExternalEtcd(
        endpoints=("https://10.0.0.21:2379", "https://10.0.0.22:2379"),
        ca=f"{layout.ETCD_PKI}/ca.crt",
        certificate=f"{layout.PKI}/apiserver-etcd-client.crt",
        key=f"{layout.PKI}/apiserver-etcd-client.key",
    ),
)
_WORKER = JoinConfig(
    endpoint="api.demo.kubexm.internal:6443",
    node=Node(name="worker1"),
    token="abcdef.0123456789abcdef",  # noqa: S106 of nobody
    ca_hashes=("sha256:" + "0" * 64,),
)
_CONTROL_PLANE = JoinConfig(
    endpoint="[fd00::10]:8443",
    node=Node(
        name="cp2",
        addresses=("10.0.0.12", "fd00::12"),
        taints=(),
        kubelet_args={"v": "4"},
        ignored_errors=("FileAvailable--etc-kubernetes-pki-ca.crt",),
    ),
    api=ApiEndpoint(address="10.0.0.12", port=8443),
    patches=layout.PATCHES,
    token="012345.0123456789012345",  # noqa: S106 of nobody
    ca_hashes=("sha256:" + "1" * 64,),
)
_INITS = (_PLAIN, _FULL, _WITHOUT)
_JOINS = (_WORKER, _CONTROL_PLANE)
_INIT_ABOUT = "how a cluster begins"
_JOIN_ABOUT = "how a host joins a cluster"
_JOIN_PATH = f"{layout.SECRETS_IN_MEMORY}/kubeadm-join.yaml"
_OLD = "for kubeadm before v1.31"

TEMPLATES: tuple[Template, ...] = (
    Template("kubeadm/init", InitConfig, "manifests", _INIT_ABOUT, layout.KUBEADM_CONFIG, _INITS),
    Template(
        "kubeadm/init-v1beta3",
        InitConfig,
        "manifests",
        f"{_INIT_ABOUT}, {_OLD}",
        layout.KUBEADM_CONFIG,
        _INITS,
    ),
    Template("kubeadm/join", JoinConfig, "manifests", _JOIN_ABOUT, _JOIN_PATH, _JOINS),
    Template(
        "kubeadm/join-v1beta3",
        JoinConfig,
        "manifests",
        f"{_JOIN_ABOUT}, {_OLD}",
        _JOIN_PATH,
        _JOINS,
    ),
)
