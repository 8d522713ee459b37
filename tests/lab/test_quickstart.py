"""The first cluster of who is new here: real or simulated, and what is said of that."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.lab.cluster_control import _SPEC
from tests.lab.test_machine import GOOD, ROOT

from kubexm.app import planning
from kubexm.app.params import ClusterParams, OperationParams, PlanParams
from lab import commands, quickstart, requirements, workplace
from lab.cgroups import Groups
from lab.errors import CommandFailed
from lab.requirements import Machine
from lab.site import Site
from lab.software import making

MAKERS = frozenset(making.PROGRAMS)
BARE = dataclasses.replace(GOOD, programs=frozenset())


def command(*words: str, home: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "lab", *words],
        cwd=ROOT,
        env={**os.environ, "KUBEXM_HOME": str(home), "KUBEXM_LAB": "", **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def leaves(data: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    if isinstance(data, Mapping):
        for key, value in data.items():
            yield from leaves(value, (*path, key))
    else:
        yield path, data


def test_a_machine_that_has_everything_gets_a_real_cluster() -> None:
    assert quickstart.without(GOOD, MAKERS, 3) == []


def test_what_apt_has_is_not_missing() -> None:
    assert quickstart.without(BARE, MAKERS - {"gcc"}, 3) == []


@pytest.mark.parametrize(
    ("machine", "makers", "told"),
    [
        (dataclasses.replace(GOOD, uid=1000), MAKERS, "root: only root"),
        (dataclasses.replace(GOOD, may_mount=False), MAKERS, "this root may not mount"),
        (dataclasses.replace(GOOD, mounted=frozenset()), MAKERS, "a mounted `cgroup2`"),
        (dataclasses.replace(GOOD, watchers=0), MAKERS, "watchers of files: 3 hosts"),
        (GOOD, MAKERS - {"go"}, "the program `go`: golang-go, or from go.dev"),
        (GOOD, MAKERS - {"apt-get", "gcc"}, "the program `gcc`"),
        (BARE, MAKERS - {"apt-get"}, "the program `systemd-nspawn`"),
    ],
)
def test_whatever_else_is_missing_is_a_reason_to_simulate(
    machine: Machine, makers: frozenset[str], told: str
) -> None:
    assert any(told in lack for lack in quickstart.without(machine, makers, 3))


def test_nothing_is_built_with_where_the_software_is_fetched() -> None:
    assert quickstart.without(GOOD, frozenset(), 3, builds=False) == []
    assert quickstart.without(BARE, frozenset({"apt-get"}), 3, builds=False) == []


@pytest.mark.parametrize(("held", "may"), [("000001ffffffffff", True), ("00000000a80425fb", False)])
def test_root_of_a_container_is_told_from_a_whole_one(held: str, may: bool) -> None:
    assert requirements._may_mount(f"Name:\tpython\nCapEff:\t{held}\n") is may


def test_without_go_it_says_so_and_simulates(tmp_path: Path) -> None:
    done = command("quickstart", home=tmp_path / "home", PATH=str(tmp_path))

    assert done.returncode == 0, done.stderr
    assert "Real hosts can't be had on this machine. What is missing:" in done.stdout
    assert "  the program `go`: golang-go" in done.stdout
    shown = f"create cluster -f {quickstart.FILE} --simulate"
    assert any(line.startswith("+ ") and shown in line for line in done.stdout.splitlines())
    assert "cluster `quickstart` is there, simulated" in done.stdout
    assert "This was a simulation" in done.stdout


@pytest.mark.timeout(120)
def test_the_demo_simulates_at_once_finds_nothing_to_do_later_and_can_be_taken_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    home = tmp_path / "home"
    first, second = (command("quickstart", "--simulate", home=home) for _ in range(2))
    monkeypatch.setenv("KUBEXM_HOME", str(home))
    damaged = home / "data" / "worlds" / "other" / "kubexm.db"  # which is nobody else's trouble
    damaged.parent.mkdir()
    damaged.write_bytes(b"garbage" * 1000)
    taken = quickstart.down(tmp_path / "no lab")
    again = quickstart.down(tmp_path / "no lab")

    assert (first.returncode, second.returncode, taken, again) == (0, 0, 0, 0)
    assert "nothing to do" not in first.stdout
    assert "Real hosts" not in first.stdout
    assert "running quickstart: " in first.stderr
    assert "changed  node1  create-cluster/" in first.stderr
    end = first.stdout.partition("This was a simulation")[2]
    for way in ("get cluster quickstart\n", "plan -f ", "graph -f ", "`make quickstart-down`"):
        assert way in end
    assert "nothing to do" in second.stdout
    said = capfd.readouterr().out
    assert said.count("+ ") == 1
    assert said.count("The quickstart is gone") == 2


def test_another_lab_is_refused_since_the_file_names_hosts_of_this_one(tmp_path: Path) -> None:
    refused = command("--path", str(tmp_path), "quickstart", home=tmp_path)

    assert refused.returncode == 1
    assert f"not in `{tmp_path}`: leave out `--path` and KUBEXM_LAB" in refused.stderr


def test_its_file_is_sound_and_has_what_hosts_of_the_lab_need() -> None:
    file = ROOT / quickstart.FILE
    planned = planning.plan(PlanParams(OperationParams(ClusterParams(file))))
    spec = yaml.safe_load(file.read_text())["spec"]

    assert planned.warnings == ()
    assert planned.about is not None
    assert (planned.about.version, planned.about.network) == (quickstart._version(), "routed")
    assert {role: len(hosts) for role, hosts in planned.about.roles.items()} == {
        "control-plane": 1,
        "worker": 2,
    }
    found = dict(leaves(spec))
    assert {path: found.get(path) for path, _ in leaves(_SPEC)} == dict(leaves(_SPEC))


def test_a_command_in_the_lab_finds_programs_and_keeps_what_it_knows_there(tmp_path: Path) -> None:
    site = Site(tmp_path, "abc123", "boot", Groups(tmp_path / "unified", ()))
    given = {"PATH": "/bin", "KUBECONFIG": "/elsewhere"}

    found = workplace.variables(site, given)
    named = workplace.variables(site, {**given, "KUBEXM_HOME": "/mine"})

    assert found["PATH"] == f"{Path(sys.executable).parent}:{tmp_path}/bin:/bin"
    assert found["KUBECONFIG"] == f"{tmp_path}/kubeconfig"
    assert (found["KUBEXM_HOME"], named["KUBEXM_HOME"]) == (f"{tmp_path}/kubexm", "/mine")


def test_the_software_is_at_hand_under_short_names_also_when_it_is_another(tmp_path: Path) -> None:
    site = Site(tmp_path, "abc123", "boot", Groups(tmp_path / "unified", ()))
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "catalog.toml").write_text(name)
        workplace.furnish(site, tmp_path / name, tmp_path / name / "kubectl")

    assert (workplace.bundles(site) / "catalog.toml").read_text() == "new"
    assert (workplace.programs(site) / "kubectl").readlink() == tmp_path / "new/kubectl"


def test_a_program_is_heard_while_it_runs_and_quoted_when_it_fails() -> None:
    heard: list[str] = []
    commands.follow("sh", "-c", "echo one; echo two >&2", heard=heard.append)

    with pytest.raises(CommandFailed, match="ended with 3: last words"):
        commands.follow("sh", "-c", "echo last words; exit 3", heard=heard.append)

    assert heard == ["one", "two", "last words"]
