"""Simulated API servers: which hosts have one that answers, and who gets through to it."""

from __future__ import annotations

from base64 import b64decode
from binascii import Error
from urllib.parse import urlsplit

import msgspec

from kubexm.sim import etcd, kubecerts, kubepods
from kubexm.sim.etcdmembers import Unanswered
from kubexm.sim.kubedocs import Object, Unreadable, document, entries, part, section
from kubexm.sim.kubestore import Cluster
from kubexm.sim.shell import Shell

POD = "kube-apiserver"


class Access(msgspec.Struct, frozen=True):
    """Who calls which cluster, as a kubeconfig says it."""

    server: str
    authority: bytes = b""
    certificate: bytes = b""
    token: str = ""

    @property
    def host(self) -> str:
        """Where the server is, without its port."""
        return urlsplit(self.server).hostname or ""

    @property
    def port(self) -> int:
        """The port of the server."""
        return urlsplit(self.server).port or 443


class Api(msgspec.Struct, frozen=True):
    """An API server that answers."""

    shell: Shell
    """Of its host."""
    cluster: Cluster
    authority: bytes
    """What it knows its callers by, and they it."""


def serving(shell: Shell) -> Api:
    """The API server of a host; `Unanswered` if it does not answer."""
    pod = kubepods.find(shell, POD)
    if pod is None:
        raise Unanswered(f"{shell.around.name} runs no API server")
    if why := kubepods.obstacle(shell, pod):
        raise Unanswered(f"the API server of {shell.around.name} does not run: {why}")
    authority, own = (
        shell.files.read(pod.place(pod.flag(flag))) for flag in ("client-ca-file", "tls-cert-file")
    )
    if not kubecerts.read(own).is_by(kubecerts.read(authority)):
        raise Unanswered(f"the API server of {shell.around.name} has a certificate by another CA")
    return Api(shell, _stored(shell, pod), authority)


def access(shell: Shell, path: str) -> Access:
    """What a kubeconfig of a host says; `Unanswered` if it can't be used."""
    if shell.files.lookup(shell.files.resolve(path)) is None:
        raise Unanswered(f'error loading config file "{path}": no such file or directory')
    try:
        return read(document(shell.files.read(path)))
    except (Unreadable, Error) as error:
        raise Unanswered(f'error loading config file "{path}": {error}') from None


def read(config: Object) -> Access:
    """What a kubeconfig says."""
    context = _named(config, "contexts", str(config.get("current-context") or ""))
    cluster = _named(config, "clusters", str(part(context, "context", "cluster") or ""))
    user = _named(config, "users", str(part(context, "context", "user") or ""))
    server = part(cluster, "cluster", "server")
    if not server:
        raise Unreadable("it names no server")
    authority, certificate = (
        b64decode(part(entry, *path) or "")
        for entry, path in (
            (cluster, ("cluster", "certificate-authority-data")),
            (user, ("user", "client-certificate-data")),
        )
    )
    return Access(server, authority, certificate, str(part(user, "user", "token") or ""))


def connected(shell: Shell, access: Access) -> Api:
    """The API server that a client on a host gets through to."""
    found = anyone(shell, access)
    _require_trust(found, access)
    return found


def anyone(shell: Shell, access: Access) -> Api:
    """The same, whoever it says it is: one that does not answer is passed over for the next."""
    if not shell.around.resolved(access.host):
        raise Unanswered(
            f"Unable to connect to the server: dial tcp: lookup {access.host}: no such host"
        )
    for host in shell.around.reached(access.host, access.port):
        there = shell.around.shell_of(host)
        if there is not None and (found := _answering(there)) is not None:
            return found
    raise Unanswered(
        f"The connection to the server {access.host}:{access.port} was refused"
        " - did you specify the right host or port?"
    )


def administrator(shell: Shell, path: str) -> Api:
    """The API server that a kubeconfig of a host leads to."""
    return connected(shell, access(shell, path))


def _answering(shell: Shell) -> Api | None:
    try:
        return serving(shell)
    except Unanswered:
        return None


def _require_trust(api: Api, access: Access) -> None:
    pod = kubepods.find(api.shell, POD)
    assert pod is not None, "it answers"
    if access.authority != api.authority:
        said = "x509: certificate signed by unknown authority"
        raise Unanswered(f"Unable to connect to the server: tls: {said}")
    own = kubecerts.read(api.shell.files.read(pod.place(pod.flag("tls-cert-file"))))
    if not own.is_for(access.host):
        said = f"x509: certificate is not valid for {access.host}"
        raise Unanswered(f"Unable to connect to the server: tls: {said}")
    if not access.certificate and not access.token:
        raise Unanswered("error: You must be logged in to the server (Unauthorized)")
    if access.certificate:
        caller = kubecerts.read(access.certificate)
        if not caller.is_by(kubecerts.read(api.authority)):
            raise Unanswered("error: You must be logged in to the server (Unauthorized)")


def _stored(shell: Shell, pod: kubepods.StaticPod) -> Cluster:
    """What the etcd of an API server stores."""
    paths = [pod.place(pod.flag(f"etcd-{flag}")) for flag in ("cafile", "certfile", "keyfile")]
    reasons = []
    for url in pod.flag("etcd-servers").split(","):
        try:
            return etcd.asked(shell, url, *paths)
        except Unanswered as error:
            reasons.append(f"{url}: {error}")
    raise Unanswered(f"the API server has no etcd: {'; '.join(reasons)}")


def _named(config: Object, kind: str, name: str) -> Object:
    for entry in entries(config, kind):
        if part(entry, "name") == name:
            return section({"": entry}, "")
    raise Unreadable(f'{kind.removesuffix("s")} "{name}" does not exist')
