"""`kubexm config`: a cluster file by itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from tests.cli.answers import Answer, Kubexm

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
    assert yaml.safe_load(shown)["spec"]["kubernetes"]["certificates"]["duration"] == "365d"


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


@pytest.mark.parametrize(
    ("path", "first", "key"),
    [
        ("spec.hooks", "spec.hooks: mapping of modules to steps by moment", "container-runtime"),
        ("spec.hooks.system", "spec.hooks.system: mapping", "onFailure"),
        ("hooks.system.pre", "spec.hooks.system.pre: list of steps", "Steps before it"),
    ],
)
def test_hooks_are_explained_down_to_the_moment(
    kubexm: Kubexm, path: str, first: str, key: str
) -> None:
    answer = kubexm("config", "explain", path)

    assert answer.code == 0
    assert answer.out.startswith(f"{first}\n")
    assert f"\n  {key}" in answer.out


def test_a_moment_that_there_is_not_is_told_with_the_nearest(kubexm: Kubexm) -> None:
    answer = kubexm("config", "explain", "spec.hooks.system.pst")

    assert answer.code == 2
    assert "there is no key `pst`" in answer.err
    assert "did you mean `post`?" in answer.err


def test_the_schema_is_a_document(kubexm: Kubexm) -> None:
    schema = json.loads(kubexm("config", "schema").out)

    assert schema["properties"]["kind"] == {"enum": ["Cluster"]}


def test_versions_are_held_against_the_catalog_with_all_else(kubexm: Kubexm, file: Path) -> None:
    file.write_text(
        f"{HEAD}spec:\n  kubernetes: {{version: v1.36.99}}\n  sudo: 3\n"
        "  containerRuntime: {version: v1.0.0}\n"
        "  hosts: [{name: a, address: 10.0.0.1}]\n"
    )

    answer = kubexm("config", "validate", "-f", file)

    assert answer.code == 2
    for place, message in (
        ("5:25", "spec.kubernetes.version: unknown version `v1.36.99` of `kubernetes`"),
        ("6:9", "spec.sudo: found the number 3"),
        ("7:31", "spec.containerRuntime.version: unknown version `v1.0.0` of `containerd`"),
    ):
        assert f"{file}:{place}: {message}" in answer.err, answer.err


def test_versions_that_do_not_go_together_are_told_with_the_reason(
    kubexm: Kubexm, file: Path
) -> None:
    text = file.read_text().replace("v1.36.3", "v1.37.1")
    file.write_text(f"{text}  containerRuntime: {{version: v1.7.28}}\n")

    answer = kubexm("config", "validate", "-f", file)

    assert answer.code == 2
    assert "containerd v1.7.28 does not go with Kubernetes v1.37.1: " in answer.err


def test_a_version_of_a_catalog_of_ones_own_is_known(
    kubexm: Kubexm, file: Path, tmp_path: Path
) -> None:
    own = tmp_path / "own.toml"
    own.write_text('[components.kubernetes.versions."v1.36.99"]\n')
    file.write_text(file.read_text().replace("v1.36.3", "v1.36.99"))

    assert kubexm("config", "validate", "-f", file).code == 2
    assert kubexm("config", "validate", "-f", file, "--catalog", own).code == 0


def init(kubexm: Kubexm, file: Path, *words: str) -> Answer:
    hosts = ("--host", "cp[1:3]=10.0.0.[11:13]", "--host", "w1=10.0.0.21")
    return kubexm("config", "init", "-f", file, "--name", "made", *hosts, *words)


def test_a_key_may_lie_beside_the_first_file(kubexm: Kubexm, tmp_path: Path) -> None:
    file = tmp_path / "new.yaml"

    answer = init(kubexm, file, "--key", "id_ed25519")

    assert (answer.code, answer.err) == (0, "")
    assert "keys: [id_ed25519]" in file.read_text().replace('"', "")
    assert kubexm("config", "validate", "-f", file).code == 0


def test_a_first_file_is_written_with_comments_and_is_sound(kubexm: Kubexm, tmp_path: Path) -> None:
    file = tmp_path / "new.yaml"
    words = ("--control-plane", "cp[1:3]", "--endpoint", "kube-vip", "--address", "10.0.0.100")

    answer = init(kubexm, file, *words, "--user", "ops", "--sudo", "--key", "~/.ssh/k")

    assert (answer.code, answer.err) == (0, "")
    assert kubexm("config", "validate", "-f", file).out.splitlines()[1:] == [
        "  endpoint kube-vip, etcd stacked, network calico",
        "  control-plane: cp1 cp2 cp3",
        "  worker: w1",
    ]
    spec = yaml.safe_load(file.read_text())["spec"]
    assert spec["ssh"] == {"user": "ops", "keys": ["~/.ssh/k"]}
    assert "# podCIDR: 10.233.64.0/18" in file.read_text()
    assert "\n\n\n" not in file.read_text()


def test_a_file_that_is_there_is_kept(kubexm: Kubexm, tmp_path: Path) -> None:
    file = tmp_path / "new.yaml"
    file.write_text("mine")

    answer = init(kubexm, file)

    assert answer.code == 2
    assert "is there already" in answer.err
    assert file.read_text() == "mine"
    assert init(kubexm, file, "--force").code == 0
    assert 'name: "made"' in file.read_text()


def test_answers_that_make_no_sound_cluster_write_nothing(kubexm: Kubexm, tmp_path: Path) -> None:
    file = tmp_path / "new.yaml"

    answer = init(kubexm, file, "--control-plane", "nobody", "--address", "10.0.0.100")

    assert answer.code == 2
    assert "there is no host `nobody`" in answer.err
    assert "`address` has no meaning for `kind:" in answer.err
    assert not file.exists()


def test_a_first_file_may_have_load_balancers(kubexm: Kubexm, tmp_path: Path) -> None:
    file = tmp_path / "new.yaml"
    words = ("--endpoint", "keepalived", "--address", "10.0.0.100", "--control-plane", "cp[1:3]")

    lacking = init(kubexm, file, *words)
    answer = init(kubexm, file, *words, "--host", "lb1=10.0.0.5", "--loadbalancer", "lb1")

    assert "the role `loadbalancer` has no host" in lacking.err
    assert (answer.code, answer.err) == (0, "")
    assert kubexm("config", "validate", "-f", file).out.splitlines()[1:] == [
        "  endpoint keepalived, etcd stacked, network calico",
        "  control-plane: cp1 cp2 cp3",
        "  worker: w1",
        "  loadbalancer: lb1",
    ]


def test_a_first_file_may_have_ranges_of_hosts_alone(kubexm: Kubexm, tmp_path: Path) -> None:
    file = tmp_path / "new.yaml"
    hosts = ("--host", "cp[1:3]=10.0.0.[11:13]", "--host", "w[1:2]=10.0.0.[21:22]")

    answer = kubexm("config", "init", "-f", file, "--name", "prod", *hosts)

    assert (answer.code, answer.err) == (0, "")
    assert "podCIDR" not in yaml.safe_load(file.read_text())["spec"]["network"]


@pytest.mark.parametrize(
    "hosts", [("a=fd00::1",), ("a[1:3]=fd00::[1:3]", "b=fd00::9"), ("a=[fd00::1]",)]
)
def test_hosts_with_ipv6_addresses_get_networks_of_ipv6(
    hosts: tuple[str, ...], kubexm: Kubexm, tmp_path: Path
) -> None:
    file = tmp_path / "new.yaml"
    words = [word for host in hosts for word in ("--host", host)]

    answer = kubexm("config", "init", "-f", file, "--name", "six", *words)

    assert (answer.code, answer.err) == (0, "")
    assert kubexm("config", "validate", "-f", file).code == 0
    network = yaml.safe_load(file.read_text())["spec"]["network"]
    assert network["podCIDR"] == "fd00:64::/56"


def test_all_that_is_wrong_with_flags_is_told_at_once(kubexm: Kubexm, tmp_path: Path) -> None:
    file = tmp_path / "new.yaml"
    file.write_text("mine")
    words = ("--host", "one", "--host", "=10.0.0.9", "--kubernetes", "v9.9.9", "--user", "a b")

    answer = init(kubexm, file, *words, "--control-plane", "one")

    assert answer.code == 2
    for message in (
        f"--file: `{file}` is there already",
        "--host: found `one`, want a host as NAME=ADDRESS",
        "--host: found `=10.0.0.9`, want a host as NAME=ADDRESS",
        "--kubernetes: unknown version `v9.9.9` of `kubernetes`",
        "spec.ssh.user: found the text `a b`, want the name of a user",
    ):
        assert message in answer.err
    assert "there is no host" not in answer.err, "`one` may be meant to be one"
    assert file.read_text() == "mine"


def test_without_a_person_what_is_missing_is_told(kubexm: Kubexm, tmp_path: Path) -> None:
    answer = kubexm("config", "init", "-f", tmp_path / "new.yaml", "--name", "made")

    assert answer.code == 2
    assert "--host is missing" in answer.err


def test_a_file_of_another_kind_is_told_as_that_and_nothing_else(
    kubexm: Kubexm, file: Path, tmp_path: Path
) -> None:
    other = tmp_path / "pipeline.yaml"
    other.write_text("kind: Pipeline\nspec: {modules: 3}\n")

    as_cluster = kubexm("config", "validate", "-f", other)
    as_pipeline = kubexm("run", "-f", file)

    assert (as_cluster.code, as_pipeline.code) == (2, 2)
    assert (
        f"{other}:1:7: kind: found a file of the kind `Pipeline`, want `Cluster`" in as_cluster.err
    )
    assert (
        f"{file}:2:7: kind: found a file of the kind `Cluster`, want `Pipeline`" in as_pipeline.err
    )
    assert "modules" not in as_cluster.err
    assert "hosts" not in as_pipeline.err


def test_what_a_file_names_is_told_at_once_with_its_place_by_who_checks_and_who_plans(
    kubexm: Kubexm, file: Path
) -> None:
    named = (
        '  containerRuntime: {sandboxImage: "a b"}\n'
        "  addons: [{name: x, manifests: [nofile.yaml]}]\n"
        "  hooks: {nomodule: {pre: []}}\n  templates: nowhere\n"
    )
    file.write_text(file.read_text() + named)

    checked = kubexm("config", "validate", "-f", file)
    planned = kubexm("plan", "-f", file)

    assert (checked.code, planned.code) == (2, 2)
    assert checked.err == planned.err
    for place in ("8:36", "9:34", "10:11", "11:14"):
        assert f"{file}:{place}: spec." in checked.err


def test_versions_that_nobody_has_tested_are_a_warning_with_its_place(
    kubexm: Kubexm, file: Path
) -> None:
    network = "  network: {plugin: calico, calico: {version: v3.31.7}}\n"
    file.write_text(file.read_text() + network)

    answer = kubexm("config", "validate", "-f", file)
    data = kubexm("config", "validate", "-f", file, "-o", "json")

    assert answer.code == 0
    assert f"warning: {file}:8:47: spec.network.calico.version: `calico`" in answer.err
    assert "not tested" in json.loads(data.out)["warnings"][0]["message"]
