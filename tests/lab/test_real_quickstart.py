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
        return done.stdout


@pytest.fixture
def tree(software: Path, tmp_path: Path) -> Iterator[Tree]:
    found = Tree(tmp_path, json.loads((software / "software.json").read_text())["kubernetes"])
    try:
        yield found
    finally:
        demolition.down(found.lab)


def test_it_makes_a_real_cluster_that_kubectl_sees_and_takes_all_of_it_away(tree: Tree) -> None:
    first = tree.give("quickstart")
    nodes = tree.give("run", "--", "kubectl", "get", "nodes", "-o", f"jsonpath={READY}")
    second = tree.give("quickstart")
    site = sites.require(tree.lab)
    timers = tree.give("run", "--", *_on_first(tree), "systemctl list-timers --no-legend")
    down = tree.give("quickstart", "--down")

    assert "This was a real one" in first
    assert nodes.split() == ["True"] * quickstart.HOSTS
    assert "nothing to do" not in first
    assert "nothing to do" in second
    assert timers == ""
    assert "The quickstart is gone" in down
    assert not tree.lab.exists()
    assert mounts.below(tree.root) == []
    assert not any(group.exists() for group in (site.groups.unified, *site.groups.controllers))


def _on_first(tree: Tree) -> tuple[str, ...]:
    return ("ssh", "-F", str(tree.lab / "ssh_config"), "root@node1")
