"""CoreDNS in a simulated cluster: what it refuses of the file that tells it whom to ask."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kubexm.sim.kubedocs import Object, entries, part, section
from kubexm.sim.kubekinds import CONFIG_MAP
from kubexm.sim.kubestore import Cluster, Ref

_FORWARD = re.compile(r"^\s*forward\s+\S+\s+([^{\n]*)", re.MULTILINE)
_MOST = 15
"""How many the plugin `forward` asks."""


def obstacles(cluster: Cluster, namespace: str, pod: Object) -> Iterator[str]:
    """Why a pod does not begin that is told whom to ask by a file of the cluster."""
    for volume in entries(pod, "volumes"):
        name = section(volume, "configMap").get("name")
        found = cluster.get(Ref(CONFIG_MAP, namespace, str(name))) if name else None
        for asked in _FORWARD.findall(str(part(found or {}, "data", "Corefile") or "")):
            if (number := len(asked.split())) > _MOST:
                yield f"plugin/forward: more than {_MOST} TOs configured: {number}"
