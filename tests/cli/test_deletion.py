"""A deleted cluster leaves nothing behind, whatever became of its file and of its hosts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.cli.answers import Answer, Kubexm

from kubexm.app import planning
from kubexm.app.params import ClusterParams, OperationParams, PlanParams
from kubexm.sim import World
from kubexm.store import Store

FILE = """
apiVersion: kubexm.io/v1alpha1
kind: Cluster
metadata: {{name: demo}}
spec:
  hosts:
    - {{name: control1, address: 10.0.0.11, arch: amd64}}
{hosts}
  kubernetes: {{version: v1.36.4, certificates: {{algorithm: ECDSA-P256}}}}
  network: {{plugin: routed}}
{more}
"""
WORKER = "    - {{name: worker{0}, address: 10.0.0.2{0}, arch: amd64}}"
BACKUP = "  etcd: {kind: systemd, backup: {every: 6h, keep: 3, directory: %s}}"
MIRROR = "  containerRuntime: {registries: {docker.io: {mirrors: ['https://mirror.example']}}}"
DELETE = ("delete", "cluster", "demo", "--simulate")
CREATE = ("create", "cluster", "--simulate", "-f")


class Site:
    """A cluster file, and the simulated hosts of its cluster."""

    def __init__(self, kubexm: Kubexm, home: Path, file: Path) -> None:
        self.kubexm = kubexm
        self.home = home
        self.file = file
        self.world = home / "data" / "worlds" / "demo"

    def write(self, *workers: int, more: str = "") -> Path:
        hosts = "\n".join(WORKER.format(number) for number in workers)
        self.file.write_text(FILE.format(hosts=hosts, more=more))
        self._settle()
        return self.file

    def _settle(self) -> None:
        """Have the world be that of the file, with the hosts as they are."""
        (self.world / "world.json").unlink(missing_ok=True)
        planned = planning.plan(PlanParams(OperationParams(ClusterParams(self.file))))
        World.create(self.world, planned.world).close()

    def create(self, *workers: int, more: str = "") -> Answer:
        return self.kubexm(*CREATE, self.write(*workers, more=more))

    @contextmanager
    def opened(self) -> Iterator[World]:
        world = World.open(self.world)
        try:
            yield world
        finally:
            world.close()

    def stop(self, host: str) -> None:
        with self.opened() as world:
            world.host(host).stop()

    def left(self) -> dict[str, list[str]]:
        """What of each host is not as it was delivered."""
        names = ("control-node", "control1", "worker1", "worker2")
        with self.opened() as world:
            found = {name: sorted(world.host(name).difference()) for name in names}
        return {name: keys for name, keys in found.items() if keys}

    def in_ledger(self) -> dict[str, frozenset[str]]:
        with Store.open(self.world / "kubexm.db") as store:
            return store.in_ledger("demo")

    def known(self) -> list[str]:
        found = json.loads(self.kubexm("get", "clusters", "-o", "json").out)["clusters"]
        return [one["state"] for one in found]


@pytest.fixture
def site(kubexm: Kubexm, home: Path, tmp_path: Path) -> Site:
    return Site(kubexm, home, tmp_path / "cluster.yaml")


@pytest.mark.slow
def test_a_damaged_world_is_nobody_elses_trouble(site: Site) -> None:
    bad = site.home / "data" / "worlds" / "bad" / "kubexm.db"
    bad.parent.mkdir(parents=True)
    bad.write_bytes(b"garbage" * 1000)

    made = site.create(1)
    listed = site.kubexm("get", "clusters")

    assert (made.code, listed.code) == (0, 0)
    assert "warning: " in listed.err
    assert "demo" in listed.out
    assert str(bad) in listed.err
    assert site.kubexm("get", "cluster", "demo").code == 0
    assert site.kubexm("get", "cluster", "other").code == 1
    assert site.kubexm(*DELETE).code == 0
