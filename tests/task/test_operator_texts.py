"""A `${…}` of the operator's is text like any other: nobody fills it in, and no run fails by it."""

from __future__ import annotations

import tarfile
from copy import deepcopy
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from tests.task.planned import content, made, planned, step, world, written

from kubexm.common import layout
from kubexm.step.helm import Released
from kubexm.step.kubeadm import Joined
from kubexm.step.manifests import Applied
from kubexm.templates.contexts.systemd import KUBELET_DROPIN

TEXT = "${vars.address}/${nobody}/$${facts.os}/${"
"""What would be filled in, what is no reference, what looks escaped, and what has no end."""
OBJECT = f"{{apiVersion: v1, kind: ConfigMap, metadata: {{name: a}}, x: '{TEXT}'}}"
SPEC: dict[str, Any] = {
    "kubernetes": {
        "apiServer": {"extraArgs": {"event-ttl": TEXT}},
        "controllerManager": {"extraArgs": {"profiling": TEXT}},
        "scheduler": {"extraArgs": {"profiling": TEXT}},
        "kubelet": {"config": {"providerID": TEXT}, "extraArgs": {"v": TEXT}},
        "kubeProxy": {"config": {"hostnameOverride": TEXT}},
        "kubeadm": {
            "clusterConfiguration": {"apiServer": {"extraEnvs": [{"name": "A", "value": TEXT}]}},
            "initConfiguration": {"nodeRegistration": {"imagePullPolicy": TEXT}},
            "joinConfiguration": {"nodeRegistration": {"imagePullPolicy": TEXT}},
            "ignorePreflightErrors": [TEXT],
        },
    },
    "etcd": {"extraArgs": {"log-level": TEXT}},
    "containerRuntime": {"config": {"debug": {"address": TEXT, TEXT: [TEXT]}}},
    "addons": [
        {"name": "values", "chart": {"name": "chart.tgz", "values": {"a": [TEXT]}}},
        {"name": "values-file", "chart": {"name": "chart.tgz", "valuesFiles": ["values.yaml"]}},
        {"name": "inline", "inline": OBJECT},
        {"name": "files", "manifests": ["objects.yaml"]},
    ],
}
OWN_ETCD = {**SPEC, "roleGroups": {"control-plane": ["cp[1:3]"], "etcd": ["cp[1:3]"]}}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    chart = b"apiVersion: v2\nname: demo\nversion: 1.0.0\n"
    with tarfile.open(tmp_path / "chart.tgz", "w:gz") as archive:
        member = tarfile.TarInfo("demo/Chart.yaml")
        member.size = len(chart)
        archive.addfile(member, BytesIO(chart))
    (tmp_path / "values.yaml").write_text(f"a: ['{TEXT}']\n")
    (tmp_path / "objects.yaml").write_text(f"{OBJECT}\n")
    return tmp_path


@pytest.mark.parametrize(
    ("path", "times"),
    [
        # Flags of four components, three documents of kubeadm, what it is to ignore, and how
        # kubelets run.
        (layout.KUBEADM_CONFIG, 9),
        (layout.KUBELET_CONFIG, 1),
        (layout.CONTAINERD_CONFIG, 3),
    ],
)
def test_a_file_has_it_as_it_was_written(path: str, times: int, folder: Path) -> None:
    plan = planned(written(folder, **SPEC))

    assert content(plan, path, "cp2").count(TEXT) == times


@pytest.mark.parametrize("name", ["name", "ctx", "context", "overrides", "self", "data", "path"])
@pytest.mark.parametrize(
    ("path", "spec"),
    [
        (layout.CONTAINERD_CONFIG, {"containerRuntime": {"config": {}}}),
        (layout.KUBELET_CONFIG, {"kubernetes": {"kubelet": {"config": {}}}}),
        (layout.KUBEADM_CONFIG, {"kubernetes": {"kubeProxy": {"config": {}}}}),
    ],
)
def test_a_setting_may_have_any_name(
    path: str, spec: dict[str, Any], name: str, tmp_path: Path
) -> None:
    innermost = spec = deepcopy(spec)
    while innermost:
        (innermost,) = innermost.values()
    innermost[name] = "odd-value"

    assert "odd-value" in content(planned(written(tmp_path, **spec)), path, "cp1")


def test_flags_of_the_kubelet_come_to_what_was_written(folder: Path) -> None:
    found = content(planned(written(folder, **SPEC)), KUBELET_DROPIN, "cp2")

    # systemd wants `$$` for `$`.
    assert f"--v={TEXT}\n" in found.replace("$$", "$")
    assert "--node-ip=10.0.0.12 " in found


def test_flags_of_an_etcd_of_its_own_come_to_what_was_written(folder: Path) -> None:
    found = content(planned(written(folder, **OWN_ETCD)), layout.ETCD_ENVIRONMENT, "cp2")

    # A shell may read the file as well.
    assert f'ETCD_LOG_LEVEL="{TEXT}"\n' in found.replace("\\$", "$")
    assert 'ETCD_NAME="cp2"\n' in found


@pytest.mark.parametrize(("node", "host"), [("control-plane/join/cp2", "cp2"), ("join/node", "w1")])
def test_whoever_joins_has_it_as_it_was_written(node: str, host: str, folder: Path) -> None:
    found = step(planned(written(folder, **SPEC)), node, host)

    assert isinstance(found, Joined)
    said = found.overrides["JoinConfiguration"]
    assert said["nodeRegistration"]["imagePullPolicy"] == TEXT
    assert [*found.data["node"]["ignored_errors"]] == [TEXT]
    assert found.data["node"]["name"] == host
    assert TEXT in found.ignore_errors


@pytest.mark.parametrize("name", ["values", "values-file"])
def test_values_of_charts_are_as_they_were_written(name: str, folder: Path) -> None:
    found = step(planned(written(folder, **SPEC)), f"{name}/release", "cp1")

    assert isinstance(found, Released)
    assert found.values == {"a": [TEXT]}


@pytest.mark.parametrize("node", ["inline/objects", "files/file-1"])
def test_objects_are_as_they_were_written(node: str, folder: Path) -> None:
    found = step(planned(written(folder, **SPEC)), node, "cp1")

    assert isinstance(found, Applied)
    assert TEXT in (found.content or "")


def test_values_of_the_network_are_as_they_were_written(folder: Path) -> None:
    cilium = {"plugin": "cilium", "cilium": {"values": {"mine": {"a": TEXT}}}}
    found = step(planned(written(folder, network=cilium)), "plugin/cilium", "cp1")

    assert isinstance(found, Released)
    assert found.values["mine"] == {"a": TEXT}


def test_templates_of_the_operator_are_as_they_were_written(folder: Path) -> None:
    own = folder / "templates" / "kubelet" / "dropin.j2"
    own.parent.mkdir(parents=True)
    own.write_text(f"[Service]\nEnvironment=A={TEXT}\nEnvironment=B={{{{ hostname }}}}\n")

    plan = planned(written(folder), templates=folder / "templates")

    assert content(plan, KUBELET_DROPIN, "w1") == (
        f"[Service]\nEnvironment=A={TEXT}\nEnvironment=B=w1\n"
    )


def test_references_of_ours_are_filled_in_beside_it(folder: Path) -> None:
    plan = planned(written(folder, **SPEC))

    found = content(plan, layout.KUBEADM_CONFIG, "cp2")
    assert 'advertiseAddress: "10.0.0.12"\n' in found
    # What only the run knows is still a reference then.
    kubelet = content(plan, layout.KUBELET_CONFIG, "cp2")
    assert "resolvConf: ${facts.network.resolv_conf}\n" in kubelet


@pytest.mark.slow
def test_a_cluster_with_it_is_made_and_taken_away(folder: Path) -> None:
    file = written(folder, **{**SPEC, "addons": []})

    first, again = made(file), made(file)
    with world(first) as hosts:
        found = hosts.host("w1").read(layout.KUBELET_CONFIG).decode()
    gone = made(file, operation="delete-cluster")

    assert (first.result.status, first.result.degraded) == ("Success", False)
    assert (again.result.status, again.result.changed) == ("Success", 0)
    assert f"providerID: {TEXT}\n" in found
    assert "${facts" not in found.replace(TEXT, "")
    assert gone.result.status == "Success"
