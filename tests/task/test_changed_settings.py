"""Settings of a cluster that lives, changed in its file: they reach whoever reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.task import planned

from kubexm.app.runs import RunOutcome
from kubexm.common import layout
from kubexm.sim import World, kubepods, kubeproxy
from kubexm.sim.apiserver import Api, serving
from kubexm.sim.shell import Shell

HOSTS = [{"name": name, "address": f"10.0.0.{at}"} for at, name in enumerate(("cp1", "w1"), 11)]
POLICY = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{{level: {}}}]\n"
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


def test_an_api_server_begins_anew_with_what_it_reads_only_then(tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY.format("Metadata"))
    settings = {"audit": {"enabled": True, "policy": "policy.yaml"}}
    more = {**settings, "encryption": {"enabled": True, "resources": ["secrets", "configmaps"]}}

    first = made(tmp_path, apiServer={**settings, "encryption": {"enabled": True}})
    again = made(tmp_path, apiServer={**settings, "encryption": {"enabled": True}})
    policy.write_text(POLICY.format("Request"))
    other = made(tmp_path, apiServer={**settings, "encryption": {"enabled": True}})
    assert _has_read(other, layout.AUDIT_POLICY)
    last = made(tmp_path, apiServer=more)

    assert SETTINGS not in changed(first)
    assert changed(again) == set()
    assert SETTINGS in changed(other)
    assert SETTINGS in changed(last)
    assert _has_read(last, layout.ENCRYPTION_CONFIG)


def _has_read(outcome: RunOutcome, path: str) -> bool:
    """Whether the API server has read a file as it is now."""
    with planned.world(outcome) as world:
        return kubepods.is_up_to_date(_shell(world), "kube-apiserver", path)


def _api(world: World) -> Api:
    return serving(_shell(world))


def _shell(world: World) -> Shell:
    shell = world.shell_of("cp1")
    assert shell is not None
    return shell
