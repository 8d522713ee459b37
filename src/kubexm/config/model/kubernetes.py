"""Kubernetes itself: version, components, kubelet, kube-proxy, kubeadm, certificates."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from kubexm.common.covering import covers
from kubexm.config.fields import (
    CertifiedName,
    EncryptedResource,
    FeatureGate,
    FlagName,
    Line,
    LongDuration,
    PreflightCheck,
    SecretReference,
    Version,
)
from kubexm.document.fields import FilePath, Name, Text
from kubexm.document.forms import BadValue, Before, Filled, Form, Range, empty

ProxyMode = Literal["iptables", "ipvs", "nftables", "none"]
KeyAlgorithm = Literal["RSA-2048", "RSA-3072", "RSA-4096", "ECDSA-P256", "ECDSA-P384"]
_WITHOUT_EFFECT = {
    "kubeletconfiguration": "write the fields under `kubernetes.kubelet.config`",
    "corednsdeployment": "CoreDNS is not kubeadm's here: change the template `coredns/manifest`",
}


def _with_effect(target: Any) -> Any:
    """What kubeadm would patch where nothing reads it is refused."""
    if target in _WITHOUT_EFFECT:
        message = f"a patch of `{target}` would have no effect"
        raise BadValue(message, _WITHOUT_EFFECT[target])
    return target


PatchTarget = Annotated[
    Literal["kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd"],
    Before(_with_effect),
]


class AuditSpec(Form):
    """What the API server writes down of requests."""

    enabled: bool = False
    """Whether it does."""
    policy: FilePath | None = None
    """A file with the policy; one that notes who changed what, without the content of secrets, if
    nothing is said."""
    max_age_days: Annotated[int, Range(1, 3650)] = 30
    """How long it is kept."""
    max_backups: Annotated[int, Range(0, 1000)] = 10
    """How many old files are kept."""
    max_size_mib: Annotated[int, Range(1, 10_000)] = 100
    """How large a file becomes."""


class EncryptionSpec(Form):
    """Encryption of what lies in etcd."""

    enabled: bool = False
    """Whether it is encrypted; the key is made by kubexm and kept on the control planes alone."""
    provider: Literal["secretbox", "aescbc", "aesgcm"] = "secretbox"
    """How."""
    resources: Annotated[tuple[EncryptedResource, ...], Filled()] = ("secrets",)
    """What, as `RESOURCE` or `RESOURCE.GROUP`; all of a group is `*.GROUP`, of the core group `*.`,
    and everything is `*.*`."""

    def judged(self) -> EncryptionSpec:
        for at, one in enumerate(self.resources):
            for other in self.resources[:at]:
                if covers(one, other) or covers(other, one):
                    message = f"`{other}` and `{one}` of `resources` overlap"
                    raise BadValue(message, "leave one of them out: the API server takes no such")
        return self


class ApiServerSpec(Form):
    """The API server."""

    cert_sans: tuple[CertifiedName, ...] = ()
    """More names and addresses that its certificate is for; `*.DOMAIN` is all names of one."""
    extra_args: dict[FlagName, Line] = empty(dict)
    """Flags, without `--`."""
    audit: AuditSpec = AuditSpec()
    """What it writes down of requests."""
    encryption: EncryptionSpec = EncryptionSpec()
    """Encryption of what it stores."""


class ComponentSpec(Form):
    """A part of the control plane."""

    extra_args: dict[FlagName, Line] = empty(dict)
    """Flags, without `--`."""


class KubeletSpec(Form):
    """The kubelet of every host."""

    max_pods: Annotated[int, Range(1, 10_000)] = 110
    """How many pods a host runs at most."""
    config: dict[str, Any] = empty(dict)
    """Any other field of `KubeletConfiguration`; wins over what kubexm sets."""
    extra_args: dict[FlagName, Line] = empty(dict)
    """Flags, without `--`, for what has no field."""


class KubeProxySpec(Form):
    """The proxy of services on every host."""

    mode: ProxyMode = "iptables"
    """How; `none` where the network plugin takes its place."""
    config: dict[str, Any] = empty(dict)
    """Any other field of `KubeProxyConfiguration`; wins over what kubexm sets."""


class KubeadmSpec(Form):
    """What kubeadm is told beyond the rest of this file."""

    cluster_configuration: dict[str, Any] = empty(dict)
    """Fields of `ClusterConfiguration`; they win over what kubexm sets. A list of entries with a
    `name`, such as `extraArgs` and `extraVolumes`, adds to what kubexm sets, and replaces only
    entries of the same name; any other list is replaced as a whole. So it is in the next two."""
    init_configuration: dict[str, Any] = empty(dict)
    """Fields of `InitConfiguration`; they win over what kubexm sets."""
    join_configuration: dict[str, Any] = empty(dict)
    """Fields of `JoinConfiguration`; they win over what kubexm sets."""
    patches: dict[PatchTarget, FilePath] = empty(dict)
    """Files with patches of the pods that kubeadm writes on control planes, by their names:
    `kube-apiserver`, `kube-controller-manager`, `kube-scheduler`, and `etcd` if it is stacked."""
    ignore_preflight_errors: tuple[PreflightCheck, ...] = ()
    """Checks of kubeadm that only warn, each by its name."""


class AuthoritySpec(Form):
    """An authority of yours."""

    certificate: FilePath
    """The file with its certificate."""
    key: SecretReference
    """Its private key."""


class AuthoritiesSpec(Form):
    """Authorities of yours in place of those that kubexm makes."""

    kubernetes: AuthoritySpec | None = None
    """For the cluster itself."""
    etcd: AuthoritySpec | None = None
    """For etcd."""
    front_proxy: AuthoritySpec | None = None
    """For extensions of the API server."""


class CertificatesSpec(Form):
    """The certificates of the cluster."""

    duration: LongDuration = 365 * 86400.0
    """How long a certificate is good for."""
    authority_duration: LongDuration = 3650 * 86400.0
    """How long an authority is good for."""
    algorithm: KeyAlgorithm = "RSA-2048"
    """The kind of keys."""
    authorities: AuthoritiesSpec = AuthoritiesSpec()
    """Authorities of yours."""


class KubernetesSpec(Form):
    """Kubernetes itself."""

    version: Version
    """Which, such as `v1.36.3`; `kubexm catalog list` shows all that are known."""
    cluster_name: Name | None = None
    """What it calls itself; the name of the file's cluster if nothing is said."""
    feature_gates: dict[FeatureGate, bool] = empty(dict)
    """Features to switch on or off, in every component."""
    api_server: ApiServerSpec = ApiServerSpec()
    """The API server."""
    controller_manager: ComponentSpec = ComponentSpec()
    """The controller manager."""
    scheduler: ComponentSpec = ComponentSpec()
    """The scheduler."""
    kubelet: KubeletSpec = KubeletSpec()
    """The kubelet of every host."""
    kube_proxy: KubeProxySpec = KubeProxySpec()
    """The proxy of services on every host."""
    kubeadm: KubeadmSpec = KubeadmSpec()
    """What kubeadm is told beyond the rest of this file."""
    certificates: CertificatesSpec = CertificatesSpec()
    """The certificates of the cluster."""
    image_repository: Text | None = None
    """Where the images of Kubernetes come from; `registry.k8s.io` if nothing is said."""
