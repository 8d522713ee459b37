"""What kubeadm does about the kubelet: files for it, its start, and the node that it makes."""

from __future__ import annotations

import json

from kubexm.common import layout
from kubexm.sim import apiserver, etcd, etcdmembers, kubelet, kubenodes, kubepods
from kubexm.sim.apiserver import Api
from kubexm.sim.daemons import Ended
from kubexm.sim.etcdmembers import Unanswered
from kubexm.sim.kubeadmcerts import Failed, document, put
from kubexm.sim.kubeadmconfig import Registration
from kubexm.sim.kubedocs import Object, text
from kubexm.sim.kubestore import Cluster
from kubexm.sim.shell import Shell

_SETTINGS = f"{layout.KUBELET_DATA}/config.yaml"
_FLAGS = f"{layout.KUBELET_DATA}/kubeadm-flags.env"
_CERTIFICATE = f"{layout.KUBELET_DATA}/pki/kubelet-client-current.pem"


def start(shell: Shell, registration: Registration, settings: Object, taints: list[Object]) -> None:
    """Write what kubeadm writes for a kubelet, and have systemd start it anew."""
    shell.run(("systemctl", "stop", "kubelet"))
    put(shell, _SETTINGS, text(settings).encode(), 0o644)
    flags = [f"--{arg.name}={arg.value}" for arg in registration.kubelet_extra_args]
    name = node_name(shell, registration)
    if name != kubelet.node_name(shell):
        flags.append(f"--hostname-override={name}")
    if taints:
        listed = (f"{one['key']}={one.get('value', '')}:{one['effect']}" for one in taints)
        flags.append(f"--register-with-taints={','.join(listed)}")
    line = f"KUBELET_KUBEADM_ARGS={json.dumps(' '.join(flags))}\n"
    put(shell, _FLAGS, line.encode(), 0o644)
    shell.run(("systemctl", "daemon-reload"))
    # What it has to say to a failure is that the kubelet is not healthy, later.
    shell.run(("systemctl", "restart", "kubelet"))


def node_name(shell: Shell, registration: Registration) -> str:
    """The name that a host has as a node."""
    return kubelet.node_name(shell, registration.name)


def require_healthy(shell: Shell) -> None:
    """Wait for the kubelet; one that has come up has made the places of logs and drivers."""
    if why := kubelet.obstacle(shell):
        raise Failed(f"failed while waiting for the kubelet to start: {why}")
    for path in (*layout.POD_LOGS, f"{layout.KUBELET_PLUGINS}/kubelet-plugins/volume/exec"):
        shell.files.make_directory(path, parents=True)
    kubepods.announce(shell)


def begin_etcd(shell: Shell) -> None:
    """Have the kubelet start the member of etcd of a host."""
    pod = kubepods.find(shell, "etcd")
    if pod is None:
        raise Failed(f"there is no pod of etcd in {layout.MANIFESTS}")
    if why := kubepods.obstacle(shell, pod):
        raise Failed(f"etcd does not run: {why}")
    try:
        etcd.begin(shell, etcdmembers.of_pod(pod))
    except Ended as error:
        raise Failed(f"etcd does not run: {error}") from None


def require_control_plane(shell: Shell) -> Api:
    """Wait for the programs of a control plane."""
    try:
        api = apiserver.serving(shell)
    except Unanswered as error:
        raise Failed(f"[wait-control-plane] kube-apiserver is not healthy: {error}") from None
    for name in ("kube-controller-manager", "kube-scheduler"):
        pod = kubepods.find(shell, name)
        why = kubepods.obstacle(shell, pod) if pod else "there is no file of its pod"
        if why:
            raise Failed(f"[wait-control-plane] {name} is not healthy: {why}")
    for pod in kubepods.every(shell):
        if not kubepods.obstacle(shell, pod):
            kubepods.leave_traces(shell, pod)
    return api


def reached(shell: Shell, path: str) -> Api:
    """The API server that a kubeconfig leads to."""
    try:
        return apiserver.administrator(shell, path)
    except Unanswered as error:
        raise Failed(f"{path}: {error}") from None


def bootstrap(shell: Shell, server: str, authority: bytes, token: str) -> None:
    """Write what a kubelet first calls the API server with."""
    said = document(server, authority, "tls-bootstrap-token-user", token)
    put(shell, layout.KUBELET_BOOTSTRAP, said.encode(), 0o600)


def register(shell: Shell, cluster: Cluster, taints: list[Object]) -> None:
    """Have the kubelet ask for its certificate with what it was given, and make its node."""
    name = kubelet.started(shell)
    if shell.files.lookup(layout.KUBELET_KUBECONFIG) is None:
        given = apiserver.access(shell, layout.KUBELET_BOOTSTRAP)
        user = f"system:node:{name.node if name else ''}"
        said = document(given.server, given.authority, user)
        put(shell, layout.KUBELET_KUBECONFIG, said.encode(), 0o600)
    put(shell, _CERTIFICATE, b"certificate of the kubelet\n", 0o600)
    reached(shell, layout.KUBELET_KUBECONFIG)
    kubenodes.register(shell, cluster, taints)
    if shell.files.lookup(layout.KUBELET_BOOTSTRAP) is not None:
        shell.files.remove(layout.KUBELET_BOOTSTRAP)
