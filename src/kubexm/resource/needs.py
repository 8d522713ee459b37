"""What a cluster needs, as far as it decides what has to be fetched for it."""

from __future__ import annotations

from typing import Literal

import msgspec

from kubexm.resource.catalog import ChartRelease
from kubexm.resource.entries import Arch, Family

Etcd = Literal["stacked", "systemd", "external"]
Network = Literal["flannel", "calico", "cilium", "routed", "none"]
Endpoint = Literal["single", "external", "keepalived-haproxy", "haproxy", "nginx", "kube-vip"]
Proxy = Literal["iptables", "nftables", "ipvs", "none"]
Storage = Literal["local-path", "nfs"]
Tool = Literal["crictl", "helm"]


class NamedImage(msgspec.Struct, frozen=True, kw_only=True):
    """An image that kube nodes need by the name that somebody calls it by."""

    name: str
    reason: str
    architectures: tuple[str, ...] = ()
    """Those that it is run on, as far as that is said; else those of all hosts."""


class Needs(msgspec.Struct, frozen=True, kw_only=True):
    """One cluster, or one part of a fleet; several can be met by one bill of materials."""

    kubernetes: str
    architectures: tuple[Arch, ...] = ("amd64",)
    etcd: Etcd = "stacked"
    runtime: Literal["containerd"] = "containerd"
    network: Network = "calico"
    endpoint: Endpoint = "single"
    balancer: Literal["image", "package"] = "image"
    """How haproxy or nginx comes to every kube node; load-balancer hosts take packages."""
    proxy: Proxy = "iptables"
    nodelocal_dns: bool = False
    storage: tuple[Storage, ...] = ()
    tools: tuple[Tool, ...] = ("crictl",)
    addons: tuple[str, ...] = ()
    """Further components of the catalog."""
    charts: tuple[ChartRelease, ...] = ()
    extra_images: tuple[str, ...] = ()
    named_images: tuple[NamedImage, ...] = ()
    """What objects of add-ons run, which call it so whatever registry we have."""
    families: tuple[Family, ...] = ()
    """What installs packages on the hosts; none if they have them already."""
    keeps_time: bool = False
    """Whether hosts get a service that keeps their clock."""
    logins: bool = False
    """Whether hosts pull from registries that ask who we are."""
    registry: str | None = None
    """A private registry, with its folder if there is one."""
    own_registry: bool = False
    """Whether the private registry is set up with the cluster."""
    image_repository: str | None = None
    """Where the images that kubeadm runs come from, if not from their projects."""
    versions: dict[str, str] = {}
    """Versions of components other than Kubernetes that are not to be the default."""
