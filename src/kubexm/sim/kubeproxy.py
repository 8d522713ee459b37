"""kube-proxy in a simulated cluster: it reads its settings when its pods begin, and never again."""

from __future__ import annotations

import json
from hashlib import sha256

from kubexm.sim.kubedocs import Object, documents, part, section
from kubexm.sim.kubekinds import CONFIG_MAP, DAEMON_SET
from kubexm.sim.kubestore import Cluster, Ref

POD = Ref(DAEMON_SET, "kube-system", "kube-proxy")
_SETTINGS = Ref(CONFIG_MAP, "kube-system", "kube-proxy")
_TEMPLATE, _READ = "kube-proxy:template", "kube-proxy:read"


def begin(cluster: Cluster) -> None:
    """Have new pods read the settings, if the daemon set is another than its pods are of."""
    template = section(cluster.get(POD), "spec", "template")
    digest = sha256(json.dumps(template, sort_keys=True).encode()).hexdigest()
    if template and cluster.note(_TEMPLATE) != digest:
        cluster.set_note(_READ, str(part(cluster.get(_SETTINGS), "data", "config.conf") or ""))
        cluster.set_note(_TEMPLATE, digest)


def read(cluster: Cluster) -> Object:
    """What the pods that run have read."""
    found = documents(cluster.note(_READ).encode())
    return found[0] if found else {}


def mode(cluster: Cluster) -> str:
    """How they lead to services."""
    return str(read(cluster).get("mode") or "iptables")
