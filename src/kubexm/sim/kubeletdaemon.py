"""The program behind kubelet.service: the ports and addresses that come with its static pods."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kubexm.sim import apiserver, etcdmembers, kubelet, kubepods
from kubexm.sim.daemons import Condition, Daemon, Start
from kubexm.sim.etcdmembers import Unanswered
from kubexm.sim.kubepods import StaticPod
from kubexm.sim.shell import Shell
from kubexm.sim.state import Socket

ADMINS = "admins"
"""Noted of a cluster once its administrators have rights."""
_HERE = "127.0.0.1"
_OWN_PORTS = {"kube-controller-manager": 10257, "kube-scheduler": 10259}
_OF_THE_CLUSTER = "super-admin.conf"


class Kubelet(Daemon):
    """The kubelet: it always starts, and ends again as long as something is missing."""

    def starts(self, start: Start) -> Sequence[Socket]:
        override = start.option("--hostname-override")
        started = kubelet.Started(
            config=start.option("--config"),
            settings=kubelet.written(start.shell, start.option("--config")),
            kubeconfig=start.option("--kubeconfig"),
            bootstrap=start.option("--bootstrap-kubeconfig"),
            node=kubelet.node_name(start.shell, override),
            version=start.version,
        )
        kubelet.remember(start.shell, started)
        return ()

    def stops(self, shell: Shell, unit: str) -> None:
        kubelet.remember(shell, None)

    def condition(self, shell: Shell) -> Condition:
        if kubelet.obstacle(shell):
            return "activating"
        kubepods.announce(shell)
        return "active"

    def says(self, shell: Shell) -> str:
        return kubelet.obstacle(shell) or "\n".join(_complaints(shell))

    def sockets(self, shell: Shell) -> Sequence[Socket]:
        if kubelet.obstacle(shell):
            return ()
        healthz = int(kubelet.configuration(shell).get("healthzPort", 10248))
        found = [Socket(10250), Socket(healthz, _HERE)]
        kubepods.announce(shell)
        for pod in kubepods.every(shell):
            if not kubepods.obstacle(shell, pod):
                found += _opened(shell, pod)
        return found

    def addresses(self, shell: Shell) -> Mapping[str, int]:
        """The virtual address, if kube-vip runs here and its API server lets it."""
        return {address: 1 for address in _virtual(shell) if _is_let(shell)}


def _complaints(shell: Shell) -> Iterator[str]:
    """A line for each static pod that does not run, or for that there can be none."""
    directory = kubelet.configuration(shell).get("staticPodPath")
    if directory and shell.files.lookup(directory) is None:
        said = (
            f'"Unable to read config path" err="path does not exist, ignoring" path="{directory}"'
        )
        yield f"E0101 00:00:00.000000    4242 file_linux.go:61] {said}"
    for pod in kubepods.every(shell):
        if why := kubepods.obstacle(shell, pod):
            said = f'"Error syncing pod, skipping" err="{why}" pod="kube-system/{pod.name}"'
            yield f"E0101 00:00:00.000000    4242 pod_workers.go:1338] {said}"


def _opened(shell: Shell, pod: StaticPod) -> tuple[Socket, ...]:
    return shell.state.follows(f"sockets:{pod.name}", lambda: tuple(_sockets(pod)))


def _sockets(pod: StaticPod) -> Iterator[Socket]:
    if pod.name == apiserver.POD:
        yield Socket(int(pod.flag("secure-port") or 6443))
    elif pod.name in _OWN_PORTS:
        yield Socket(_OWN_PORTS[pod.name], _HERE)
    elif pod.name == "etcd":
        yield from etcdmembers.of_pod(pod).sockets()


def _virtual(shell: Shell) -> Iterator[str]:
    for pod in kubepods.every(shell):
        if kubepods.virtual_addresses(pod) and not kubepods.obstacle(shell, pod):
            yield from kubepods.virtual_addresses(pod)


def _is_let(shell: Shell) -> bool:
    """Whether kube-vip may hold the election: before there are administrators, only one may."""
    try:
        cluster = apiserver.serving(shell).cluster
    except Unanswered:
        return False
    if cluster.note(ADMINS):
        return True
    pods = (pod for pod in kubepods.every(shell) if kubepods.virtual_addresses(pod))
    return any(path.endswith(_OF_THE_CLUSTER) for pod in pods for path in pod.volumes)


DAEMON = Kubelet()
