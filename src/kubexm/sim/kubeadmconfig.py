"""What kubeadm reads: its documents, field by field; whatever else they say is refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, TypeVar

import msgspec

from kubexm.common import layout
from kubexm.sim.kubedocs import Object, Unreadable, documents
from kubexm.sim.shell import Shell

_VERSION = "kubeadm.k8s.io/v1beta4"
_OTHERS = {
    "KubeletConfiguration": "kubelet.config.k8s.io/v1beta1",
    "KubeProxyConfiguration": "kubeproxy.config.k8s.io/v1alpha1",
}
_ALL = (
    "nodeRegistration.ignorePreflightErrors: Forbidden: 'all' cannot be used in configuration file"
)
T = TypeVar("T")


class _Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A part of a document."""


class Arg(_Part, frozen=True):
    """A flag of a program, without its dashes."""

    name: Annotated[str, msgspec.Meta(min_length=1)]
    value: str


class Volume(_Part, frozen=True):
    """A path of the host that a pod gets."""

    name: str
    host_path: str
    mount_path: str
    read_only: bool = False
    path_type: str = ""


class Component(_Part, frozen=True):
    """A program of the control plane."""

    extra_args: tuple[Arg, ...] = ()
    extra_volumes: tuple[Volume, ...] = ()
    extra_envs: tuple[dict[str, Any], ...] = ()
    cert_sans: tuple[str, ...] = msgspec.field(default=(), name="certSANs")


class Taint(_Part, frozen=True):
    """What keeps pods away."""

    key: str
    effect: str
    value: str = ""


class Registration(_Part, frozen=True):
    """How a host becomes a node."""

    name: str = ""
    cri_socket: str = ""
    taints: tuple[Taint, ...] | None = None
    kubelet_extra_args: tuple[Arg, ...] = ()
    ignore_preflight_errors: tuple[str, ...] = ()
    image_pull_policy: str = ""
    image_pull_serial: bool = True


class ApiEndpoint(_Part, frozen=True):
    """Where one API server is."""

    advertise_address: str = ""
    bind_port: int = 6443


class Patches(_Part, frozen=True):
    """Where changes lie to what kubeadm writes."""

    directory: str = ""


class LocalEtcd(_Part, frozen=True):
    """An etcd that kubeadm runs."""

    data_dir: str = "/var/lib/etcd"
    image_repository: str = ""
    image_tag: str = ""
    extra_args: tuple[Arg, ...] = ()
    extra_envs: tuple[dict[str, Any], ...] = ()
    server_cert_sans: tuple[str, ...] = msgspec.field(default=(), name="serverCertSANs")
    peer_cert_sans: tuple[str, ...] = msgspec.field(default=(), name="peerCertSANs")


class ExternalEtcd(_Part, frozen=True):
    """An etcd that kubeadm finds."""

    endpoints: tuple[str, ...]
    ca_file: str
    cert_file: str
    key_file: str


class Etcd(_Part, frozen=True):
    """Where the state of the cluster lies."""

    local: LocalEtcd | None = None
    external: ExternalEtcd | None = None


class Networking(_Part, frozen=True):
    """The addresses of pods and services."""

    service_subnet: str = "10.96.0.0/12"
    pod_subnet: str = ""
    dns_domain: str = "cluster.local"


class Addon(_Part, frozen=True):
    """What kubeadm adds to a cluster."""

    image_repository: str = ""
    image_tag: str = ""
    disabled: bool = False


class Proxy(_Part, frozen=True):
    """Whether kube-proxy is added."""

    disabled: bool = False


class ClusterConfiguration(_Part, frozen=True):
    """What all control planes have in common."""

    kubernetes_version: str = ""
    cluster_name: str = "kubernetes"
    control_plane_endpoint: str = ""
    image_repository: str = "registry.k8s.io"
    certificates_dir: str = layout.PKI
    certificate_validity_period: str = ""
    ca_certificate_validity_period: str = msgspec.field(
        default="", name="caCertificateValidityPeriod"
    )
    encryption_algorithm: str = ""
    networking: Networking = Networking()
    etcd: Etcd = Etcd()
    api_server: Component = Component()
    controller_manager: Component = Component()
    scheduler: Component = Component()
    dns: Addon = Addon()
    proxy: Proxy = Proxy()
    feature_gates: dict[str, bool] = {}

    @property
    def local_etcd(self) -> LocalEtcd | None:
        """The etcd that kubeadm runs; None if there is another."""
        return None if self.etcd.external else self.etcd.local or LocalEtcd()


class BootstrapToken(_Part, frozen=True):
    """A token that is made when a cluster begins."""

    token: str = ""
    ttl: str = ""
    description: str = ""
    usages: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()


class InitConfiguration(_Part, frozen=True):
    """How a cluster begins with this host."""

    bootstrap_tokens: tuple[BootstrapToken, ...] = ()
    node_registration: Registration = Registration()
    local_api_endpoint: ApiEndpoint = msgspec.field(default=ApiEndpoint(), name="localAPIEndpoint")
    certificate_key: str = ""
    skip_phases: tuple[str, ...] = ()
    patches: Patches = Patches()
    timeouts: dict[str, str] = {}
    dry_run: bool = False


class TokenDiscovery(_Part, frozen=True):
    """How the cluster is found by a token."""

    token: str
    api_server_endpoint: str
    ca_cert_hashes: tuple[str, ...] = ()
    unsafe_skip_ca_verification: bool = msgspec.field(
        default=False, name="unsafeSkipCAVerification"
    )


class Discovery(_Part, frozen=True):
    """How the cluster is found."""

    bootstrap_token: TokenDiscovery
    tls_bootstrap_token: str = ""


class JoinControlPlane(_Part, frozen=True):
    """That a host becomes a control plane."""

    local_api_endpoint: ApiEndpoint = msgspec.field(default=ApiEndpoint(), name="localAPIEndpoint")
    certificate_key: str = ""


class JoinConfiguration(_Part, frozen=True):
    """How a host joins a cluster."""

    discovery: Discovery
    node_registration: Registration = Registration()
    ca_cert_path: str = f"{layout.PKI}/ca.crt"
    control_plane: JoinControlPlane | None = None
    skip_phases: tuple[str, ...] = ()
    patches: Patches = Patches()
    timeouts: dict[str, str] = {}
    dry_run: bool = False


_KINDS: dict[str, type[_Part]] = {
    "ClusterConfiguration": ClusterConfiguration,
    "InitConfiguration": InitConfiguration,
    "JoinConfiguration": JoinConfiguration,
}


class Documents(msgspec.Struct, frozen=True):
    """The documents of a file."""

    own: dict[str, _Part]
    """Those of kubeadm, by kind."""
    others: dict[str, Object]
    """Those that it hands on, by kind."""

    def the(self, kind: type[T]) -> T:
        """The document of a kind; one that says nothing if there is none."""
        found = self.own.get(kind.__name__)
        return found if isinstance(found, kind) else kind()


def read(shell: Shell, path: str) -> Documents:
    """The documents of a file of a host; `Unreadable` if kubeadm would refuse one of them."""
    if shell.files.lookup(shell.files.resolve(path)) is None:
        raise Unreadable(f"unable to read config from {path!r}: no such file or directory")
    return parsed(documents(shell.files.read(path)))


def parsed(found: Sequence[Object]) -> Documents:
    """Documents, each by its kind."""
    own: dict[str, _Part] = {}
    others: dict[str, Object] = {}
    for one in found:
        version, kind = str(one.get("apiVersion")), str(one.get("kind"))
        if kind in own or kind in others:
            raise Unreadable(f"kind {kind!r} is there twice")
        if _OTHERS.get(kind) == version:
            others[kind] = one
        elif kind in _KINDS and version == _VERSION:
            own[kind] = _converted(one, _KINDS[kind])
        else:
            raise Unreadable(f"no kind {kind!r} is registered for version {version!r}")
    return Documents(own, others)


def _converted(one: Object, kind: type[_Part]) -> _Part:
    said = {key: value for key, value in one.items() if key not in ("apiVersion", "kind")}
    try:
        found = msgspec.convert(said, kind)
    except msgspec.ValidationError as error:
        raise Unreadable(f"error unmarshaling {kind.__name__}: {error}") from None
    registration = getattr(found, "node_registration", Registration())
    if "all" in map(str.lower, registration.ignore_preflight_errors):
        raise Unreadable(_ALL)
    return found
