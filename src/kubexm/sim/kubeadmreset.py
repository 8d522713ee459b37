"""`kubeadm reset`: a host leaves its cluster, and most of what kubeadm has put there goes."""

from __future__ import annotations

from collections.abc import Sequence

from kubexm.common import layout
from kubexm.sim import apiserver, etcd, etcdmembers, kubepods
from kubexm.sim.etcdmembers import Settings, Unanswered
from kubexm.sim.kubeadminit import is_skipped, require_phases
from kubexm.sim.shell import Shell

_PHASES = dict.fromkeys(("preflight", "remove-etcd-member", "cleanup-node"))
_FILES = ("admin", "super-admin", "kubelet", "bootstrap-kubelet", "controller-manager", "scheduler")


def reset(shell: Shell, skipped: Sequence[str]) -> None:
    """Take a host out of its cluster; its node is left to others."""
    require_phases(skipped, _PHASES)
    if not is_skipped("remove-etcd-member", skipped):
        _leave_etcd(shell)
    if is_skipped("cleanup-node", skipped):
        return
    shell.run(("systemctl", "stop", "kubelet"))
    kubepods.end(shell)
    for directory in (layout.MANIFESTS, layout.KUBELET_DATA, layout.PKI):
        _empty(shell, directory)
    for name in _FILES:
        path = f"{layout.KUBERNETES}/{name}.conf"
        if shell.files.lookup(path) is not None:
            shell.files.remove(path)


def _leave_etcd(shell: Shell) -> None:
    """Take the member of a host out of etcd if the others can be asked, and drop its data."""
    pod = kubepods.find(shell, "etcd") or kubepods.in_directory(shell, layout.MANIFESTS, "etcd")
    if pod is None:
        return
    settings = etcdmembers.of_pod(pod)
    if _can_decide(shell, settings):
        cluster = etcdmembers.cluster_of(shell, settings)
        for member in etcdmembers.members(cluster):
            if member.name == settings.name:
                etcdmembers.remove_member(cluster, member)
    _empty(shell, settings.data)


def _can_decide(shell: Shell, settings: Settings) -> bool:
    """Whether the administrator of the host reaches the API, and etcd has a majority."""
    try:
        apiserver.administrator(shell, layout.ADMIN_CONFIG)
        return not etcd.quorum_obstacle(shell, settings)
    except Unanswered:
        return False


def _empty(shell: Shell, directory: str) -> None:
    if shell.files.lookup(directory) is None:
        return
    for name in shell.files.children(directory):
        shell.files.remove_tree(f"{directory}/{name}")
