"""Overrides of the wrong shape are refused at their place; all that a program takes is taken."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.config.test_overrides import TAKEN, at
from tests.config.test_rules import cluster

from kubexm.app import clusters, shapes
from kubexm.app.params import ClusterParams
from kubexm.config.cluster import checked
from kubexm.document import source
from kubexm.errors import InvalidCluster
from kubexm.templates.merging import merged

CILIUM = {"network": {"plugin": "cilium"}}
API_SERVER = "kubernetes/kubeadm/clusterConfiguration/apiServer"
INIT, JOIN = (f"kubernetes/kubeadm/{name}Configuration" for name in ("init", "join"))


def told(directory: Path, spec: dict[str, Any]) -> list[str]:
    file = directory / "cluster.yaml"
    file.write_bytes(msgspec.json.encode(cluster(**spec)))
    try:
        clusters.read_whole(ClusterParams(file))
    except InvalidCluster as error:
        return [problem.message if problem.hint else "no hint" for problem in error.problems]
    return []


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("containerRuntime/config/plugins", 3, "found the number 3, want a mapping"),
        ("containerRuntime/config/grpc", 5, "found the number 5, want a mapping"),
        (f"{API_SERVER}/extraArgs", {"a": "b"}, "found a mapping, want a list"),
        (f"{API_SERVER}/extraArgs", ["a"], "[0]: found the text `a`, want a mapping"),
        (
            f"{API_SERVER}/extraArgs",
            [{"name": "v", "value": 4}],
            "[0].value: found the number 4, want a text",
        ),
        (f"{INIT}/nodeRegistration", [1], "found a list, want a mapping"),
        (f"{JOIN}/nodeRegistration", "a", "found the text `a`, want a mapping"),
        ("kubernetes/kubelet/config/authentication", 3, "found the number 3, want a mapping"),
        ("kubernetes/kubelet/config/maxPods", "lots", "found the text `lots`, want a number"),
        ("kubernetes/kubelet/config/rotateCertificates", 1, "number 1, want `true` or `false`"),
        ("kubernetes/kubeProxy/config/iptables", 3, "found the number 3, want a mapping"),
        ("containerRuntime/config/imports", ["a", None], "[1]: found nothing in a list"),
        ("containerRuntime/config/a", [{"b": [{"c": None}]}], "[0].b[0].c: found nothing in a"),
        ("network/cilium/values/ipam", 3, "found the number 3, want a mapping"),
    ],
)
def test_an_override_of_another_shape_than_what_is_there_is_refused(
    tmp_path: Path, path: str, value: Any, message: str
) -> None:
    around = CILIUM if path.startswith("network") else {}

    (found,) = told(tmp_path, merged(around, at(path, value)))

    assert found.startswith(f"spec.{path.replace('/', '.')}")
    assert message in found


@pytest.mark.parametrize("path", ["containerRuntime/config", "kubernetes/kubelet/config"])
def test_a_setting_is_not_called_by_a_number(tmp_path: Path, path: str) -> None:
    (found,) = told(tmp_path, at(f"{path}/5", "x"))

    assert (
        found == f"spec.{path.replace('/', '.')}.5: found `5` as a key, want the name of a setting"
    )


@pytest.mark.parametrize(
    ("path", "value"),
    [
        *TAKEN.items(),
        ("kubernetes/kubelet/config/maxPods", None),
        ("kubernetes/kubelet/config/evictionHard", {"memory.available": "5%"}),
        ("network/cilium/values", {"kubeProxyReplacement": "true", "k8sServicePort": "6443"}),
        (f"{API_SERVER}/extraArgs", [{"name": "v", "value": "4"}]),
    ],
)
def test_what_the_program_takes_is_taken(tmp_path: Path, path: str, value: Any) -> None:
    around = CILIUM if path.startswith("network") else {}

    assert told(tmp_path, merged(around, at(path, value))) == []


def test_flags_have_the_form_that_this_kubeadm_reads() -> None:
    def judged(value: Any) -> None:
        spec = at(f"{API_SERVER}/extraArgs", value)
        old = merged(spec, {"kubernetes": {"version": "v1.30.0"}})
        checked(source.from_data(cluster(**old)), rules=shapes.rules())

    judged({"a": "b"})
    with pytest.raises(InvalidCluster) as caught:
        judged([{"name": "a", "value": "b"}])
    assert "extraArgs: found a list, want a mapping" in caught.value.problems[0].message
