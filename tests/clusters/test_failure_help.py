"""What the report of a cluster that failed says: why, what to do about it, and what shows it."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from tests import virtual
from tests.clusters.test_examples import bundle_in

from kubexm.app import runs
from kubexm.app.execution import Front
from kubexm.app.params import ClusterParams, OperationParams, PlanParams, RunParams
from kubexm.app.runs import RunOutcome
from kubexm.cli import endings
from kubexm.common.paths import Home

pytestmark = pytest.mark.slow

FILE = """\
apiVersion: kubexm.io/v1alpha1
kind: Cluster
metadata: {{name: broken}}
spec:
  hosts:
    - {{name: control1, address: 10.0.0.11, arch: amd64}}
    - {{name: worker1, address: 10.0.0.21, arch: amd64}}
  ssh: {{user: root, keys: [~/.ssh/id_ed25519]}}
  roleGroups: {{control-plane: [control1], worker: [worker1]}}
  network: {{plugin: routed}}
  kubernetes:
    version: v1.36.4
    certificates: {{algorithm: ECDSA-P256}}
    kubeadm: {{ignorePreflightErrors: {ignored}}}
  hooks:
    {module}:
      post:
        - name: break
          command: {{argv: {argv}}}
"""
INIT = "create-cluster/control-plane/init/cluster"
SCHEDULER = "registry.k8s.io/kube-scheduler:v1.36.4"
WITHOUT_SCHEDULER = f"/usr/local/bin/ctr -n k8s.io images rm {SCHEDULER}"


def broken(
    home: Path, command: str, *ignored: str, module: str = "container-runtime"
) -> RunOutcome:
    """A cluster on hosts without a way outside, on which a command has broken something."""
    home.mkdir(parents=True, exist_ok=True)
    argv = json.dumps(shlex.split(command))
    text = FILE.format(argv=argv, ignored=json.dumps(ignored), module=module)
    (home / "cluster.yaml").write_text(text)
    cluster = ClusterParams(home / "cluster.yaml")
    operation = OperationParams(cluster, "create-cluster", bundle_in(home))
    params = RunParams(PlanParams(operation), simulate=True)
    return virtual.hurried(runs.run(params, Front(), Home(home, home, home)))


def test_what_kubeadm_finds_wrong_is_named_with_its_remedy(tmp_path: Path) -> None:
    outcome = broken(tmp_path, WITHOUT_SCHEDULER)

    said = endings.summary(outcome)
    assert f"✗ {INIT} on control1" in said
    assert f"ImagePull: failed to pull image {SCHEDULER}" in said
    assert "(hint: an image can't be had: bring it with the bundle" in said


def test_what_the_kubelet_finds_wrong_is_named_with_its_remedy(tmp_path: Path) -> None:
    outcome = broken(tmp_path, WITHOUT_SCHEDULER, "ImagePull")

    said = outcome.result.node_results[INIT].host_results["control1"].message.splitlines()
    assert "kube-scheduler is not healthy" in said[0]
    assert said[1] == f"cause: an image can't be had: {SCHEDULER}"
    assert "`spec.registry.host`" in said[2]
    assert said[3] == "journal of kubelet:"
    assert f'Failed to pull image "{SCHEDULER}"' in said[4]
    assert f"  cause: an image can't be had: {SCHEDULER}" in endings.summary(outcome).splitlines()
    assert "cause: an image" in json.dumps(endings.as_data(outcome))


def test_what_is_left_of_an_earlier_cluster_is_named_with_its_remedy(tmp_path: Path) -> None:
    outcome = broken(tmp_path, "mkdir -p /var/lib/etcd/member")

    said = outcome.result.node_results[INIT].host_results["control1"].message
    assert "/var/lib/etcd is not empty" in said
    assert "(hint: something of an earlier cluster is left:" in said
