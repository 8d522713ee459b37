"""Why a real cluster fails, as its report tells it: by what hosts themselves say of the cause.

The tests are one life of a cluster: each breaks it in another way, and mends what the last broke.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.lab.cluster_control import Answer, ClusterControl
from tests.lab.enclosure import enclosed

from lab.testing import Lab

pytestmark = [pytest.mark.lab, pytest.mark.timeout(2400)]

HOSTS = ("node1", "node2")
ALONE = {"control-plane": ["node1"]}
BOTH = {**ALONE, "worker": ["node2"]}
# With volumes comes an image that has a shell.
MORE: dict[str, Any] = {
    "endpoint": {"kind": "haproxy"},
    "storage": {"localPath": {"enabled": True}},
}
INIT = "create-cluster/control-plane/init/cluster"
JOIN = "create-cluster/workers/join/node"
LOST = "/etc/kubernetes/admission.yaml"
# kubeadm would wait for four minutes.
IMPATIENT = {"initConfiguration": {"timeouts": {"controlPlaneComponentHealthCheck": "20s"}}}
SQUATTER = "systemd-run --quiet --unit=squatter python3 -m http.server 10250"
SHELL = "docker.io/library/busybox:1.37.0"
WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  # What ends at once was ready for an instant.
  minReadySeconds: 5
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
        - {name: web, image: "SHELL", command: %s}
""".replace("SHELL", SHELL)


@pytest.fixture(scope="module")
def control(
    cluster_hosts: Lab, software: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ClusterControl]:
    with enclosed(cluster_hosts):
        yield ClusterControl(cluster_hosts, software, tmp_path_factory.mktemp("control"))


def test_a_control_plane_that_does_not_begin_tells_the_mistake_of_its_pod(
    control: ClusterControl,
) -> None:
    server = {"extraArgs": {"admission-control-config-file": LOST}}
    control.declare(ALONE, **MORE, kubernetes={"apiServer": server, "kubeadm": IMPATIENT})

    failed = control.create()

    assert failed.code == 1
    cause, remedy = _told(failed, INIT, "node1")
    assert cause == f"a file that a program reads is not there: {LOST}"
    assert "extraVolumes" in remedy


def test_a_worker_that_can_not_join_tells_what_is_in_its_way(control: ClusterControl) -> None:
    control.declare(BOTH, **MORE, hooks=_before_workers(SQUATTER))

    failed = control.create()

    # Nobody waits for a worker: the cluster is made without it.
    assert failed.code == 5
    assert failed.left_out() == {"node2"}
    said = failed.told()["node2"]
    assert said.startswith("`kubeadm join` exited with 1: Port-10250: Port 10250 is in use")
    assert "`ss -lntup` on the host says who has it" in said


def test_a_pod_that_ends_tells_what_it_said(control: ClusterControl) -> None:
    control.on("node2", "systemctl", "stop", "squatter")
    _declare_web(control, '[sh, -c, "cat /nowhere/at-all"]')

    failed = control.create()

    assert failed.code == 1
    said = failed.told()["node1"]
    assert "can't open '/nowhere/at-all': No such file" in said, said


def test_a_pod_without_its_image_tells_which_one_can_not_be_had(control: ClusterControl) -> None:
    _declare_web(control, "[sleep, 1h]", f"/usr/local/bin/ctr -n k8s.io images rm {SHELL}")

    failed = control.create()

    assert failed.code == 1
    said = failed.told()["node1"]
    assert f"cause: an image can't be had: {SHELL}" in said, said


def test_mended_it_is_well(control: ClusterControl) -> None:
    _declare_web(control, "[sleep, infinity]")

    made = control.create()

    assert made.code == 0, made.err
    control.await_health()


def _before_workers(command: str) -> dict[str, Any]:
    """A step of the operator after the checks of hosts, and before workers join."""
    return {"workers": {"pre": [_on_workers(command)]}}


def _on_workers(command: str) -> dict[str, Any]:
    return {"name": "break", "runOnRoles": ["worker"], "command": {"argv": shlex.split(command)}}


def _declare_web(control: ClusterControl, command: str, before: str = "") -> None:
    """A cluster with a workload that is waited for; `before` is done to workers first."""
    addon = {"name": "web", "inline": WEB % command}
    wait = {"resource": "deployment/web", "namespace": "default"}
    step = {"name": "web", "runOnRoles": ["control-plane"], "timeout": "30s", "rollout": wait}
    hooks = {"pre": [_on_workers(before)] if before else [], "post": [step]}
    control.declare(BOTH, **MORE, addons=[addon], hooks={"add-ons": hooks})


def _told(failed: Answer, node: str, host: str) -> tuple[str, str]:
    """Cause and remedy of the unit that failed."""
    nodes = failed.data["result"]["nodeResults"]
    lines = nodes[node]["hostResults"][host]["message"].splitlines()
    cause, remedy = (
        next(line.removeprefix(mark) for line in lines if line.startswith(mark))
        for mark in ("cause: ", "remedy: ")
    )
    return cause, remedy
