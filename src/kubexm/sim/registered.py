"""Every daemon that the simulation knows, by the name of its program."""

from __future__ import annotations

from collections.abc import Mapping

from kubexm.sim import balancers, clock, ctr, etcd, keepalived, kubeletdaemon
from kubexm.sim.daemons import Daemon

DAEMONS: Mapping[str, Daemon] = {
    **balancers.DAEMONS,
    **clock.DAEMONS,
    **ctr.DAEMONS,
    **keepalived.DAEMONS,
    "etcd": etcd.DAEMON,
    "kubelet": kubeletdaemon.DAEMON,
}
