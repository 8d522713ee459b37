"""`kubexm hosts check` on real hosts: dead, with another sudo password, with a wrong clock."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from lab import faults
from lab.testing import ROOT, Lab

pytestmark = [pytest.mark.lab, pytest.mark.timeout(150)]


def written(lab: Lab, place: Path) -> Path:
    """Four hosts: `node1` is fine, and each of the others is to have something wrong."""
    file = place / "site.yaml"
    address = {name: lab.address(name) for name in ("node1", "node2", "node3", "trixie1")}
    file.write_text(f"""
apiVersion: kubexm.io/v1alpha1
kind: Pipeline
metadata: {{name: site}}
spec:
  ssh: {{user: ops, keys: [{lab.key()}], config: false, agent: false,
        knownHosts: [{lab.site.known_hosts}],
        become: {{password: "env://SUDO_PASSWORD"}}}}
  hosts:
    - {{name: node1, address: {address["node1"]}, sudo: true}}
    - {{name: node2, address: {address["node2"]}, sudo: true}}
    - {{name: node3, address: {address["node3"]}, sudo: true,
       ssh: {{become: {{password: "env://WRONG_PASSWORD"}}}}}}
    - {{name: trixie1, address: {address["trixie1"]}, ssh: {{user: root}}}}
  modules:
    - {{name: m, tasks: [{{name: t, steps: [{{name: s, file: {{path: /srv/never}}}}]}}]}}
""")
    return file


def checked(lab: Lab, file: Path, *words: str) -> tuple[int, str]:
    secrets = {"SUDO_PASSWORD": lab.password("ops"), "WRONG_PASSWORD": "not-this-one"}
    done = subprocess.run(
        [sys.executable, "-m", "kubexm", "hosts", "check", "-f", str(file), *words],
        env={**os.environ, **secrets, "KUBEXM_HOME": str(file.parent / "home")},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stderr == ""
    assert [name for name, value in secrets.items() if value in done.stdout] == []
    return done.returncode, done.stdout


def test_each_host_tells_what_is_wrong_with_it(lab_network: Lab, tmp_path: Path) -> None:
    lab, file = lab_network, written(lab_network, tmp_path)
    faults.kill(lab.site, "node2")
    faults.skew(lab.site, "trixie1", 300)

    code, text = checked(lab, file)
    _, document = checked(lab, file, "-o", "json")

    print(text)
    hosts = {host["name"]: host for host in json.loads(document)["hosts"]}
    kinds = {name: [each["kind"] for each in host["problems"]] for name, host in hosts.items()}
    assert code == 1, text
    assert kinds == {
        "node1": [],
        "node2": ["unreachable"],
        "node3": ["sudo"],
        "trixie1": ["clock"],
    }
    assert "commands can't run as root: the password for sudo is wrong  [node3]" in text
    assert "300" in hosts["trixie1"]["problems"][0]["message"]
    assert [name for name, host in hosts.items() if not host["reached"]] == ["node2"]
    assert hosts["node3"]["facts"]["hostname"] == "node3"
    assert hosts["node1"]["facts"]["hostname"] == "node1"
    assert hosts["node1"]["facts"]["ports"]["tcp/22"], "only root sees who listens"
    assert not (lab.root("node1") / "srv/never").exists()
    assert not (tmp_path / "home").exists()


def test_hosts_that_are_well_exit_with_0(lab_network: Lab, tmp_path: Path) -> None:
    file = written(lab_network, tmp_path)

    code, text = checked(lab_network, file, "--hosts", "node1", "--hosts", "trixie*")

    assert code == 0, text
    assert text.endswith("2 hosts, nothing is wrong\n")
