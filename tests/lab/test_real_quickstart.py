"""The quickstart as somebody new gives it: in a tree of its own, on hosts of a lab of its own."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab import demolition, mounts, quickstart
from lab import site as sites
from lab.testing import ROOT

pytestmark = [pytest.mark.lab, pytest.mark.timeout(1800)]

READY = '{.items[*].status.conditions[?(@.type=="Ready")].status}'
_OWN = ("KUBEXM_LAB", "KUBEXM_HOME", "KUBECONFIG")
"""Variables that would lead to what somebody works with."""


class Tree:
    """A copy of this tree, in which nobody has made anything yet."""

    def __init__(self, place: Path, version: str) -> None:
        self.root = place / "tree"
        for name in ("examples", "lab", "scripts", "src"):
            without = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / name, self.root / name, ignore=without)
        # The version whose software is there: to make another one takes longer than all the rest.
        file = self.root / quickstart.FILE
        file.write_text(re.sub(r"version: v[0-9.]+", f"version: {version}", file.read_text()))
        kept = {name: value for name, value in os.environ.items() if name not in _OWN}
        state = {f"XDG_{kind}_HOME": str(place / kind) for kind in ("DATA", "STATE")}
        self._environment = {**kept, **state, "PYTHONPATH": str(self.root / "src")}

    @property
    def lab(self) -> Path:
        return self.root / ".lab"

    def give(self, *words: str) -> str:
        """What a command of the lab says; the test fails if it fails."""
        return self.done(*words).stdout

    def done(self, *words: str) -> subprocess.CompletedProcess[str]:
        """The same with what it says beside that, such as how it gets on."""
        done = subprocess.run(
            [sys.executable, "-m", "lab", *words],
            cwd=self.root,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
        return done


@pytest.fixture
def tree(software: Path, tmp_path: Path) -> Iterator[Tree]:
    found = Tree(tmp_path, json.loads((software / "software.json").read_text())["kubernetes"])
    try:
        yield found
    finally:
        demolition.down(found.lab)


def test_it_makes_a_real_cluster_that_kubectl_sees_and_takes_all_of_it_away(tree: Tree) -> None:
    made = tree.done("quickstart")
    first = made.stdout
    nodes = tree.give("run", "--", "kubectl", "get", "nodes", "-o", f"jsonpath={READY}")
    second = tree.give("quickstart")
    site = sites.require(tree.lab)
    timers = tree.give("run", "--", *_on_first(tree), "systemctl list-timers --no-legend")
    down = tree.give("quickstart", "--down")

    assert "This was a real one" in first
    assert_it_shows_what_it_does(made)
    assert_it_shows_the_cluster(steps(first)["a look"])
    assert_it_tells_how_to_look_around(first)
    assert_it_shows_the_cluster(steps(second)["a look"])
    assert nodes.split() == ["True"] * quickstart.HOSTS
    assert "nothing to do" not in first
    assert "nothing to do" in second
    assert timers == ""
    assert "The quickstart is gone" in down
    assert not tree.lab.exists()
    assert mounts.below(tree.root) == []
    assert not any(group.exists() for group in (site.groups.unified, *site.groups.controllers))


def steps(said: str) -> dict[str, str]:
    """What was said in each step, by its heading."""
    _, *parts = re.split(r"^== (\d) of 4: (.+)\n", said, flags=re.MULTILINE)
    assert parts[::3] == ["1", "2", "3", "4"]
    return dict(zip(parts[1::3], parts[2::3], strict=True))


def assert_it_shows_what_it_does(made: subprocess.CompletedProcess[str]) -> None:
    """Each command before it is run, and how it gets on."""
    found = steps(made.stdout)
    assert [*found] == ["software", "hosts", "cluster", "a look"]
    assert " -m lab software --kubernetes v" in shown(found["software"])
    assert "the software is there after" in found["software"]
    assert f" -m lab up --hosts {quickstart.HOSTS}" in shown(found["hosts"])
    assert "the lab is up after" in found["hosts"]
    assert f" -- kubexm create cluster -f {quickstart.FILE} " in shown(found["cluster"])
    assert "cluster `quickstart` is there\n" in found["cluster"]
    assert "running quickstart: " in made.stderr
    changed = set(re.findall(r"^changed +(node\d) +create-cluster/", made.stderr, re.MULTILINE))
    assert changed == {"node1", "node2", "node3"}


def assert_it_shows_the_cluster(look: str) -> None:
    """What kubectl has seen: nodes that are ready, and pods of the system."""
    assert shown(look).endswith(" -- kubectl get nodes,pods -A")
    ready = re.findall(r"^node/(\S+) +Ready ", look, re.MULTILINE)
    assert sorted(ready) == ["node1", "node2", "node3"]
    pods = re.findall(r"^kube-system +pod/(\S+) ", look, re.MULTILINE)
    for name in ("kube-apiserver-node1", "etcd-node1", "coredns-"):
        assert any(pod.startswith(name) for pod in pods), pods


def assert_it_tells_how_to_look_around(said: str) -> None:
    """At the very end, where one looks for what to do next."""
    end = said.partition("This was a real one")[2]
    for command in (
        "make lab-shell ",
        "kubectl get nodes -o wide",
        f"kubexm health {quickstart.NAME}",
        f"kubexm get cluster {quickstart.NAME}",
        "make lab-shell HOST=node1 ",
        "`make quickstart`",
        "`make quickstart-down`",
    ):
        assert command in end


def shown(step: str) -> str:
    """The command that was shown before it was run."""
    return next(line for line in step.splitlines() if line.startswith("+ "))


def _on_first(tree: Tree) -> tuple[str, ...]:
    return ("ssh", "-F", str(tree.lab / "ssh_config"), "root@node1")
