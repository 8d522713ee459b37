"""What kubeadm stores in a cluster: its settings, tokens, and the add-ons that it brings."""

from __future__ import annotations

import re
import time
from hashlib import sha256

import msgspec

from kubexm.sim import kubenodes, kubeproxy
from kubexm.sim.apiserver import Api
from kubexm.sim.kubeadmcerts import Failed, document
from kubexm.sim.kubeadmconfig import ClusterConfiguration, Documents, Registration
from kubexm.sim.kubeadmimages import of_dns, of_kubernetes
from kubexm.sim.kubedocs import Object, section, text
from kubexm.sim.kubekinds import (
    BY_NAME,
    CONFIG_MAP,
    DAEMON_SET,
    DEPLOYMENT,
    NAMESPACE,
    SERVICE_ACCOUNT,
    Kind,
)
from kubexm.sim.kubestore import Cluster, Ref

SYSTEM, PUBLIC = "kube-system", "kube-public"
_ADMITTED = "token:"
_DAY = 24 * 3600.0
_DURATION = r"(\d+(?:\.\d+)?)([hms])"
_UNITS = {"h": 3600, "m": 60, "s": 1}
_COREFILE = ".:53 {\n    forward . /etc/resolv.conf\n}\n"
_EVERYWHERE = [{"operator": "Exists"}]
_ON_CONTROL_PLANES = [{"key": kubenodes.CONTROL_PLANE, "effect": "NoSchedule"}]


class _Token(msgspec.Struct, frozen=True):
    """What lets a host in."""

    secret: str
    expires: float
    """When it ends, in seconds since 1970; 0 if it does not."""


def begin(cluster: Cluster) -> None:
    """What an API server makes by itself when it first finds an empty etcd."""
    for name in ("default", SYSTEM, PUBLIC, "kube-node-lease"):
        _put(cluster, NAMESPACE, "", name, {})
    for name in ("system-node-critical", "system-cluster-critical"):
        _put(cluster, BY_NAME["priorityclasses.scheduling.k8s.io"], "", name, {})


def upload(api: Api, documents: Documents, server: str) -> None:
    """Store the settings of the cluster, and how it is found by those who join."""
    cluster = documents.the(ClusterConfiguration)
    said = msgspec.to_builtins(cluster)
    whole = {"apiVersion": "kubeadm.k8s.io/v1beta4", "kind": "ClusterConfiguration", **said}
    _config_map(api.cluster, SYSTEM, "kubeadm-config", {"ClusterConfiguration": text(whole)})
    kubelet = documents.others.get("KubeletConfiguration", {})
    _config_map(api.cluster, SYSTEM, "kubelet-config", {"kubelet": text(kubelet)})
    found = document(server, api.authority, "", token="none")  # noqa: S106 of nobody
    _config_map(api.cluster, PUBLIC, "cluster-info", {"kubeconfig": found})


def mark(api: Api, registration: Registration, node: str) -> None:
    """Have everybody see that a node is a control plane."""
    found = api.cluster.get(kubenodes.ref(node))
    if found is None:
        raise Failed(f'error marking the control plane: nodes "{node}" not found')
    labels = {**section(found, "metadata", "labels"), kubenodes.CONTROL_PLANE: ""}
    taints = taints_of(registration, control_plane=True)
    others = {key: value for key, value in section(found, "spec").items() if key != "taints"}
    found = {**found, "metadata": {**found["metadata"], "labels": labels}}
    api.cluster.put(
        kubenodes.ref(node), {**found, "spec": {**others, **({"taints": taints} if taints else {})}}
    )


def taints_of(registration: Registration, *, control_plane: bool) -> list[Object]:
    """What keeps pods away from a node."""
    if registration.taints is None:
        return _ON_CONTROL_PLANES if control_plane else []
    return [
        {name: value for name, value in msgspec.structs.asdict(one).items() if value}
        for one in registration.taints
    ]


def add_proxy(api: Api, documents: Documents) -> None:
    """Add kube-proxy."""
    settings = documents.others.get("KubeProxyConfiguration", {})
    cluster = documents.the(ClusterConfiguration)
    _config_map(api.cluster, SYSTEM, "kube-proxy", {"config.conf": text(settings)})
    _put(api.cluster, SERVICE_ACCOUNT, SYSTEM, "kube-proxy", {})
    pod = {
        "hostNetwork": True,
        "priorityClassName": "system-node-critical",
        "serviceAccountName": "kube-proxy",
        "tolerations": _EVERYWHERE,
        "containers": [{"name": "kube-proxy", "image": of_kubernetes(cluster, "kube-proxy")}],
        "volumes": [{"name": "kube-proxy", "configMap": {"name": "kube-proxy"}}],
    }
    _workload(api.cluster, DAEMON_SET, "kube-proxy", pod, {})
    kubeproxy.begin(api.cluster)


def add_dns(api: Api, documents: Documents) -> None:
    """Add CoreDNS."""
    _config_map(api.cluster, SYSTEM, "coredns", {"Corefile": _COREFILE})
    _put(api.cluster, SERVICE_ACCOUNT, SYSTEM, "coredns", {})
    pod = {
        "priorityClassName": "system-cluster-critical",
        "serviceAccountName": "coredns",
        "tolerations": [{"key": "CriticalAddonsOnly", "operator": "Exists"}, *_ON_CONTROL_PLANES],
        "containers": [
            {"name": "coredns", "image": of_dns(api.shell, documents.the(ClusterConfiguration))}
        ],
        "volumes": [{"name": "config-volume", "configMap": {"name": "coredns"}}],
    }
    _workload(api.cluster, DEPLOYMENT, "coredns", pod, {"replicas": 2})


def new_token(cluster: Cluster, lifetime: float = _DAY, given: str = "") -> str:
    """A token to join with, which ends after a while; 0 for never."""
    number = len(cluster.notes(_ADMITTED))
    made = sha256(f"{cluster.id} {number}".encode()).hexdigest()
    token = given or f"{made[:6]}.{made[6:22]}"
    id, _, secret = token.partition(".")
    expires = time.time() + lifetime if lifetime else 0.0
    cluster.set_note(_ADMITTED + id, msgspec.json.encode(_Token(secret, expires)).decode())
    _sign(cluster, id)
    return token


def _sign(cluster: Cluster, id: str) -> None:
    """Tell who has a token of the cluster."""
    if (info := cluster.get(Ref(CONFIG_MAP, PUBLIC, "cluster-info"))) is not None:
        signed = {f"jws-kubeconfig-{id}": "e30..simulated"}
        _config_map(cluster, PUBLIC, "cluster-info", {**info["data"], **signed})


def token_obstacle(cluster: Cluster, token: str) -> str:
    """Why nobody can join with a token; nothing if one can."""
    id, _, secret = token.partition(".")
    found = cluster.note(_ADMITTED + id)
    if not found:
        return f'could not find a JWS signature in the cluster-info ConfigMap for token ID "{id}"'
    known = msgspec.json.decode(found, type=_Token)
    if known.expires and known.expires < time.time():
        return f'token ID "{id}" has expired'
    return "" if known.secret == secret else f'the secret of token ID "{id}" is another'


def seconds(duration: str) -> float:
    """How long a duration of Go is: `24h0m0s`."""
    parts = re.findall(_DURATION, duration)
    if duration != "0" and "".join(map("".join, parts)) != duration:
        raise Failed(f"time: invalid duration {duration!r}")
    return sum(float(number) * _UNITS[unit] for number, unit in parts)


def _workload(cluster: Cluster, kind: Kind, name: str, pod: Object, more: Object) -> None:
    labels = {"k8s-app": name}
    template = {"metadata": {"labels": labels}, "spec": pod}
    spec = {"selector": {"matchLabels": labels}, "template": template, **more}
    _put(cluster, kind, SYSTEM, name, {"spec": spec})


def _config_map(cluster: Cluster, namespace: str, name: str, data: dict[str, str]) -> None:
    _put(cluster, CONFIG_MAP, namespace, name, {"data": data})


def _put(cluster: Cluster, kind: Kind, namespace: str, name: str, content: Object) -> None:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    head = {"apiVersion": kind.api_versions[0], "kind": kind.kind, "metadata": metadata}
    cluster.put(Ref(kind, namespace, name), {**head, **content})
