"""How hosts of a cluster tell of its health: the API, etcd, nodes, pods, names, certificates.

Each look asks one host and changes nothing.
"""

from __future__ import annotations

import secrets
import struct
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Literal

import msgspec

from kubexm.common import layout
from kubexm.errors import KubexmError
from kubexm.pki import reading
from kubexm.runner import files, kubectl, workloads
from kubexm.runner.host import Host
from kubexm.templates import formats

Grade = Literal["well", "warning", "ill"]
SOON_DAYS = 30
"""A certificate that expires within so many days is told of."""
_SYSTEM = ("kube-system", "kube-flannel", "local-path-storage", "nfs-storage")
_ETCD_CLIENT = f"{layout.ETCD_PKI}/healthcheck-client"
_NETWORKS = "/run/netns"
_SECONDS = "5"
_ASK = 'exec 3<>"/dev/tcp/$0/53"; cat >&3; head -c 14 <&3 | od -An -tx1'
"""A question by TCP, and the head of its answer; bash can do that, and is everywhere."""
_ANSWERED = 14
_NAME = "kubernetes.default.svc"
_CERTIFICATES = (
    *(f"{layout.PKI}/{name}.crt" for name in ("ca", "front-proxy-ca", "etcd/ca")),
    *(f"{layout.PKI}/{name}.crt" for name in ("apiserver", "apiserver-kubelet-client")),
    *(f"{layout.PKI}/{name}.crt" for name in ("apiserver-etcd-client", "front-proxy-client")),
    *(f"{layout.ETCD_PKI}/{name}.crt" for name in ("server", "peer", "healthcheck-client")),
    f"{layout.KUBELET_DATA}/pki/kubelet-client-current.pem",
)


class Told(msgspec.Struct, frozen=True):
    """What was found in one place."""

    check: str
    where: str
    grade: Grade
    what: str
    hint: str = ""


async def api(host: Host, server: str) -> Told:
    """Whether the API server of a host is ready for everybody."""
    words = ("get", "--raw", "/readyz", "--server", server, "--request-timeout", f"{_SECONDS}s")
    answer = await host.ask(*kubectl.as_administrator(*words))
    if answer.ok and answer.text.strip() == "ok":
        return Told("api", host.name, "well", f"{server} is ready")
    said = answer.error_text.strip() or answer.text.strip()
    hint = "look at it on the host: `crictl ps -a`, `journalctl -u kubelet`"
    return Told("api", host.name, "ill", f"{server}: {_last_line(said)}", hint)


async def etcd(host: Host) -> Told:
    """Whether the member of etcd of a host answers, and can write."""
    words = (
        f"{layout.BINARIES}/etcdctl",
        *("--endpoints", "https://127.0.0.1:2379", "--cacert", f"{layout.ETCD_PKI}/ca.crt"),
        *("--cert", f"{_ETCD_CLIENT}.crt", "--key", f"{_ETCD_CLIENT}.key"),
        *("--command-timeout", f"{_SECONDS}s", "endpoint", "health"),
    )
    answer = await host.ask(*words)
    if answer.ok:
        return Told("etcd", host.name, "well", "the member answers")
    hint = "look at its log on the host: `crictl ps -a` or `journalctl -u etcd`"
    return Told("etcd", host.name, "ill", _last_line(answer.error_text), hint)


async def nodes(host: Host, wanted: Iterable[str]) -> list[Told]:
    """Whether every host of the cluster is a node that takes pods."""
    found = {node["metadata"]["name"]: node for node in await kubectl.get(host, "nodes")}
    return [_node(name, found.get(name)) for name in wanted]


def _node(name: str, node: kubectl.Object | None) -> Told:
    if node is None:
        hint = "bring it in: kubexm create cluster -f FILE"
        return Told("node", name, "ill", "is no node of the cluster", hint)
    version = node.get("status", {}).get("nodeInfo", {}).get("kubeletVersion", "")
    if why := workloads.not_ready(node):
        hint = "look at its kubelet: `journalctl -u kubelet` there"
        return Told("node", name, "ill", f"not ready: {why}", hint)
    if node.get("spec", {}).get("unschedulable"):
        return Told("node", name, "warning", f"{version}, takes no new pods: it is cordoned")
    return Told("node", name, "well", f"{version}, ready")


async def pods(host: Host) -> list[Told]:
    """Whether the pods of the system run; one line for all that do."""
    found = await kubectl.get(host, "pods", "--all-namespaces")
    system = [pod for pod in found if pod["metadata"]["namespace"] in _SYSTEM]
    ill = [Told("pods", *trouble) for pod in system for trouble in _troubles(pod)]
    if ill:
        return ill
    return [Told("pods", "cluster", "well", f"all {len(system)} pods of the system run")]


def _troubles(pod: kubectl.Object) -> Iterator[tuple[str, Grade, str, str]]:
    where = pod.get("spec", {}).get("nodeName", "no node")
    name = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
    for trouble in workloads.troubles(pod):
        yield where, "ill", trouble, f"kubectl describe pod -n {name.replace('/', ' ')}"


async def names(host: Host) -> Told | None:
    """Whether a pod of a host finds a service by its name; None if it has no pod to ask from."""
    settings = formats.parsed((await host.get(layout.KUBELET_CONFIG)).decode(), "yaml")
    listed = await host.ask("ls", "-1", _NETWORKS)
    there = [name for name in listed.text.split() if name.startswith("cni-")]
    if not there:
        return None
    server, domain = settings["clusterDNS"][0], settings["clusterDomain"]
    inside = ("nsenter", f"--net={_NETWORKS}/{there[0]}", "bash", "-c", _ASK, server)
    answer = await host.ask("timeout", _SECONDS, *inside, stdin=_question(f"{_NAME}.{domain}"))
    return _resolved(host.name, f"{_NAME}.{domain}", server, answer.text)


def _question(name: str) -> bytes:
    """What a name is asked for by, over TCP: one address of the fourth version."""
    labels = b"".join(bytes((len(part),)) + part.encode() for part in name.split("."))
    head = struct.pack("!HHHHHH", secrets.randbelow(1 << 16), 0x0100, 1, 0, 0, 0)
    message = head + labels + b"\0" + struct.pack("!HH", 1, 1)
    return struct.pack("!H", len(message)) + message


def _resolved(where: str, name: str, server: str, dumped: str) -> Told:
    head = bytes.fromhex("".join(dumped.split()))
    hint = "look at CoreDNS: kubectl logs -n kube-system -l k8s-app=kube-dns"
    if len(head) < _ANSWERED:
        return Told("dns", where, "ill", f"a pod gets no answer from {server}", hint)
    code, answers = head[5] & 0x0F, struct.unpack("!H", head[8:10])[0]
    if code or not answers:
        return Told("dns", where, "ill", f"{server} does not know {name} (code {code})", hint)
    return Told("dns", where, "well", f"a pod finds {name} by {server}")


async def certificates(host: Host, now: datetime) -> Told | None:
    """Which certificate of a host expires first; None if it has none."""
    read = {path: await files.read(host, path) for path in _CERTIFICATES}
    found = [
        (reading.read(pem).days_left(now), path.rpartition("/")[2])
        for path, pem in read.items()
        if pem is not None
    ]
    if not found:
        return None
    days, name = min(found)
    hint = "renew it before: `kubeadm certs renew all`" if days < SOON_DAYS else ""
    grade: Grade = "ill" if days < 0 else "warning" if days < SOON_DAYS else "well"
    return Told("certificates", host.name, grade, f"{days} days left, of {name} first", hint)


def failed(check: str, where: str, error: KubexmError) -> Told:
    """A look that could not be taken."""
    return Told(check, where, "ill", error.message, error.hint)


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1] if lines else "no answer"
