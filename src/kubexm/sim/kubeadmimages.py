"""The images that kubeadm takes by itself."""

from __future__ import annotations

from kubexm.sim import containers
from kubexm.sim.kubeadmconfig import Addon, ClusterConfiguration, LocalEtcd
from kubexm.sim.shell import Shell

_UNKNOWN = "default"
"""A tag that stands for the one that is built into kubeadm, where no such image is on the host."""


def of_kubernetes(cluster: ClusterConfiguration, name: str) -> str:
    """The image of a program of Kubernetes."""
    return f"{cluster.image_repository}/{name}:{cluster.kubernetes_version}"


def of_etcd(shell: Shell, cluster: ClusterConfiguration, local: LocalEtcd) -> str:
    """The image of the etcd that kubeadm runs."""
    repository = local.image_repository or cluster.image_repository
    return _tagged(shell, f"{repository}/etcd", local.image_tag)


def of_dns(shell: Shell, cluster: ClusterConfiguration) -> str:
    """The image of CoreDNS, which lies in a folder of its own unless somebody says where."""
    addon: Addon = cluster.dns
    usual = cluster.image_repository
    if usual == "registry.k8s.io":
        usual += "/coredns"
    return _tagged(shell, f"{addon.image_repository or usual}/coredns", addon.image_tag)


def control_plane(shell: Shell, cluster: ClusterConfiguration) -> list[str]:
    """All that a control plane needs."""
    names = ["kube-apiserver", "kube-controller-manager", "kube-scheduler"]
    if not cluster.proxy.disabled:
        names.append("kube-proxy")
    found = [of_kubernetes(cluster, name) for name in names]
    if not cluster.dns.disabled:
        found.append(of_dns(shell, cluster))
    if (local := cluster.local_etcd) is not None:
        found.append(of_etcd(shell, cluster, local))
    return [*found, _tagged(shell, f"{cluster.image_repository}/pause", "")]


def _tagged(shell: Shell, name: str, tag: str) -> str:
    """An image with its tag; which one is built into kubeadm, an image on the host tells."""
    if tag:
        return f"{name}:{tag}"
    there = sorted(image for image in containers.images(shell) if image.startswith(f"{name}:"))
    return there[-1] if there else f"{name}:{_UNKNOWN}"
