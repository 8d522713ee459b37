"""The commands on a whole cluster, as a person types them."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from tests.cli.answers import Kubexm

from kubexm.resource import bundle_build
from kubexm.resource.materials import BillOfMaterials
from kubexm.resource.store import Store

FILE = """
apiVersion: kubexm.io/v1alpha1
kind: Cluster
metadata: {name: demo}
spec:
  hosts:
    - {name: control1, address: 10.0.0.11, arch: amd64}
    - {name: worker1, address: 10.0.0.21, arch: amd64}
  kubernetes: {version: v1.36.4, certificates: {algorithm: ECDSA-P256}}
  network: {plugin: routed}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "cluster.yaml"
    path.write_text(FILE)
    return path


def test_a_plan_tells_modules_with_their_size_and_the_longest_chain(
    kubexm: Kubexm, file: Path
) -> None:
    told = kubexm("plan", "-f", file)
    assert told.code == 0
    lines = told.out.splitlines()
    assert [line.split()[0] for line in lines[:3]] == ["preflight", "assets", "system"]
    assert "2 nodes" in lines[0]
    assert "the longest chain has" in told.out
    assert "create-cluster/control-plane/init/cluster  [control1]" in told.out


def test_a_plan_for_programs_holds_the_whole_graph(kubexm: Kubexm, file: Path) -> None:
    told = kubexm("plan", "-f", file, "-o", "json")
    nodes = {node["id"] for node in json.loads(told.out)["graph"]["nodes"]}
    assert "create-cluster/workers/join/node" in nodes


def test_a_graph_shows_every_step_with_its_hosts(kubexm: Kubexm, file: Path) -> None:
    told = kubexm("graph", "-f", file)
    assert "file /etc/containerd/config.toml from containerd/config" in told.out


def test_an_architecture_that_nobody_knows_is_taken_for_granted_aloud(
    kubexm: Kubexm, file: Path
) -> None:
    file.write_text(FILE.replace(", arch: amd64", ""))
    told = kubexm("plan", "-f", file)
    assert "the architecture of `control1`, `worker1` is not known, and taken to be amd64" in (
        told.out
    )


def test_flags_of_a_pipeline_mean_nothing_to_a_cluster(kubexm: Kubexm, file: Path) -> None:
    told = kubexm("plan", "-f", file, "--set", "a=b")
    assert told.code == 2
    assert "`--set` has no meaning for a cluster file" in told.err


def test_a_missing_file_that_the_cluster_file_names_is_told_with_its_place(
    kubexm: Kubexm, file: Path
) -> None:
    file.write_text(
        FILE.replace("network:", "addons: [{name: a, manifests: [no.yaml]}]\n  network:")
    )
    told = kubexm("plan", "-f", file)
    assert told.code == 2
    assert f"{file}:10:34: spec.addons[0].manifests[0]: can't read" in told.err


@pytest.mark.slow
def test_a_cluster_is_made_looked_at_and_taken_away(kubexm: Kubexm, file: Path) -> None:
    before = kubexm("plan", "-f", file, "--check", "--simulate")
    made = kubexm("create", "cluster", "-f", file, "--simulate")
    again = kubexm("create", "cluster", "-f", file, "--simulate")
    file.write_text(FILE.replace("plugin: routed", "plugin: routed, mtu: 1400"))
    changed = kubexm("plan", "-f", file, "--check", "--simulate")
    gone = kubexm("delete", "cluster", "-f", file, "--simulate")

    assert (before.code, made.code, again.code, gone.code) == (0, 0, 0, 0)
    assert "demo: Success" in made.out
    assert "nothing to do" in again.out
    assert '+      "mtu": 1400,' in changed.out
    assert "demo: Success" in gone.out


HOOK = """  hooks:
    workers: {{post: [{{name: told, runOnRoles: [control-node], command: {{argv: [{word}]}}}}]}}
"""


def test_a_retry_with_a_corrected_file_goes_on_with_what_was_done(
    kubexm: Kubexm, file: Path
) -> None:
    file.write_text(FILE + HOOK.format(word="not-there"))
    failed = json.loads(kubexm("create", "cluster", "-f", file, "--simulate", "-o", "json").out)
    assert failed["task"]["status"] == "Failed"
    file.write_text(FILE + HOOK.format(word="'true'"))

    again = kubexm("task", "retry", failed["task"]["id"], "-f", file, "-o", "json")

    assert again.code == 0
    told = json.loads(again.out)["task"]
    assert told["status"] == "Success"
    assert kubexm("task", "retry", failed["task"]["id"], "-f", file, "--set", "a=b").code == 2


def test_nobody_takes_a_cluster_away_without_being_asked(kubexm: Kubexm, file: Path) -> None:
    told = kubexm("delete", "cluster", "-f", file)
    assert told.code == 2
    assert "--yes is missing" in told.err


def test_a_bundle_that_is_not_there_refuses_before_anything_begins(
    kubexm: Kubexm, file: Path
) -> None:
    told = kubexm("create", "cluster", "-f", file, "--bundle", file.with_name("no.tar.zst"))
    assert told.code != 0
    assert "no.tar.zst" in told.err
    assert "Traceback" not in told.err


@pytest.mark.parametrize(
    "words",
    [
        ("plan",),
        ("graph",),
        ("plan", "--check", "--simulate"),
        ("create", "cluster", "--simulate"),
    ],
)
def test_what_is_no_bundle_is_refused_also_where_none_is_opened(
    kubexm: Kubexm, file: Path, words: tuple[str, ...]
) -> None:
    told = kubexm(*words, "-f", file, "--bundle", file.with_name("nofile"))

    assert told.code == 2
    assert f"{file.with_name('nofile')}" in told.err


def test_a_plan_says_what_its_bundle_lacks(kubexm: Kubexm, file: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty.tar.zst"
    nothing = BillOfMaterials(
        kubernetes=(), binaries=(), images=(), charts=(), packages=(), warnings=()
    )
    asyncio.run(bundle_build.build(nothing, Store(tmp_path / "store"), empty))

    planned = kubexm("plan", "-f", file, "--bundle", empty)
    drawn = kubexm("graph", "-f", file, "--bundle", empty)

    lacks = f"warning: the bundle `{empty}`: `kubernetes/v1.36.4/kubelet/amd64` is missing"
    assert (planned.code, drawn.code) == (0, 0)
    assert lacks in planned.out
    assert lacks in drawn.err
