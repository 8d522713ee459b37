"""What a cluster file names is read if it is a regular file; else that is told, at once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.config.test_consumers import beside
from tests.task.planned import written

from kubexm.app import clusters
from kubexm.app.params import ClusterParams
from kubexm.errors import InvalidCluster
from kubexm.task.operator_files import LARGEST, OperatorFiles

PLACE = ("spec", "addons", 0)
AMISS = {
    "~nobody-at-all/x": "`~nobody-at-all` is nobody's home",
    "x" * 300: "File name too long",
    "/dev/zero": "`/dev/zero` is no regular file",
    "pipe": "is no regular file",
    "templates": "is no regular file",
    "a\0b": "with a zero byte in it",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    beside(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    return tmp_path


@pytest.mark.parametrize("path", AMISS)
def test_what_is_no_regular_file_is_told_and_never_read(path: str, folder: Path) -> None:
    files = OperatorFiles(folder)

    assert files.text(path, PLACE) == files.digest(path, PLACE) == ""
    assert [finding.path for finding in files.findings] == [PLACE, PLACE]
    assert all(AMISS[path] in finding.message and finding.hint for finding in files.findings)


def test_a_file_is_read_up_to_its_largest_size(folder: Path) -> None:
    files = OperatorFiles(folder)
    (folder / "most").write_bytes(b"a" * LARGEST)
    (folder / "more").write_bytes(b"a" * (LARGEST + 1))

    assert len(files.text("most", PLACE)) == LARGEST
    assert files.findings == []
    assert files.text("more", PLACE) == ""
    assert files.findings[0].message == "`more` has more than 4 MiB"


def test_values_are_what_helm_takes_them_for(folder: Path) -> None:
    files = OperatorFiles(folder)
    (folder / "v.yaml").write_text("x: &x {mode: 0644}\ny1: {<<: *x, on1: yes}\n")
    (folder / "none.yaml").write_text("# nothing yet\n")

    assert files.data("v.yaml", PLACE) == {"x": {"mode": 420}, "y1": {"mode": 420, "on1": True}}
    assert files.data("none.yaml", PLACE) == {}
    assert files.findings == []


def test_values_that_would_mean_something_else_are_told_with_their_places(folder: Path) -> None:
    files = OperatorFiles(folder)
    (folder / "v.yaml").write_text("a: 1\na: 2\nb: 99999999999999999999\non: x\n")

    files.data("v.yaml", PLACE)

    said = [finding.message for finding in files.findings]
    assert [one.partition("can't be read: ")[2].removeprefix(f"{folder}/") for one in said] == [
        "v.yaml:2:1: the key `a` is there twice",
        "v.yaml:3:4: `99999999999999999999` is a number that can't be kept exactly",
        "v.yaml:4:1: `on` is read as `true`",
    ]
    assert all(finding.path == PLACE and finding.hint for finding in files.findings)


@pytest.mark.parametrize("path", AMISS)
def test_every_path_of_a_cluster_file_that_leads_to_no_file_is_told(
    path: str, folder: Path
) -> None:
    kubernetes = {
        "apiServer": {"audit": {"enabled": True, "policy": path}},
        "kubeadm": {"patches": {"kube-apiserver": path}},
        "certificates": {"authorities": {"kubernetes": {"certificate": path, "key": "env://A"}}},
    }
    addons = [
        {"name": "a", "manifests": [path]},
        {"name": "b", "chart": {"name": path, "valuesFiles": [path]}},
    ]
    registries = {"r.example": {"ca": path}}
    file = written(
        folder, kubernetes=kubernetes, addons=addons, containerRuntime={"registries": registries}
    )

    with pytest.raises(InvalidCluster) as caught:
        clusters.validate(ClusterParams(file))

    found = [problem.message for problem in caught.value.problems]
    assert len(found) == 7
    assert all(AMISS[path] in message for message in found), found


@pytest.mark.parametrize("path", sorted(AMISS.keys() - {"templates"}))
def test_templates_that_are_in_no_directory_are_told(path: str, folder: Path) -> None:
    with pytest.raises(InvalidCluster) as caught:
        clusters.validate(ClusterParams(written(folder, templates=path)))

    (problem,) = caught.value.problems
    assert f"{problem.where} {problem.message}".startswith(f"{folder}/cluster.yaml:1:")


def test_a_template_that_is_no_regular_file_is_told(folder: Path) -> None:
    os.mkfifo(folder / "templates" / "crictl" / "other.j2")
    (folder / "templates" / "crictl" / "config.j2").unlink()
    os.mkfifo(folder / "templates" / "crictl" / "config.j2")

    with pytest.raises(InvalidCluster) as caught:
        clusters.validate(ClusterParams(written(folder, templates="templates")))

    assert [problem.message for problem in caught.value.problems] == [
        f"`{folder}/templates/crictl/config.j2` is no regular file",
        "unknown template `crictl/other`",
    ]
