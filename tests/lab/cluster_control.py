"""A control machine that makes real clusters on hosts of the lab, as a person at it would."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import msgspec
import yaml

from lab.testing import ROOT, Lab

_SECONDS = 900.0
# What this kind of host wants: it shares a kernel, and control groups of the first version.
_SPEC: Mapping[str, Any] = {
    "kubernetes": {
        "kubelet": {
            "config": {
                "failCgroupV1": False,
                "failSwapOn": False,
                "localStorageCapacityIsolation": False,
                "featureGates": {"KubeletInUserNamespace": True},
            }
        },
        "kubeProxy": {
            "mode": "nftables",
            "config": {
                "conntrack": {
                    "maxPerCore": 0,
                    "min": 0,
                    "tcpEstablishedTimeout": "0s",
                    "tcpCloseWaitTimeout": "0s",
                }
            },
        },
        "kubeadm": {"ignorePreflightErrors": ["SystemVerification", "KernelModules"]},
    },
    "containerRuntime": {
        "systemdCgroup": False,
        "config": {"plugins": {"io.containerd.cri.v1.runtime": {"restrict_oom_score_adj": True}}},
    },
    "network": {"plugin": "routed"},
    "dns": {"upstream": []},
    "system": {"ntp": {"enabled": False}},
}


class Answer(msgspec.Struct, frozen=True):
    """What a command said, and how it ended."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        return json.loads(self.out)

    def changed(self) -> set[tuple[str, str]]:
        """The units of a run that changed something, by the end of their path and their host."""
        nodes = self.data["result"]["nodeResults"]
        return {
            (id.partition("/")[2], host)
            for id, node in nodes.items()
            for host, result in node["hostResults"].items()
            if result.get("changed")
        }


class ClusterControl:
    """Its state, its cluster file, and the software that clusters are made of."""

    def __init__(self, lab: Lab, software: Path, place: Path) -> None:
        self.lab = lab
        self.file = place / "cluster.yaml"
        self.bundle = software / "bundle.tar.zst"
        self._software = software
        self.kubeconfig = place / "kubeconfig"
        places = {"KUBEXM_HOME": str(place / "home"), "KUBECONFIG": str(self.kubeconfig)}
        self._environment = {**os.environ, **places}

    def declare(self, roles: Mapping[str, list[str]], **more: Any) -> None:
        """Write the file of a cluster; `more` goes into its `spec`, above what the lab wants."""
        hosts = sorted({host for those in roles.values() for host in those})
        ssh = {
            "user": "root",
            "keys": [str(self.lab.key())],
            "knownHosts": [str(self.lab.site.known_hosts)],
        }
        version = json.loads((self._software / "software.json").read_text())["kubernetes"]
        spec = {
            "ssh": ssh,
            "hosts": [
                {"name": name, "address": self.lab.address(name), "arch": "amd64"} for name in hosts
            ],
            "roleGroups": dict(roles),
            **_merged(_merged(_SPEC, more), {"kubernetes": {"version": version}}),
        }
        head = {"apiVersion": "kubexm.io/v1alpha1", "kind": "Cluster", "metadata": {"name": "lab"}}
        self.file.write_text(yaml.safe_dump({**head, "spec": spec}, sort_keys=False))

    def creation(self, *more: str) -> tuple[str, ...]:
        """The words by which the cluster is made."""
        catalog, bundle = self._software / "catalog.toml", self.bundle
        words = ("--catalog", str(catalog), "--bundle", str(bundle), "-o", "json", *more)
        return ("create", "cluster", "-f", str(self.file), *words)

    def create(self, *more: str) -> Answer:
        return self.kubexm(*self.creation(*more))

    def kubexm(self, *words: str, seconds: float = _SECONDS) -> Answer:
        begun = self.begin(*words)
        out, err = begun.communicate(timeout=seconds)
        return Answer(begun.returncode, out, err)

    def await_health(self, seconds: float = 120.0) -> Answer:
        """What the cluster says of itself once all is well; the test fails if that takes longer.

        Kubelets tell of pods that have just started when they come to it.
        """
        end = time.monotonic() + seconds
        while (found := self.kubexm("health", "lab", "-o", "json")).code != 0:
            assert time.monotonic() < end, found.out
            time.sleep(1)
        return found

    def killed_after(self, seconds: float, *words: str) -> Answer:
        """What came of a command that lost its life after so long, unless it had ended before."""
        begun = self.begin(*words)
        try:
            out, err = begun.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            begun.kill()
            out, err = begun.communicate()
        return Answer(begun.returncode, out, err)

    def begin(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "kubexm", *words],
            env=self._environment,
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def kubectl(self, *words: str, stdin: str = "", host: str = "node1") -> str:
        """What kubectl says on a control plane; the test fails if it fails."""
        program = ("/usr/local/bin/kubectl", "--cache-dir", "/tmp/kubectl")
        return self.on(
            host, *program, "--kubeconfig", "/etc/kubernetes/admin.conf", *words, stdin=stdin
        )

    def on(self, host: str, *words: str, stdin: str = "") -> str:
        """What a command says on a host, as root; the test fails if it fails."""
        done = self.tried_on(host, *words, stdin=stdin)
        assert done.returncode == 0, done.stderr or done.stdout
        return done.stdout

    def tried_on(self, host: str, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        ssh = ("ssh", "-F", self.lab.site.ssh_config, "-o", "BatchMode=yes", f"root@{host}")
        return self.lab.run(*ssh, *map(_quoted, words), stdin=stdin, timeout=240)


def _quoted(word: str) -> str:
    return "'" + word.replace("'", "'\\''") + "'"


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Two mappings as one, the parts of both too; the second wins."""
    found = deepcopy(dict(below))
    for key, value in above.items():
        both = isinstance(value, Mapping) and isinstance(found.get(key), Mapping)
        found[key] = _merged(found[key], value) if both else value
    return found
