"""The command that asks hosts whether they are fit for a cluster, as people and programs see it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cli.answers import Kubexm

from kubexm.app.preflight import Preflight
from kubexm.cli.fitness import as_data, as_text, exit_code
from kubexm.common.checks import CHECKS, Check, Finding
from kubexm.sim import Machine, World, WorldSettings

GUIDE = Path(__file__).parents[2] / "docs" / "howto" / "check-hosts-before-a-cluster.md"
FILE = """\
apiVersion: kubexm.io/v1alpha1
kind: Cluster
metadata: {name: demo}
spec:
  hosts:
    - {name: cp1, address: 10.0.0.11}
    - {name: "node[1:2]", address: "10.0.0.[21:22]"}
  kubernetes: {version: v1.36.3}
"""
SMALL = Machine(memory_mib=512, swap_mib=1024)
ADDRESSES: dict[str, tuple[str, ...]] = {
    "cp1": ("10.0.0.11",),
    "node1": ("10.0.0.21",),
    "node2": ("10.0.0.22",),
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "demo.yaml"
    path.write_text(FILE)
    return path


@pytest.fixture
def world(tmp_path: Path) -> Path:
    """Hosts of which one is too small."""
    settings = WorldSettings(addresses=ADDRESSES, machines={"node2": SMALL})
    World.create(tmp_path / "world", settings).close()
    return tmp_path / "world"


def test_hosts_that_are_fit_make_a_table_and_no_trouble(
    kubexm: Kubexm, file: Path, home: Path
) -> None:
    answer = kubexm("preflight", "-f", file, "--simulate")

    head, *rows = answer.out.splitlines()
    assert (answer.code, answer.err) == (0, "")
    assert head.split() == ["CHECK", "RESULT", "HOSTS"]
    assert rows[0].split() == ["reachable", "ok", "cp1", "node1", "node2"]
    assert answer.out.endswith(
        "\nnote: the check `artifacts` is left out of a simulation: nobody real is asked"
        "\ndemo: fit; 3 hosts, 34 checks: 0 refusals, 0 warnings, 0 skipped\n"
    )
    assert not home.exists(), "a world that nobody asked to keep is thrown away"


def test_refusals_come_first_then_warnings_then_what_is_skipped(
    kubexm: Kubexm, file: Path, world: Path
) -> None:
    file.write_text(f"{FILE}  preflight: {{skip: [firewall]}}\n")

    answer = kubexm("preflight", "-f", file, "--simulate", "--world", world)

    assert answer.code == 1
    assert [line.split()[:3] for line in answer.out.splitlines()[1:5]] == [
        ["memory", "refused", "node2"],
        ["swap", "warning", "node2"],
        ["firewall", "skipped", "-"],
        ["reachable", "ok", "cp1"],
    ]
    assert "\nmemory                  ok       cp1 node1\n" in answer.out
    assert (
        "✗ memory: less than 1,024 MiB of memory: 512 MiB  [node2]\n"
        "    hint: give the host more, or want less\n\n"
        "! swap: there is swap: 1,024 MiB  [node2]\n    hint: kubexm turns it off"
    ) in answer.out
    assert "demo: not fit; 3 hosts, 33 checks: 1 refusal, 1 warning, 1 skipped\n" in answer.out
    assert "hint: leave a check out with `preflight: {skip: [NAME]}`" in answer.out


@pytest.mark.parametrize(("style", "read"), [("json", json.loads), ("yaml", yaml.safe_load)])
def test_documents_have_every_check_with_its_result(
    kubexm: Kubexm, file: Path, world: Path, style: str, read: Callable[[str], dict[str, Any]]
) -> None:
    file.write_text(f"{FILE}  preflight: {{skip: [mtu]}}\n")

    answer = kubexm("preflight", "-f", file, "--simulate", "--world", world, "-o", style)

    told = read(answer.out)
    checks = {each["name"]: each for each in told["checks"]}
    assert (answer.code, told["cluster"], told["fit"], told["missing"]) == (1, "demo", False, [])
    assert "`artifacts` is left out" in told["notes"][0]
    assert checks["memory"]["result"] == "refused"
    assert checks["memory"]["hosts"] == ["cp1", "node1", "node2"]
    assert checks["memory"]["findings"] == [
        {
            "kind": "refusal",
            "hosts": ["node2"],
            "message": "less than 1,024 MiB of memory: 512 MiB",
            "hint": "give the host more, or want less",
        }
    ]
    assert (checks["swap"]["result"], checks["systemd"]["result"]) == ("warning", "ok")
    assert (checks["mtu"]["result"], checks["mtu"]["hosts"]) == ("skipped", [])


def test_a_worker_that_is_gone_gives_an_exit_code_of_its_own(
    kubexm: Kubexm, file: Path, tmp_path: Path
) -> None:
    world = World.create(tmp_path / "world", WorldSettings(addresses=ADDRESSES))
    world.host("node1").stop()
    world.host("node2").stop()
    world.close()

    answer = kubexm("preflight", "-f", file, "--simulate", "--world", tmp_path / "world")

    assert answer.code == 5
    assert "reachable               warning  node1 node2\n" in answer.out
    assert "! reachable: the host could not be asked  [node1 (simulated host `node1`" in answer.out
    assert "demo: fit; " in answer.out


def test_some_hosts_are_asked_alone(kubexm: Kubexm, file: Path, world: Path) -> None:
    answer = kubexm("preflight", "-f", file, "--simulate", "--world", world, "--hosts", "node1")
    wrong = kubexm("preflight", "-f", file, "--simulate", "--hosts", "nod1")

    assert answer.code == 0
    assert "cp1" not in answer.out
    assert wrong.code == 2
    assert "did you mean `node1`?" in wrong.err


def test_a_check_that_is_not_there_is_refused_with_the_nearest(kubexm: Kubexm, file: Path) -> None:
    file.write_text(f"{FILE}  preflight: {{skip: [memroy]}}\n")

    answer = kubexm("preflight", "-f", file, "--simulate")

    assert answer.code == 2
    assert f"{file}:9:22: spec.preflight.skip[0]: there is no check `memroy`" in answer.err
    assert "did you mean `memory`?" in answer.err


def test_what_is_no_bundle_is_refused(kubexm: Kubexm, file: Path, tmp_path: Path) -> None:
    answer = kubexm("preflight", "-f", file, "--simulate", "--bundle", tmp_path / "nofile")

    assert answer.code == 2
    assert f"{tmp_path / 'nofile'}" in answer.err


def test_a_world_of_fewer_hosts_is_refused_as_a_creation_refuses_it(
    kubexm: Kubexm, file: Path, tmp_path: Path
) -> None:
    World.create(tmp_path / "w", WorldSettings(addresses={"cp1": ("10.0.0.11",)})).close()

    looked = kubexm("preflight", "-f", file, "--simulate", "--world", tmp_path / "w")
    made = kubexm("create", "cluster", "-f", file, "--simulate", "--world", tmp_path / "w")

    assert (looked.code, looked.err) == (made.code, made.err)
    assert looked.code == 2
    assert "make another one with `--simulate --world NEW`" in looked.err


def test_hosts_with_the_same_trouble_are_told_once() -> None:
    findings = tuple(
        Finding("memory", (f"n{n}",), "less than 1 MiB", f"{n} MiB", "more") for n in range(9)
    )
    pair = (
        Finding("unique-macs", ("n1", "n2"), "the same", "`a`", "x"),
        Finding("unique-macs", ("n3", "n4"), "the same", "`b`", "x"),
    )
    unknown = Finding("clock-kept", ("n1",), "nobody tells", kind="unknown")
    found = Preflight(
        "demo", ("n1",), {"memory": ("n1",)}, (*findings, *pair, unknown), missing=("n9",)
    )

    text = as_text(found)

    assert "✗ memory: less than 1 MiB  [n0 (0 MiB) n1 (1 MiB) n2 (2 MiB)" in text
    assert "5 (5 MiB) … 9 hosts]\n    hint: more\n" in text
    assert "✗ unique-macs: the same  [n1 n2 (`a`) n3 n4 (`b`)]" in text
    assert "? clock-kept: nobody tells  [n1]\n\n" in text
    assert exit_code(found) == 1
    assert exit_code(Preflight("demo", (), {}, (unknown,))) == 0


def test_every_check_can_be_told() -> None:
    made = dict.fromkeys(CHECKS, ("n1",))
    findings = tuple(Finding(name, ("n1",), "x", kind=row.severity) for name, row in CHECKS.items())

    told = as_data(Preflight("demo", ("n1",), made, findings))

    words = {"refusal": "refused", "warning": "warning"}
    assert {each["name"]: each["result"] for each in told["checks"]} == {
        name: words[row.severity] for name, row in CHECKS.items()
    }
    assert all(row.about and row.remedy for row in CHECKS.values())


def test_the_guide_tells_of_every_check() -> None:
    rows = [line for line in GUIDE.read_text().splitlines() if line.startswith("| `")]
    told = [[cell.strip() for cell in row.strip("|").split(" | ")] for row in rows]

    assert [row for row in told if row[1] in ("refusal", "warning")] == [
        [f"`{name}`", row.severity, f"{row.about}{_thresholds(row)}"]
        for name, row in CHECKS.items()
    ]


def _thresholds(row: Check) -> str:
    keys = [f"`{key}`" for key in row.threshold.split(", ") if key]
    return f"; {', '.join(keys)}" if keys else ""
