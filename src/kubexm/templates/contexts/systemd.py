"""Services of the hosts of a cluster; those of etcd stand with etcd, those of routes with these."""

from __future__ import annotations

import msgspec

from kubexm.common import layout
from kubexm.templates.context import Context, Template

CONTAINERD_UNIT = f"{layout.UNITS}/containerd.service"
KUBELET_UNIT = f"{layout.UNITS}/kubelet.service"
KUBELET_DROPIN = f"{layout.UNITS}/kubelet.service.d/10-kubexm.conf"


class ContainerdUnit(Context, frozen=True, kw_only=True):
    """The service of the container runtime."""

    program: str = f"{layout.BINARIES}/containerd"
    """The program."""
    config: str = layout.CONTAINERD_CONFIG
    """Its settings."""


class KubeletUnit(Context, frozen=True, kw_only=True):
    """The service of the kubelet."""

    program: str = f"{layout.BINARIES}/kubelet"
    """The program."""


class KubeletDropin(Context, frozen=True, kw_only=True):
    """The flags of the kubelet."""

    program: str = f"{layout.BINARIES}/kubelet"
    """The program."""
    config: str = layout.KUBELET_CONFIG
    """Its settings."""
    kubeconfig: str = layout.KUBELET_KUBECONFIG
    """How it reaches the API server; it writes this when it has joined."""
    bootstrap: str = layout.KUBELET_BOOTSTRAP
    """How it reaches the API server to join."""
    kubeadm_flags: str = f"{layout.KUBELET_DATA}/kubeadm-flags.env"
    """The flags that kubeadm writes."""
    node_ips: tuple[str, ...] = ()
    """The addresses of the node, at most one of each family."""
    hostname: str = ""
    """What the node is called; what the host is called if nothing is said."""
    extra_args: dict[str, str] = msgspec.field(default_factory=dict)
    """More flags, without `--`."""


class Mount(msgspec.Struct, frozen=True, kw_only=True):
    """A path of the host in a container."""

    source: str
    """Where it is on the host."""
    target: str
    """Where it is in the container."""
    writable: bool = False
    """Whether the container may write there."""


class ContainedUnit(Context, frozen=True, kw_only=True):
    """The service of a program in a container of its own, on the network of the host."""

    description: str
    """What it is, in a few words."""
    name: str
    """What the container is called."""
    image: str
    """The image; containerd has to have it."""
    arguments: tuple[str, ...] = ()
    """The whole command, with its program; that of the image if it is empty."""
    mounts: tuple[Mount, ...] = ()
    """What it sees of the host."""
    environment: dict[str, str] = msgspec.field(default_factory=dict)
    """Variables."""
    ctr_namespace: str = "kubexm"
    """The namespace of containerd, apart from that of Kubernetes."""
    program: str = f"{layout.BINARIES}/ctr"
    """The program that runs it."""
    socket: str = layout.CONTAINERD_SOCKET
    """Where containerd listens."""


TEMPLATES = (
    Template(
        "systemd/containerd",
        ContainerdUnit,
        "unit",
        "the service of the container runtime",
        CONTAINERD_UNIT,
        (ContainerdUnit(),),
    ),
    Template(
        "systemd/kubelet",
        KubeletUnit,
        "unit",
        "the service of the kubelet",
        KUBELET_UNIT,
        (KubeletUnit(),),
    ),
    Template(
        "kubelet/dropin",
        KubeletDropin,
        "unit",
        "the flags of the kubelet",
        KUBELET_DROPIN,
        (
            KubeletDropin(
                node_ips=("10.0.0.11", "fd00::11"),
                hostname="node1",
                extra_args={"v": "2", "node-labels": "a=b,c=$d"},
            ),
            KubeletDropin(),
        ),
    ),
    Template(
        "systemd/contained",
        ContainedUnit,
        "unit",
        "a program that containerd runs beside Kubernetes",
        f"{layout.UNITS}/kubexm-{{name}}.service",
        (
            ContainedUnit(
                description="Load balancer for the API servers",
                name="haproxy",
                image="docker.io/library/haproxy:3.2",
                arguments=("haproxy", "-f", f"{layout.BALANCER}/haproxy.cfg"),
                mounts=(
                    Mount(
                        source=f"{layout.BALANCER}/haproxy.cfg",
                        target=f"{layout.BALANCER}/haproxy.cfg",
                    ),
                ),
            ),
            ContainedUnit(
                description="Registry of images",
                name="registry",
                image="docker.io/library/registry:3",
                mounts=(
                    Mount(source="/var/lib/registry", target="/var/lib/registry", writable=True),
                ),
                environment={"OTEL_TRACES_EXPORTER": "none"},
            ),
        ),
    ),
)
