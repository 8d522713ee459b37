"""The kubelet, and what the API server writes down."""

from __future__ import annotations

from types import MappingProxyType
from typing import Literal

import msgspec

from kubexm.common import layout
from kubexm.templates.context import Context, Template

_RESERVED = MappingProxyType({"cpu": "200m", "memory": "256Mi"})


class KubeletConfig(Context, frozen=True, kw_only=True):
    """How the kubelet of a host runs."""

    cluster_dns: tuple[str, ...]
    """The addresses at which pods ask for names."""
    cluster_domain: str
    """The domain of services."""
    cgroup_driver: Literal["systemd", "cgroupfs"] = "systemd"
    """Who manages control groups; the container runtime has to say the same."""
    max_pods: int = 110
    """How many pods the host runs at most."""
    reserved: dict[str, str] = msgspec.field(default_factory=lambda: dict(_RESERVED))
    """What pods don't get: it is left to the system and to Kubernetes itself."""
    shutdown_seconds: int = 60
    """How long pods may take to end when the host goes down; `0` if nobody waits for them."""
    resolv_conf: str = ""
    """The file with the name servers of the host, if it is not `/etc/resolv.conf`."""
    feature_gates: dict[str, bool] = msgspec.field(default_factory=dict)
    """Features to switch on or off."""
    cri_socket: str = layout.CRI_SOCKET
    """Where the container runtime listens."""
    client_ca: str = f"{layout.PKI}/ca.crt"
    """The authority of those who may ask the kubelet."""
    static_pods: str = layout.MANIFESTS
    """The directory with pods that the kubelet runs by itself."""


class AuditPolicy(Context, frozen=True, kw_only=True):
    """Who changed what, and nothing that is secret: the same for every cluster."""


_USUAL = KubeletConfig(cluster_dns=("10.233.0.10",), cluster_domain="cluster.local")
_OTHER = KubeletConfig(
    cluster_dns=("169.254.25.10", "fd00:233::a"),
    cluster_domain="k8s.example.com",
    cgroup_driver="cgroupfs",
    max_pods=250,
    reserved={},
    shutdown_seconds=0,
    resolv_conf="/run/systemd/resolve/resolv.conf",
    feature_gates={"KubeletInUserNamespace": True},
)

TEMPLATES: tuple[Template, ...] = (
    Template(
        "kubernetes/kubelet",
        KubeletConfig,
        "yaml",
        "how the kubelet runs",
        layout.KUBELET_CONFIG,
        (_USUAL, _OTHER),
    ),
    Template(
        "kubernetes/audit-policy",
        AuditPolicy,
        "yaml",
        "what the API server writes down of requests",
        layout.AUDIT_POLICY,
        (AuditPolicy(),),
    ),
)
