"""A control machine that makes real clusters on hosts of the lab, as a person at it would."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from copy import deepcopy
from pathlib import Path
from typing import Any

import msgspec
import yaml
from tests.started import started

from kubexm.app import tasks
from kubexm.common.paths import Home
from kubexm.plan.result import GraphExecutionResult
from lab.testing import ROOT, Lab

_SECONDS = 900.0
_LOOK_AGAIN = 0.1
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
        """The units of a run that changed something, by the end of their path and their host.

        Of a dry run, those that would.
        """
        return {(unit, host) for unit, host, result in self._units() if result["changed"]}

    def differences(self) -> str:
        """What a dry run would write otherwise into files."""
        return "".join(result["diff"] for _, _, result in self._units())

    def told(self) -> dict[str, str]:
        """What stands in the way, by the host it concerns; by nothing if it is of no host."""
        if "error" not in self.data:
            failed = (unit for unit in self._units() if unit[2]["status"] == "Failed")
            return {host: result["message"] for _, host, result in failed}
        named = re.search(r"\[([\w ]+)\]", self.err)
        return dict.fromkeys(named[1].split() if named else [""], self.err)

    def left_out(self) -> set[str]:
        """The hosts that a run went on without, as the report and the cluster tell it alike."""
        hosts = {one["name"] for one in self.data["cluster"]["hosts"] if one["leftOut"]}
        result, report = self.data["result"], self.data["report"]
        assert hosts == {*result.get("quarantined", ())} == {*report.get("without", ())}
        return hosts

    def _units(self) -> Iterator[tuple[str, str, dict[str, Any]]]:
        for id, node in self.data["result"]["nodeResults"].items():
            for host, result in node["hostResults"].items():
                yield id.partition("/")[2], host, result


class ClusterControl:
    """Its state, its cluster file, and the software that clusters are made of."""

    def __init__(self, lab: Lab, software: Path, place: Path) -> None:
        self.lab = lab
        self.file = place / "cluster.yaml"
        self.bundle = software / "bundle.tar.zst"
        self._software = software
        self.kubeconfig = place / "kubeconfig"
        root = place / "home"
        self.home = Home(root / "state", root / "data", root / "cache")
        places = {"KUBEXM_HOME": str(root), "KUBECONFIG": str(self.kubeconfig)}
        self._environment = {**os.environ, **places}

    def declare(
        self,
        roles: Mapping[str, list[str]],
        of_hosts: Mapping[str, dict[str, Any]] | None = None,
        /,
        **more: Any,
    ) -> None:
        """Write the file of a cluster; `more` goes into its `spec`, above what the lab wants.

        `of_hosts`: what else is said of single hosts.
        """
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
                {
                    "name": name,
                    "address": self.lab.address(name),
                    "arch": "amd64",
                    **(of_hosts or {}).get(name, {}),
                }
                for name in hosts
            ],
            "roleGroups": dict(roles),
            **_merged(_merged(_SPEC, more), {"kubernetes": {"version": version}}),
        }
        head = {"apiVersion": "kubexm.io/v1alpha1", "kind": "Cluster", "metadata": {"name": "lab"}}
        self.file.write_text(yaml.safe_dump({**head, "spec": spec}, sort_keys=False))

    def creation(self, *more: str) -> tuple[str, ...]:
        """The words by which the cluster is made."""
        return ("create", "cluster", *self._of_file, *more)

    def create(self, *more: str) -> Answer:
        return self.kubexm(*self.creation(*more))

    def foretell(self) -> Answer:
        """What the plan says would change, by a look at the hosts."""
        return self.kubexm("plan", "--check", *self._of_file)

    @property
    def _of_file(self) -> tuple[str, ...]:
        catalog, bundle = self._software / "catalog.toml", self.bundle
        words = ("--catalog", str(catalog), "--bundle", str(bundle), "-o", "json")
        return ("-f", str(self.file), *words)

    def delete(self, *more: str) -> None:
        """Take the cluster away by its name; the test fails if it fails."""
        deleted = self.kubexm("delete", "cluster", "lab", "--yes", "-o", "json", *more)
        assert deleted.code == 0, deleted.err

    def placed(self, text: str) -> str:
        """Where the only such text is in the file, as errors name the place."""
        before, _, after = self.file.read_text().partition(text)
        assert text not in after
        line = before.rpartition("\n")[2]
        return f"{self.file}:{before.count(chr(10)) + 1}:{len(line) + 1}"

    def kubexm(self, *words: str, seconds: float = _SECONDS) -> Answer:
        with self.running(*words) as process:
            out, err = process.communicate(timeout=seconds)
        return Answer(process.returncode, out, err)

    def await_health(self, seconds: float = 120.0) -> Answer:
        """What the cluster says of itself once all is well; the test fails if that takes longer.

        Kubelets tell of pods that have just started when they come to it.
        """
        end = time.monotonic() + seconds
        while (found := self.kubexm("health", "lab", "-o", "json")).code != 0:
            assert time.monotonic() < end, found.out
            time.sleep(1)
        return found

    def ill(self) -> set[str]:
        """Where something is the matter with the cluster, as it says itself."""
        found = self.kubexm("health", "lab", "-o", "json").data["checks"]
        return {one["where"] for one in found if one["grade"] != "well"}

    def killed(self, is_due: Callable[[], bool], seconds: float, *words: str) -> Answer:
        """What came of a command that lost its life so long after something was so."""
        with self.running(*words) as process:
            while not is_due() and process.poll() is None:
                time.sleep(_LOOK_AGAIN)
            try:
                out, err = process.communicate(timeout=seconds)
            except subprocess.TimeoutExpired:
                process.kill()
                out, err = process.communicate()
        return Answer(process.returncode, out, err)

    def tasks(self) -> list[str]:
        return [task["id"] for task in self.kubexm("task", "list", "-o", "json").data]

    def so_far(self, task: str) -> GraphExecutionResult:
        """What came of the units of a run, also while somebody works on it."""
        return tasks.show(self.home, task).result

    def running(self, *words: str) -> AbstractContextManager[subprocess.Popen[str]]:
        """A kubexm of its own, which works on hosts no longer than the block lasts."""
        argv = [sys.executable, "-m", "kubexm", *words]
        return started(argv, env=self._environment, cwd=ROOT, stdin=subprocess.DEVNULL)

    def kubectl(self, *words: str, stdin: str = "", host: str = "node1") -> str:
        """What kubectl says on a control plane; the test fails if it fails."""
        # Where no host is compared: what kubectl keeps is not kubexm's.
        program = ("/usr/local/bin/kubectl", "--cache-dir", "/dev/shm/kubectl")
        return self.on(
            host, *program, "--kubeconfig", "/etc/kubernetes/admin.conf", *words, stdin=stdin
        )

    def await_kubectl(
        self, *words: str, seconds: float = 120.0, stdin: str = "", host: str = "node1"
    ) -> str:
        """What kubectl says once it succeeds; metrics are there when they were gathered."""
        end = time.monotonic() + seconds
        while True:
            try:
                return self.kubectl(*words, stdin=stdin, host=host)
            except AssertionError:
                if time.monotonic() > end:
                    raise
                time.sleep(1)

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
