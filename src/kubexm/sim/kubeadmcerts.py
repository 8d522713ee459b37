"""What kubeadm does about certificates: it takes those that are there, and makes what is missing.

An authority that it makes is a text of its own, so that one which is not the cluster's is noticed
wherever certificates are compared.
"""

from __future__ import annotations

from base64 import b64encode
from posixpath import dirname

from kubexm.common import layout
from kubexm.sim import apiserver, kubecerts
from kubexm.sim.etcdmembers import Unanswered
from kubexm.sim.kubeadmconfig import ClusterConfiguration
from kubexm.sim.kubedocs import text
from kubexm.sim.shell import Shell

_PUBLIC, _SECRET = 0o644, 0o600
_AUTHORITIES = ("ca", "front-proxy-ca", "etcd/ca")
_LEAVES = {
    "apiserver": "ca",
    "apiserver-kubelet-client": "ca",
    "front-proxy-client": "front-proxy-ca",
    "etcd/server": "etcd/ca",
    "etcd/peer": "etcd/ca",
    "etcd/healthcheck-client": "etcd/ca",
    "apiserver-etcd-client": "etcd/ca",
}
"""Certificates, and who issues them."""


class Failed(Exception):
    """What kubeadm ends with, in its own words."""


def make(shell: Shell, cluster: ClusterConfiguration) -> None:
    """Have all certificates of a control plane; authorities too."""
    for name in _wanted(cluster, _AUTHORITIES):
        if not _has(shell, cluster, f"{name}.crt"):
            made = kubecerts.made_up(f"{name}, made by kubeadm on {shell.around.name}")
            _write(shell, cluster, name, made)
    _issue(shell, cluster)
    if not _has(shell, cluster, "sa.key"):
        put(shell, f"{cluster.certificates_dir}/sa.key", b"key by kubeadm\n", _SECRET)
    if not _has(shell, cluster, "sa.pub"):
        put(shell, f"{cluster.certificates_dir}/sa.pub", b"key by kubeadm\n", _PUBLIC)


def take(shell: Shell, cluster: ClusterConfiguration) -> None:
    """The same on a host that joins: authorities and the key of service accounts are there."""
    names = [f"{name}{end}" for name in _wanted(cluster, _AUTHORITIES) for end in (".crt", ".key")]
    missing = [name for name in (*names, "sa.key", "sa.pub") if not _has(shell, cluster, name)]
    if missing:
        raise Failed(
            "one or more conditions for hosting a new control plane instance is not satisfied:"
            f" failure loading {', '.join(missing)} in {cluster.certificates_dir}"
        )
    _issue(shell, cluster)


def kubeconfig(
    shell: Shell, cluster: ClusterConfiguration, name: str, server: str, user: str
) -> None:
    """Have a kubeconfig; one that is there has to be by the same authority."""
    path = f"{layout.KUBERNETES}/{name}.conf"
    authority = shell.files.read(f"{cluster.certificates_dir}/ca.crt")
    if shell.files.lookup(path) is None:
        if not _has(shell, cluster, "ca.key"):
            raise Failed(f"failed to write {path}: couldn't load the key of the authority")
        put(shell, path, document(server, authority, user).encode(), _SECRET)
        return
    try:
        if apiserver.access(shell, path).authority != authority:
            raise Failed(f"a kubeconfig file {path!r} exists already but has got the wrong CA cert")
    except Unanswered as error:
        raise Failed(str(error)) from None


def document(server: str, authority: bytes, user: str, token: str = "") -> str:
    """A kubeconfig; its certificate is one that nothing can be told of."""
    secret = (
        {"token": token}
        if token
        else {
            "client-certificate-data": b64encode(kubecerts.made_up(user)).decode(),
            "client-key-data": b64encode(b"key by kubeadm\n").decode(),
        }
    )
    data = b64encode(authority).decode()
    return text(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {"name": "c", "cluster": {"certificate-authority-data": data, "server": server}}
            ],
            "contexts": [{"name": f"{user}@c", "context": {"cluster": "c", "user": user}}],
            "current-context": f"{user}@c",
            "users": [{"name": user, "user": secret}],
        }
    )


def put(shell: Shell, path: str, data: bytes, mode: int) -> None:
    """Write a file, with the directories above it."""
    shell.files.make_directory(dirname(path), parents=True)
    shell.files.write(path, data, mode=mode)


def _wanted(cluster: ClusterConfiguration, names: tuple[str, ...]) -> list[str]:
    """Those of etcd only where kubeadm runs it."""
    local = cluster.local_etcd is not None
    return [name for name in names if local or "etcd" not in name]


def _issue(shell: Shell, cluster: ClusterConfiguration) -> None:
    for name in _wanted(cluster, tuple(_LEAVES)):
        authority = _LEAVES[name]
        if not (_has(shell, cluster, f"{name}.crt") and _has(shell, cluster, f"{name}.key")):
            if not _has(shell, cluster, f"{authority}.key"):
                raise Failed(f'failed to write certificate "{name}": there is no {authority}.key')
            _write(shell, cluster, name, kubecerts.made_up(f"{name} of {shell.around.name}"))
        own, issuer = (
            kubecerts.read(shell.files.read(f"{cluster.certificates_dir}/{one}.crt"))
            for one in (name, authority)
        )
        if not own.is_by(issuer):
            raise Failed(f"certificate {name} is not signed by CA certificate {authority}")


def _has(shell: Shell, cluster: ClusterConfiguration, name: str) -> bool:
    return shell.files.lookup(f"{cluster.certificates_dir}/{name}") is not None


def _write(shell: Shell, cluster: ClusterConfiguration, name: str, certificate: bytes) -> None:
    place = f"{cluster.certificates_dir}/{name}"
    put(shell, f"{place}.crt", certificate, _PUBLIC)
    put(shell, f"{place}.key", b"key by kubeadm\n", _SECRET)
