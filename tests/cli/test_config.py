"""`kubexm config`: a cluster file by itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from tests.cli.answers import Kubexm

HEAD = "apiVersion: kubexm.io/v1alpha1\nkind: Cluster\nmetadata: {name: small}\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "cluster.yaml"
    path.write_text(
        f"{HEAD}spec:\n  kubernetes: {{version: v1.36.3}}\n"
        '  hosts:\n    - {name: "node[1:3]", address: "10.0.0.[11:13]"}\n'
    )
    return path


def test_a_sound_file_is_summed_up(kubexm: Kubexm, file: Path, home: Path) -> None:
    answer = kubexm("config", "validate", "-f", file)

    assert (answer.code, answer.err) == (0, "")
    assert answer.out == (
        "small: Kubernetes v1.36.3\n"
        "  endpoint single, etcd stacked, network calico\n"
        "  control-plane: node1\n"
        "  worker: node2 node3\n"
    )
    assert not home.exists()


def test_the_summary_is_data_too(kubexm: Kubexm, file: Path) -> None:
    answer = kubexm("config", "validate", "-f", file, "-o", "json")

    assert json.loads(answer.out)["roles"][1] == {"role": "worker", "hosts": ["node2", "node3"]}


def test_all_that_is_wrong_comes_at_once_with_its_place(kubexm: Kubexm, file: Path) -> None:
    file.write_text(
        f"{HEAD}spec:\n  kubernetes: {{version: newest}}\n"
        "  hosts:\n    - {name: a, address: 10.0.0.1}\n    - {name: b, address: 10.0.0.1}\n"
        "  netwrk: {}\n"
    )

    answer = kubexm("config", "validate", "-f", file)

    assert answer.code == 2
    for place, message in (
        ("5:25", "spec.kubernetes.version: found the text `newest`, want a version"),
        ("8:7", "spec.hosts[1]: `b` and `a` have the same address `10.0.0.1`"),
        ("9:3", "spec.netwrk: unknown key `netwrk`\n    hint: did you mean `network`?"),
    ):
        assert f"{file}:{place}: {message}" in answer.err


def test_what_follows_is_shown_in_full_and_is_a_file_again(kubexm: Kubexm, file: Path) -> None:
    shown = kubexm("config", "show", "--defaults", "-f", file).out
    file.write_text(shown)

    again = kubexm("config", "show", "--defaults", "-f", file)

    assert again.code == 0
    assert again.out == shown
    assert yaml.safe_load(shown)["spec"]["network"]["podCIDR"] == ["10.233.64.0/18"]


def test_without_defaults_only_what_is_written_is_shown(kubexm: Kubexm, file: Path) -> None:
    shown = yaml.safe_load(kubexm("config", "show", "-f", file).out)

    assert shown == yaml.safe_load(file.read_text())


def test_a_key_is_explained(kubexm: Kubexm) -> None:
    answer = kubexm("config", "explain", "spec.endpoint.port")

    assert answer.out == (
        "spec.endpoint.port: whole number from 1 to 65535, default `6443`\n  The port.\n"
    )


def test_a_mapping_is_explained_with_its_keys(kubexm: Kubexm) -> None:
    answer = kubexm("config", "explain", "spec.etcd.backup")

    assert "\n  keep\n    How many are kept.\n" in answer.out


def test_a_key_that_is_not_there_is_told_with_the_nearest(kubexm: Kubexm) -> None:
    answer = kubexm("config", "explain", "spec.etc")

    assert answer.code == 2
    assert "there is no key `etc`" in answer.err
    assert "did you mean `etcd`?" in answer.err


def test_the_schema_is_a_document(kubexm: Kubexm) -> None:
    schema = json.loads(kubexm("config", "schema").out)

    assert schema["properties"]["kind"] == {"enum": ["Cluster"]}
