"""`kubeadm init`: how a cluster begins, phase by phase."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from kubexm.common import layout
from kubexm.sim import (
    kubeadmcerts,
    kubeadmkubelet,
    kubeadmobjects,
    kubeadmpods,
    kubeadmpreflight,
)
from kubexm.sim.apiserver import Api
from kubexm.sim.kubeadmcerts import Failed
from kubexm.sim.kubeadmconfig import (
    BootstrapToken,
    ClusterConfiguration,
    Documents,
    InitConfiguration,
)
from kubexm.sim.kubeletdaemon import ADMINS
from kubexm.sim.shell import Shell

ADMIN = layout.ADMIN_CONFIG


class Run(msgspec.Struct, frozen=True):
    """One `kubeadm init`, or one phase of it."""

    shell: Shell
    documents: Documents
    version: str
    """Of kubeadm."""
    ignored: tuple[str, ...] = ()

    @property
    def cluster(self) -> ClusterConfiguration:
        """What all control planes have in common."""
        return self.documents.the(ClusterConfiguration)

    @property
    def settings(self) -> InitConfiguration:
        """How the cluster begins with this host."""
        return self.documents.the(InitConfiguration)

    @property
    def own_url(self) -> str:
        """Where the API server of this host is."""
        return kubeadmpods.api_url(self.settings.local_api_endpoint)

    @property
    def shared_url(self) -> str:
        """Where the API servers are reached."""
        endpoint = self.cluster.control_plane_endpoint
        if endpoint and ":" not in endpoint.rpartition("]")[2]:
            endpoint += f":{self.settings.local_api_endpoint.bind_port}"
        return f"https://{endpoint}" if endpoint else self.own_url

    @property
    def api(self) -> Api:
        """The API server that the administrator reaches."""
        return kubeadmkubelet.reached(self.shell, ADMIN)


def preflight(run: Run) -> None:
    """Refuse a host on which a cluster can't begin."""
    cluster, shell = run.cluster, run.shell
    if cluster.kubernetes_version != run.version:
        found = cluster.kubernetes_version
        raise Failed(f"kubernetesVersion is {found!r}, and this is kubeadm {run.version}")
    networks = (
        *cluster.networking.service_subnet.split(","),
        *cluster.networking.pod_subnet.split(","),
    )
    port = run.settings.local_api_endpoint.bind_port
    kubeadmpreflight.require(
        (
            *kubeadmpreflight.of_control_plane(shell, cluster, port),
            *kubeadmpreflight.of_any(shell, networks, run.version),
            *kubeadmpreflight.of_external_etcd(shell, cluster),
        ),
        run.ignored,
    )
    kubeadmpreflight.require(kubeadmpreflight.of_images(shell, cluster), run.ignored)


def certs(run: Run) -> None:
    """Have the certificates of a control plane."""
    kubeadmcerts.make(run.shell, run.cluster)


def kubeconfig(run: Run) -> None:
    """Have what programs and administrators reach the API server with."""
    node = kubeadmkubelet.node_name(run.shell, run.settings.node_registration)
    for name, server, user in (
        ("admin", run.shared_url, "kubernetes-admin"),
        ("super-admin", run.shared_url, "kubernetes-super-admin"),
        ("kubelet", run.own_url, f"system:node:{node}"),
        ("controller-manager", run.own_url, "system:kube-controller-manager"),
        ("scheduler", run.own_url, "system:kube-scheduler"),
    ):
        kubeadmcerts.kubeconfig(run.shell, run.cluster, name, server, user)


def etcd(run: Run) -> None:
    """Write the pod of the first member of etcd, unless another etcd is there."""
    if run.cluster.local_etcd is not None:
        node = kubeadmkubelet.node_name(run.shell, run.settings.node_registration)
        endpoint = run.settings.local_api_endpoint
        patches = run.settings.patches.directory
        kubeadmpods.write_etcd(run.shell, run.cluster, endpoint, node, {}, patches)


def control_plane(run: Run) -> None:
    """Write the pods of the control plane."""
    _pods(run, "apiserver", "controller-manager", "scheduler")


def kubelet_start(run: Run) -> None:
    """Start the kubelet."""
    settings = run.documents.others.get("KubeletConfiguration", {})
    kubeadmkubelet.start(run.shell, run.settings.node_registration, settings, [])


def wait_control_plane(run: Run) -> None:
    """Wait for what the kubelet runs; nothing in a world takes time."""
    kubeadmkubelet.require_healthy(run.shell)
    if run.cluster.local_etcd is not None:
        kubeadmkubelet.begin_etcd(run.shell)
    api = kubeadmkubelet.require_control_plane(run.shell)
    kubeadmobjects.begin(api.cluster)


def upload_config(run: Run) -> None:
    """Store settings in the cluster; by now its endpoint has to lead to it."""
    api = run.api
    api.cluster.set_note(ADMINS, "kubeadm:cluster-admins")
    kubeadmobjects.upload(api, run.documents, run.shared_url)
    kubeadmkubelet.register(run.shell, api.cluster, [])


def mark_control_plane(run: Run) -> None:
    """Mark the node as a control plane."""
    node = kubeadmkubelet.node_name(run.shell, run.settings.node_registration)
    kubeadmobjects.mark(run.api, run.settings.node_registration, node)


def bootstrap_token(run: Run) -> None:
    """Make the tokens that were asked for."""
    api = run.api
    for one in run.settings.bootstrap_tokens or (BootstrapToken(),):
        lifetime = kubeadmobjects.seconds(one.ttl or "24h0m0s")
        kubeadmobjects.new_token(api.cluster, lifetime, one.token)


def addon_coredns(run: Run) -> None:
    """Add CoreDNS, unless somebody else does."""
    if not run.cluster.dns.disabled:
        kubeadmobjects.add_dns(run.api, run.documents)


def addon_proxy(run: Run) -> None:
    """Add kube-proxy, unless something takes its place."""
    if not run.cluster.proxy.disabled:
        kubeadmobjects.add_proxy(run.api, run.documents)


def addon(run: Run) -> None:
    """Add both."""
    addon_coredns(run)
    addon_proxy(run)


def _nothing(_run: Run) -> None:
    """What leaves no trace."""


def _pods(run: Run, *names: str) -> None:
    settings = run.settings
    kubeadmpods.write(
        run.shell, run.cluster, settings.local_api_endpoint, settings.patches.directory, names
    )


Phase = Callable[[Run], None]
PHASES: Mapping[str, Phase] = {
    "preflight": preflight,
    "certs": certs,
    "kubeconfig": kubeconfig,
    "etcd": etcd,
    "control-plane": control_plane,
    "kubelet-start": kubelet_start,
    "wait-control-plane": wait_control_plane,
    "upload-config": upload_config,
    "upload-certs": _nothing,
    "mark-control-plane": mark_control_plane,
    "bootstrap-token": bootstrap_token,
    "kubelet-finalize": _nothing,
    "addon/coredns": addon_coredns,
    "addon/kube-proxy": addon_proxy,
    "show-join-command": _nothing,
}
"""In the order in which they run."""
SINGLE: Mapping[str, Phase] = {
    **PHASES,
    "addon/all": addon,
    "certs/all": certs,
    "control-plane/all": control_plane,
    "control-plane/apiserver": lambda run: _pods(run, "apiserver"),
    "control-plane/controller-manager": lambda run: _pods(run, "controller-manager"),
    "control-plane/scheduler": lambda run: _pods(run, "scheduler"),
    "etcd/local": etcd,
    "kubeconfig/all": kubeconfig,
    "upload-config/all": upload_config,
    "upload-config/kubeadm": upload_config,
    "upload-config/kubelet": upload_config,
}
"""Those that `kubeadm init phase` runs one at a time."""


def init(run: Run, skipped: Sequence[str]) -> None:
    """Begin a cluster."""
    require_phases(skipped, PHASES)
    for name, phase in PHASES.items():
        if not is_skipped(name, skipped):
            phase(run)


def require_phases(skipped: Sequence[str], known: Mapping[str, object]) -> None:
    """Raise for the name of a phase that there is not."""
    for name in skipped:
        if not any(one == name or one.startswith(f"{name}/") for one in known):
            raise Failed(f"invalid phase name: {name}")


def is_skipped(name: str, skipped: Sequence[str]) -> bool:
    """Whether a phase, or the one that it is a part of, is left out."""
    return name in skipped or name.partition("/")[0] in skipped
