"""What of a cluster runs pods inside of it, as far as kubexm itself has laid it there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kubexm.task.context import ClusterContext

_OF_NETWORK: Mapping[str, tuple[str, ...]] = {
    "flannel": ("kube-flannel/daemonset/flannel",),
    "calico": (
        "kube-system/daemonset/calico-node",
        "kube-system/deployment/calico-kube-controllers",
    ),
    # Whether it has more goes by values of the operator.
    "cilium": ("kube-system/daemonset/cilium", "kube-system/deployment/cilium-operator"),
}


def laid(ctx: ClusterContext) -> tuple[str, ...]:
    """All of it, as `NAMESPACE/KIND/NAME`."""
    return (
        "kube-system/deployment/coredns",
        *_of_nodes(ctx),
        *_OF_NETWORK.get(ctx.spec.network.plugin, ()),
        *_of_volumes(ctx),
        *_of_addons(ctx),
    )


def _of_nodes(ctx: ClusterContext) -> Iterator[str]:
    if ctx.spec.kubernetes.kube_proxy.mode != "none":
        yield "kube-system/daemonset/kube-proxy"
    if ctx.spec.dns.node_local.enabled:
        yield "kube-system/daemonset/node-local-dns"


def _of_volumes(ctx: ClusterContext) -> Iterator[str]:
    if ctx.spec.storage.local_path.enabled:
        yield "local-path-storage/deployment/local-path-provisioner"
    if ctx.spec.storage.nfs is not None:
        yield "nfs-storage/deployment/nfs-provisioner"


def _of_addons(ctx: ClusterContext) -> Iterator[str]:
    for addon in ctx.spec.addons:
        if addon.component is not None:
            yield f"kube-system/deployment/{addon.component}"
