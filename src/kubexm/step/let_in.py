"""Kubelets that a cluster has let in, and that have not made their kube nodes yet.

`kubeadm join` of a worker ends when its kubelet has a certificate. A moment later the kubelet tells
of its node; until then nobody but that certificate knows that there will be one.
"""

from __future__ import annotations

import base64
from collections.abc import Collection, Iterator
from datetime import datetime

from kubexm.pki import reading
from kubexm.runner import kubectl
from kubexm.runner.host import Host
from kubexm.runner.kubectl import Object

PATIENCE = 60.0
"""For so many seconds such a node is expected; who needs longer has failed in another way."""
_REQUESTS = "certificatesigningrequests.certificates.k8s.io"
_SIGNER = "kubernetes.io/kube-apiserver-client-kubelet"
_NODE = "system:node:"


async def expected(host: Host, absent: Collection[str], *, sudo: bool | None) -> list[str]:
    """Those of some kube nodes, none of which is there, that are about to come."""
    if not absent:
        return []
    now = float((await host.ask("date", "+%s")).text)
    requests = await kubectl.get(host, _REQUESTS, sudo=sudo)
    return sorted(set(absent).intersection(_let_in(requests, now - PATIENCE)))


def _let_in(requests: Collection[Object], since: float) -> Iterator[str]:
    """The kube nodes whose kubelets have got a certificate since then."""
    for one in requests:
        made = datetime.fromisoformat(one["metadata"]["creationTimestamp"]).timestamp()
        is_granted = "certificate" in one.get("status", {})
        if one["spec"]["signerName"] == _SIGNER and is_granted and made >= since:
            asked = base64.b64decode(one["spec"]["request"])
            yield reading.requested_name(asked).removeprefix(_NODE)
