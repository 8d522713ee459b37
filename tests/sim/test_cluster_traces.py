"""What runs in a cluster leaves traces on its hosts, and may take its time to be ready."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.sim.clusters import ClusterSite, container, workload

from kubexm.common import layout
from kubexm.templates.contexts.kubeadm import Audit

IMAGE = "docker.io/library/web:1"
POD = {"containers": [container(IMAGE)]}
WEB = workload("Deployment", "web", POD)


@pytest.fixture
def slow(tmp_path: Path) -> Iterator[ClusterSite]:
    made = ClusterSite(tmp_path, hesitates=True)
    made.begin("cp1", "w1")
    made.lay_images("w1", [IMAGE])
    yield made
    made.close()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[ClusterSite]:
    made = ClusterSite(tmp_path)
    yield made
    made.close()


def available(site: ClusterSite, resource: str) -> int:
    return int(site.get(resource)["status"]["availableReplicas"])


def test_a_kubelet_that_comes_up_makes_the_places_of_logs(site: ClusterSite) -> None:
    site.lay("cp1")
    assert not site.world.host("cp1").has(layout.POD_LOGS[0])

    assert site.init().ok

    assert all(site.world.host("cp1").has(path) for path in layout.POD_LOGS)


def test_an_api_server_writes_who_asked_for_what(site: ClusterSite) -> None:
    site.lay("cp1")
    site.put(layout.AUDIT_POLICY, "apiVersion: audit.k8s.io/v1\nkind: Policy\n", host="cp1")

    assert site.init(audit=Audit()).ok

    assert site.world.host("cp1").has(layout.AUDIT_LOG)


def test_a_pod_that_gets_an_address_is_remembered_by_its_host(site: ClusterSite) -> None:
    site.begin("cp1", "w1")
    site.lay_images("w1", [IMAGE])
    assert site.apply(WEB).ok
    assert not site.world.host("w1").has(layout.CNI_DATA)

    assert available(site, "deployment/web") == 1

    assert site.world.host("w1").has(f"{layout.CNI_DATA}/results")
    assert not site.world.host("cp1").has(layout.CNI_DATA)


def test_a_node_that_takes_its_time_is_ready_at_the_second_look(slow: ClusterSite) -> None:
    assert [slow.is_ready("w1"), slow.is_ready("w1")] == [False, True]
    assert [slow.is_ready("cp1"), slow.is_ready("cp1")] == [False, True]


def test_a_workload_that_takes_its_time_does_so_with_every_change(slow: ClusterSite) -> None:
    changed = workload("Deployment", "web", POD, replicas=2)

    assert slow.apply(WEB).ok
    assert [available(slow, "deployment/web") for _ in range(2)] == [0, 1]
    assert slow.apply(changed).ok
    assert [available(slow, "deployment/web") for _ in range(2)] == [0, 2]


def test_who_waits_for_a_workload_looks_until_it_is_ready(slow: ClusterSite) -> None:
    assert slow.apply(WEB).ok

    assert slow.kubectl("rollout", "status", "deployment/web", "--timeout", "1s").ok


def test_what_has_an_obstacle_is_not_ready_however_often_one_looks(slow: ClusterSite) -> None:
    assert slow.apply(workload("Deployment", "web", {"containers": [container("no:1")]})).ok

    assert [available(slow, "deployment/web") for _ in range(3)] == [0, 0, 0]


def test_looks_are_nothing_that_a_run_leaves_behind(slow: ClusterSite) -> None:
    slow.is_ready("w1")
    before = slow.world.snapshot()
    slow.is_ready("cp1")

    assert slow.world.snapshot() == before
