"""`kubeadm join`: how a host finds a cluster and becomes a node of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from kubexm.common import layout
from kubexm.sim import (
    apiserver,
    etcd,
    etcdmembers,
    kubeadmcerts,
    kubeadmkubelet,
    kubeadmobjects,
    kubeadmpods,
    kubeadmpreflight,
    kubecerts,
    kubelet,
    kubenodes,
    kubeready,
)
from kubexm.sim.apiserver import Access, Api
from kubexm.sim.etcdmembers import Member, Unanswered
from kubexm.sim.kubeadmcerts import Failed
from kubexm.sim.kubeadmconfig import (
    ApiEndpoint,
    ClusterConfiguration,
    Documents,
    JoinConfiguration,
    JoinControlPlane,
    parsed,
)
from kubexm.sim.kubeadminit import is_skipped, require_phases
from kubexm.sim.kubedocs import Object, documents, part
from kubexm.sim.kubekinds import CONFIG_MAP
from kubexm.sim.kubestore import Ref
from kubexm.sim.shell import Shell

_MET = "kubeadm:met"
"""Who was just becoming a member of etcd when this host began to."""


class Found(msgspec.Struct, frozen=True):
    """A cluster that was found."""

    api: Api
    server: str
    """Where its API servers are reached."""
    cluster: ClusterConfiguration
    kubelet: Object


class Run(msgspec.Struct, frozen=True):
    """One `kubeadm join`."""

    shell: Shell
    settings: JoinConfiguration
    found: Found
    version: str
    ignored: tuple[str, ...] = ()

    @property
    def control_plane(self) -> JoinControlPlane | None:
        """How the host becomes a control plane; None for a worker."""
        return self.settings.control_plane

    @property
    def endpoint(self) -> ApiEndpoint:
        """Where the API server of this host will be."""
        return (self.control_plane or JoinControlPlane()).local_api_endpoint

    @property
    def node(self) -> str:
        """What the host is called as a node."""
        return kubeadmkubelet.node_name(self.shell, self.settings.node_registration)

    @property
    def taints(self) -> list[Object]:
        """Those that the kubelet comes with; a control plane gets its own later."""
        registration = self.settings.node_registration
        return (
            []
            if self.control_plane
            else kubeadmobjects.taints_of(registration, control_plane=False)
        )


def discovered(shell: Shell, settings: JoinConfiguration) -> Found:
    """Find the cluster by its token, and see that it is the one that is meant."""
    by = settings.discovery.bootstrap_token
    first = _asked(shell, f"https://{by.api_server_endpoint}", by.token)
    if why := kubeadmobjects.token_obstacle(first.cluster, by.token):
        raise Failed(f"couldn't validate the identity of the API Server: {why}")
    known = f"sha256:{kubecerts.read(first.authority).hash}"
    if known not in by.ca_cert_hashes and not by.unsafe_skip_ca_verification:
        raise Failed(
            f"cluster CA found in cluster-info ConfigMap is invalid: none of the public keys"
            f" {known} are pinned"
        )
    info = first.cluster.get(Ref(CONFIG_MAP, kubeadmobjects.PUBLIC, "cluster-info"))
    if info is None:
        raise Failed('configmaps "cluster-info" not found')
    (config,) = documents(str(part(info, "data", "kubeconfig")).encode())
    server = apiserver.read(config).server
    api = _asked(shell, server, by.token)
    return Found(api, server, *_stored(api))


def preflight(run: Run) -> None:
    """Refuse a host that can't join."""
    shell = run.shell
    checks = [
        *kubeadmpreflight.absent(shell, layout.KUBELET_KUBECONFIG),
        *kubeadmpreflight.absent(shell, layout.KUBELET_BOOTSTRAP),
        *kubeadmpreflight.of_any(shell, (*shell.around.addresses[:1],), run.version),
    ]
    if run.control_plane is None:
        checks += kubeadmpreflight.absent(shell, run.settings.ca_cert_path)
    else:
        port = run.endpoint.bind_port
        checks += kubeadmpreflight.of_control_plane(shell, run.found.cluster, port)
        checks += kubeadmpreflight.of_images(shell, run.found.cluster)
    kubeadmpreflight.require(checks, run.ignored)
    if run.found.cluster.kubernetes_version != run.version:
        found = run.found.cluster.kubernetes_version
        raise Failed(f"the cluster has version {found}, and this is kubeadm {run.version}")


def prepare(run: Run) -> None:
    """Have certificates, kubeconfigs and pods of a control plane."""
    if run.control_plane is None:
        return
    shell, cluster = run.shell, run.found.cluster
    kubeadmcerts.take(shell, cluster)
    if shell.files.read(f"{cluster.certificates_dir}/ca.crt") != run.found.api.authority:
        raise Failed(f"{cluster.certificates_dir}/ca.crt is not the authority of the cluster")
    own = kubeadmpods.api_url(run.endpoint)
    for name, server, user in (
        ("admin", run.found.server, "kubernetes-admin"),
        ("controller-manager", own, "system:kube-controller-manager"),
        ("scheduler", own, "system:kube-scheduler"),
    ):
        kubeadmcerts.kubeconfig(shell, cluster, name, server, user)
    kubeadmpods.write(shell, cluster, run.endpoint, run.settings.patches.directory)


def check_etcd(run: Run) -> None:
    """Refuse to join an etcd that has no majority."""
    if run.control_plane is not None and run.found.cluster.local_etcd is not None:
        there = run.found.api.shell
        member = etcdmembers.running(there)
        why = etcd.quorum_obstacle(there, member) if member else "no member answers"
        if why:
            raise Failed(f"error execution phase check-etcd: {why}")


def kubelet_start(run: Run) -> None:
    """Start the kubelet with what lets it in."""
    shell, found = run.shell, run.found
    taken = found.api.cluster.get(kubenodes.ref(run.node))
    if taken is not None and not kubeready.obstacle(found.api, run.node):
        raise Failed(f'a Node with name "{run.node}" and status "Ready" already exists')
    server = kubeadmpods.api_url(run.endpoint) if run.control_plane else found.server
    token = run.settings.discovery.bootstrap_token.token
    kubeadmkubelet.bootstrap(shell, server, found.api.authority, token)
    path = run.settings.ca_cert_path
    if shell.files.lookup(path) is None:
        kubeadmcerts.put(shell, path, found.api.authority, 0o644)
    kubeadmkubelet.start(shell, run.settings.node_registration, found.kubelet, run.taints)


def etcd_join(run: Run) -> None:
    """Become a member of etcd, of which there may be one new one at a time."""
    cluster = run.found.cluster
    if run.control_plane is None or cluster.local_etcd is None:
        return
    if (met := run.shell.state.get(_MET)) is not None:
        raise Failed(f"etcdserver: too many learner members in cluster: {met} is not through yet")
    stored = run.found.api.cluster
    known = [one for one in etcdmembers.members(stored) if one.name != run.node]
    etcdmembers.set_member(stored, Member(run.node, kubeadmpods.peer_url(run.endpoint)))
    others = {one.name: one.peer for one in known}
    patches = run.settings.patches.directory
    kubeadmpods.write_etcd(run.shell, cluster, run.endpoint, run.node, others, patches)
    kubeadmkubelet.begin_etcd(run.shell)


def kubelet_wait(run: Run) -> None:
    """Wait for the kubelet to have its own certificate, and its node."""
    kubeadmkubelet.require_healthy(run.shell)
    if run.control_plane is not None:
        kubeadmkubelet.require_control_plane(run.shell)
    kubeadmkubelet.register(run.shell, run.found.api.cluster, run.taints)
    made = kubelet.started(run.shell)
    if made is None or made.node != run.node:
        found = made.node if made else "nothing"
        raise Failed(f'the kubelet registers as "{found}", want "{run.node}"')


def mark(run: Run) -> None:
    """Mark the node of a control plane as one."""
    if run.control_plane is not None:
        api = kubeadmkubelet.reached(run.shell, layout.ADMIN_CONFIG)
        kubeadmobjects.mark(api, run.settings.node_registration, run.node)


Phase = Callable[[Run], None]
PHASES: Mapping[str, Phase] = {
    "preflight": preflight,
    "control-plane-prepare": prepare,
    "check-etcd": check_etcd,
    "kubelet-start": kubelet_start,
    "etcd-join": etcd_join,
    "kubelet-wait-bootstrap": kubelet_wait,
    "control-plane-join": mark,
}
"""In the order in which they run."""


def begins(shell: Shell, read: Documents) -> None:
    """Announce a member of etcd that is to come; of two at once, the second finds the first."""
    settings = read.own.get("JoinConfiguration")
    if not isinstance(settings, JoinConfiguration) or settings.control_plane is None:
        return
    found = discovered(shell, settings)
    if found.cluster.local_etcd is None:
        return
    name, stored = kubeadmkubelet.node_name(shell, settings.node_registration), found.api.cluster
    known = etcdmembers.members(stored)
    learner = next((one.name for one in known if one.learner and one.name != name), "")
    if learner:
        shell.state.set(_MET, learner)
    elif all(one.name != name for one in known):
        peer = kubeadmpods.peer_url(settings.control_plane.local_api_endpoint)
        etcdmembers.set_member(stored, Member(name, peer, learner=True))


def join(
    shell: Shell, read: Documents, version: str, ignored: Sequence[str], skipped: Sequence[str]
) -> None:
    """Add a host to a cluster."""
    require_phases(skipped, {**PHASES, "wait-control-plane": None})
    settings = read.own.get("JoinConfiguration")
    if not isinstance(settings, JoinConfiguration):
        raise Failed("no JoinConfiguration found in the config file")
    every = (*ignored, *settings.node_registration.ignore_preflight_errors)
    run = Run(shell, settings, discovered(shell, settings), version, every)
    try:
        for name, phase in PHASES.items():
            if not is_skipped(name, skipped):
                phase(run)
    finally:
        _end(run)


def _end(run: Run) -> None:
    """Withdraw what was announced and did not come."""
    if run.shell.state.get(_MET) is not None:
        run.shell.state.set(_MET, None)
    stored = run.found.api.cluster
    for one in etcdmembers.members(stored):
        if one.name == run.node and one.learner:
            etcdmembers.remove_member(stored, one)


def _asked(shell: Shell, server: str, token: str) -> Api:
    """The API server at a place, whoever its authority is."""
    try:
        return apiserver.anyone(shell, Access(server, token=token))
    except Unanswered as error:
        raise Failed(f"couldn't validate the identity of the API Server: {error}") from None


def _stored(api: Api) -> tuple[ClusterConfiguration, Object]:
    """The settings of the cluster and of its kubelets, as they were stored."""
    found = kubenodes.settings(api.cluster)
    if not found:
        raise Failed('configmaps "kubeadm-config" not found')
    kubelets = api.cluster.get(Ref(CONFIG_MAP, kubeadmobjects.SYSTEM, "kubelet-config"))
    (settings,) = documents(str(part(kubelets, "data", "kubelet") or "{}").encode())
    return parsed([found]).the(ClusterConfiguration), settings
