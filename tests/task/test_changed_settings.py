"""Settings of a cluster that lives, changed in its file: they reach whoever reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.task import planned

from kubexm.app.runs import RunOutcome
from kubexm.sim import World, kubeproxy
from kubexm.sim.apiserver import Api, serving

HOSTS = [{"name": name, "address": f"10.0.0.{at}"} for at, name in enumerate(("cp1", "w1"), 11)]
PROXY = "create-cluster/control-plane/kube-proxy/settings"
SETTINGS = "create-cluster/control-plane/settings/cp1"


def made(folder: Path, **kubernetes: Any) -> RunOutcome:
    """What comes of a cluster of a control plane and a worker."""
    spec = {"hosts": HOSTS, "roleGroups": {"control-plane": ["cp1"]}}
    outcome = planned.made(planned.written(folder, **spec, kubernetes=kubernetes))
    assert outcome.result.status == "Success", outcome.result.message
    return outcome


def changed(outcome: RunOutcome) -> set[str]:
    nodes = outcome.result.node_results.items()
    return {
        node for node, found in nodes if any(one.changed for one in found.host_results.values())
    }


def test_changed_settings_of_kube_proxy_reach_its_pods_and_only_once(tmp_path: Path) -> None:
    first = made(tmp_path)
    made(tmp_path, apiServer={"extraArgs": {"event-ttl": "2h"}})
    other = made(tmp_path, kubeProxy={"mode": "nftables"})
    again = made(tmp_path, kubeProxy={"mode": "nftables"})

    with planned.world(again) as world:
        mode = kubeproxy.mode(_api(world).cluster)
    assert PROXY not in changed(first)
    assert PROXY in changed(other)
    assert mode == "nftables"
    assert changed(again) == set()


def _api(world: World) -> Api:
    shell = world.shell_of("cp1")
    assert shell is not None
    return serving(shell)
