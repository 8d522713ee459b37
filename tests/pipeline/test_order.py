"""Who waits for whom when a cluster is made, and when it is taken away."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.task import planned

from kubexm.app import planning
from kubexm.app.params import ClusterParams, Operation, OperationParams, PlanParams
from kubexm.plan.graph import ExecutionGraph

_EXAMPLES = Path(__file__).parents[2] / "examples" / "clusters"


@cache
def graph(name: str, operation: Operation = "create-cluster") -> ExecutionGraph:
    params = OperationParams(ClusterParams(_EXAMPLES / f"{name}.yaml"), operation)
    return planning.plan(PlanParams(params)).graph


def before(found: ExecutionGraph, id: str, *, same_host: bool) -> set[str]:
    """All that has to be through before a node: on the same host alone, or on every host too."""
    seen: set[str] = set()
    waiting = [id]
    while waiting:
        at = waiting.pop()
        vertex = found.nodes.get(at) or found.joins[at]
        for other in (*vertex.after_same_host, *(() if same_host else vertex.after)):
            if other not in seen:
                seen.add(other)
                waiting.append(other)
    return seen


def parts(ids: set[str]) -> set[str]:
    return {"/".join(id.split("/")[1:3]) for id in ids if "@" not in id}


def changing(found: ExecutionGraph) -> Iterator[str]:
    looking = ("preflight", "artifact", "image-archive", "chart-archive")
    return (node.id for node in found if node.step.kind not in looking)


def test_nothing_is_changed_before_every_host_has_passed_its_checks() -> None:
    found = graph("three-and-two")
    checks = {node.id for node in found if node.step.kind == "preflight"}
    for id in changing(found):
        assert before(found, id, same_host=False) >= checks


def test_a_host_is_prepared_without_waiting_for_any_other() -> None:
    found = graph("three-and-two")
    alone = before(found, "create-cluster/workers/join/node", same_host=True)
    assert parts(alone) >= {
        "system/workers",
        "container-runtime/workers",
        "load-balancer/worker",
        "workers/prepare",
    }
    prepared = before(found, "create-cluster/workers/prepare/kubelet", same_host=False)
    assert not parts(prepared) & {"control-plane/init", "control-plane/join"}


def test_control_planes_join_one_after_the_other() -> None:
    found = graph("three-and-two")
    joins = [f"create-cluster/control-plane/join/control{n}" for n in (2, 3)]
    assert found.nodes[joins[0]].hosts == ("control2",)
    assert joins[0] in before(found, joins[1], same_host=False)
    assert "create-cluster/control-plane/init/cluster" in before(found, joins[0], same_host=False)


def test_workers_join_all_at_once_within_a_limit_and_wait_for_no_other_control_plane() -> None:
    found = graph("three-and-two")
    join = found.nodes["create-cluster/workers/join/node"]
    assert join.hosts == ("worker1", "worker2")
    assert join.limits.global_concurrency_limit > 0
    assert "control-plane/join" not in parts(before(found, join.id, same_host=False))


def test_members_of_etcd_begin_together_and_are_well_before_the_api_server_begins() -> None:
    found = graph("own-etcd")
    service = found.nodes["create-cluster/etcd/service/etcd"]
    assert service.hosts == ("etcd1", "etcd2", "etcd3")
    assert service.step.params["restarts"] is False
    needed = before(found, "create-cluster/control-plane/init/cluster", same_host=False)
    assert "create-cluster/etcd/health/healthy" in needed


def test_members_of_etcd_take_new_settings_one_after_the_other_and_are_well_between() -> None:
    found = graph("own-etcd")
    each = [found.nodes[f"create-cluster/etcd/settings/etcd{n}"] for n in (1, 2, 3)]
    for number, settings in enumerate(each, 1):
        assert (settings.step.kind, settings.hosts) == ("service", (f"etcd{number}",))
        assert settings.step.params["restarts_on"]
        assert settings.step.params["answers"][-2:] == ["endpoint", "health"]
    for first, then in pairwise(each):
        assert first.id in before(found, then.id, same_host=False)


def test_kubelets_of_control_planes_take_new_settings_one_after_the_other() -> None:
    found = graph("three-and-two")
    part = "create-cluster/control-plane"
    kubelets = [f"{part}/init/kubelet", *(f"{part}/join/control{n}-kubelet" for n in (2, 3))]
    for first, then in pairwise(kubelets):
        assert first in before(found, then, same_host=False)
    assert all(found.nodes[one].step.params["port"] == 10248 for one in kubelets)


def test_a_balancer_of_its_own_hosts_is_there_before_the_api_server_begins() -> None:
    found = graph("keepalived")
    needed = before(found, "create-cluster/control-plane/init/cluster", same_host=False)
    assert parts(needed) >= {"load-balancer/haproxy", "load-balancer/keepalived"}


def test_the_pod_network_does_not_wait_for_workers_unless_it_is_routed() -> None:
    calico = before(graph("three-and-two"), "create-cluster/network/plugin/calico", same_host=False)
    assert "workers/join" not in parts(calico)
    routed = before(graph("routed"), "create-cluster/network/routes/networks", same_host=False)
    assert "workers/join" in parts(routed)


def test_hosts_of_which_the_cluster_can_lose_none_are_all_wanted() -> None:
    groups = {group.name: group for group in graph("own-etcd").groups}
    assert groups["control-plane"].minimum == 3
    assert groups["etcd"].minimum == 3
    assert "worker" not in groups


@pytest.mark.parametrize("name", ["three-and-two", "own-etcd", "own-registry"])
def test_what_was_done_last_is_taken_back_first(name: str) -> None:
    create, delete = graph(name), graph(name, "delete-cluster")
    undone = [node.id for node in delete if node.step.kind == "undone"]
    undone = [id for id in undone if not id.startswith("delete-cluster/settle/")]
    assert undone
    for id in undone:
        made = before(create, id.replace("delete-", "create-"), same_host=True)
        after = before(delete, id, same_host=False)
        ours = {one.replace("create-", "delete-") for one in made} & {*undone}
        assert not ours & after, id


def test_a_cluster_that_goes_takes_no_object_and_no_image_back_one_by_one() -> None:
    kinds = {
        node.step.params.get("step")
        for node in graph("storage-and-addons", "delete-cluster")
        if node.step.kind == "undone"
    }
    assert not kinds & {"manifest", "manifest-file", "helm-release", "image", "kube-node"}
    assert kinds >= {"kubeadm-init", "kubeadm-join", "template", "binary", "service"}


def test_notes_are_the_last_to_go() -> None:
    found = graph("three-and-two", "delete-cluster")
    rest = {node.id for node in found} - {"delete-cluster/notes"}
    assert before(found, "delete-cluster/notes", same_host=False) >= rest


def test_the_api_server_waits_for_no_worker() -> None:
    found = graph("three-and-two")
    workers = {"worker1", "worker2"}
    needed = before(found, "create-cluster/control-plane/token/token", same_host=False)
    changed = {id for id in needed if id in found.nodes and "/preflight/" not in id}
    assert [id for id in changed if workers & {*found.nodes[id].hosts}] == []


def test_a_worker_that_fails_is_tolerated_and_nobody_else_is() -> None:
    found = graph("three-and-two")
    tolerant = {node.id for node in found if node.tolerance is not None}
    assert tolerant
    assert {host for id in tolerant for host in found.nodes[id].hosts} == {"worker1", "worker2"}
    assert not [id for id in tolerant if "/preflight/" in id]


def test_a_module_with_hooks_stays_whole_and_is_still_waited_for() -> None:
    found = graph("hooks-and-templates")
    runtime = "create-cluster/container-runtime/workers/service/containerd"
    needed = before(found, runtime, same_host=False)
    assert "create-cluster/system/@pre-1/notice" in needed
    assert "system/kernel" in parts(needed)


def test_who_waits_for_a_part_of_a_module_waits_for_the_hooks_after_it_too() -> None:
    found = graph("hooks-and-templates")
    needed = before(found, "create-cluster/network/ready/nodes", same_host=False)
    assert "create-cluster/workers/@post-1/told" in needed


def test_a_file_waits_for_its_directories_whichever_module_makes_them() -> None:
    found = graph("kube-vip")
    needed = before(found, "create-cluster/load-balancer/kube-vip/first", same_host=True)
    assert "create-cluster/load-balancer/kube-vip/directories/etc-kubernetes-manifests" in needed
    assert "create-cluster/system/core/data/etc-kubernetes" in needed


def test_programs_come_to_hosts_while_packages_are_installed() -> None:
    found = graph("three-and-two")
    programs = [node.id for node in found if node.step.kind in ("binary", "unpacked")]
    assert programs
    for id in programs:
        needed = before(found, id, same_host=False)
        assert not [one for one in needed if "/packages/" in one], id


def test_a_control_plane_gets_new_settings_once_it_is_one() -> None:
    found = graph("three-and-two")
    for host in ("control2", "control3"):
        needed = before(found, f"create-cluster/control-plane/settings/{host}", same_host=True)
        assert f"create-cluster/control-plane/join/{host}" in needed


@pytest.mark.parametrize(
    "image", ["container-runtime/workers/images/pause", "load-balancer/worker/image/haproxy"]
)
def test_an_image_of_the_own_registry_waits_for_itself_and_for_whom_to_trust(image: str) -> None:
    found = graph("own-registry")
    title = image.rpartition("/")[2]
    elsewhere = before(found, f"create-cluster/{image}", same_host=False)
    assert f"create-cluster/registry/images/{title}" in elsewhere
    assert "create-cluster/registry/images/etcd" not in elsewhere
    here = before(found, f"create-cluster/{image}", same_host=True)
    assert parts(here) >= {"system/workers", "pki/workers"}


def test_directories_of_registries_wait_for_the_one_that_they_lie_in() -> None:
    found = graph("proxy")
    above = "create-cluster/container-runtime/workers/directories/etc-containerd-certs.d"
    each = [node.id for node in found if node.id.startswith(f"{above}-")]
    assert len(each) > 1
    for id in each:
        assert above in before(found, id, same_host=True)


ABSENT = ("registry", "etcd", "load-balancer", "network", "workers", "storage", "add-ons")
"""Modules of which the cluster below has nothing."""
BARE: dict[str, Any] = {
    "hosts": [{"name": "cp[1:3]", "address": "10.0.0.[11:13]"}],
    "roleGroups": {"control-plane": ["cp[1:3]"], "worker": ["cp[1:3]"]},
    "endpoint": {"kind": "external", "address": "10.0.0.100"},
    "network": {"plugin": "none"},
}


def around(*modules: str, moments: tuple[str, ...] = ("pre", "post")) -> dict[str, Any]:
    """Hooks of modules, on the machine that kubexm runs on."""
    step = {"name": "mine", "runOnRoles": ["control-node"], "noop": {"text": "mine"}}
    return {module: {moment: [step] for moment in moments} for module in modules}


def plan(folder: Path, **spec: Any) -> ExecutionGraph:
    return planned.planned(planned.written(folder, **spec)).graph


def test_hooks_of_a_module_that_the_cluster_does_not_have_are_there_in_its_place(
    tmp_path: Path,
) -> None:
    found = plan(tmp_path, **BARE, hooks=around(*ABSENT))
    checks = {node.id for node in found if node.step.kind == "preflight"}
    for module in ABSENT:
        pre, post = (f"create-cluster/{module}/@{moment}-1/mine" for moment in ("pre", "post"))
        assert before(found, pre, same_host=False) >= checks
        assert pre in before(found, post, same_host=False)
    begun = before(found, "create-cluster/control-plane/init/cluster", same_host=False)
    names = before(found, "create-cluster/dns/coredns/coredns", same_host=False)
    posts = {module: f"create-cluster/{module}/@post-1/mine" for module in ABSENT}
    assert begun >= {posts["etcd"], posts["load-balancer"]}
    assert names >= {posts["network"], posts["workers"]}
    assert posts["storage"] in before(found, f"{posts['add-ons']}", same_host=False)


@pytest.mark.parametrize("moment", ["pre", "post"])
@pytest.mark.parametrize("labels", [{}, {"disk": "ssd"}], ids=["absent", "in part"])
def test_hooks_take_nothing_of_the_order_of_others_away(
    labels: dict[str, str], moment: str, tmp_path: Path
) -> None:
    spec = {**BARE, "hosts": [{**host, "labels": labels} for host in BARE["hosts"]]}
    without = plan(tmp_path, **spec)

    found = plan(tmp_path, **spec, hooks=around(*ABSENT, moments=(moment,)))

    for id in without.nodes:
        for same_host in (True, False):
            held = before(without, id, same_host=same_host) & {*without.nodes}
            assert before(found, id, same_host=same_host) >= held, id


def test_what_is_done_before_a_module_waits_for_what_that_stands_on(tmp_path: Path) -> None:
    modules = ("assets", "control-plane", "network", "workers", "dns", "storage")
    found = plan(tmp_path, hooks=around(*modules, moments=("pre",)), storage={"localPath": {}})
    checks = {node.id for node in found if node.step.kind == "preflight"}
    needed = {
        module: before(found, f"create-cluster/{module}/@pre-1/mine", same_host=False)
        for module in modules
    }
    assert all(ids >= checks for ids in needed.values())
    begun = "create-cluster/control-plane/init/cluster"
    assert [module for module in modules if begun in needed[module]] == [
        "network",
        "dns",
        "storage",
    ]


def test_who_waits_for_a_module_on_its_own_host_waits_for_a_hook_that_is_done_once(
    tmp_path: Path,
) -> None:
    found = plan(tmp_path, hooks=around("system", moments=("post",)))
    hook = "create-cluster/system/@post-1/mine"
    services = [node for node in found if node.step.params.get("unit") == "containerd"]
    assert services
    for service in services:
        barriers = {
            id
            for at in (service.id, *before(found, service.id, same_host=True))
            for id in (found.nodes.get(at) or found.joins[at]).after
        }
        assert hook in barriers


@pytest.mark.slow
def test_hooks_of_modules_that_the_cluster_does_not_have_are_run_once_each(tmp_path: Path) -> None:
    moments = ("pre", "post", "onFailure", "always")
    file = planned.written(tmp_path, **BARE, hooks=around(*ABSENT, moments=moments))

    outcome = planned.made(file)
    gone = planned.made(file, operation="delete-cluster")

    assert (outcome.result.status, gone.result.status) == ("Success", "Success")
    for module in ABSENT:
        found = {
            moment: outcome.result.node_results[f"create-cluster/{module}/@{moment}-1/mine"].changed
            for moment in ("pre", "post", "on-failure", "always")
        }
        assert found == {"pre": True, "post": True, "on-failure": False, "always": True}
