"""The hosts of a cluster file as a run knows them."""

from __future__ import annotations

import pytest

from kubexm.app.cluster_hosts import inventory
from kubexm.config.cluster import parse_cluster
from kubexm.errors import InvalidCluster

_FILE = """
apiVersion: kubexm.io/v1alpha1
kind: Cluster
metadata: {name: prod}
spec:
  kubernetes: {version: v1.36.3}
  ssh: {user: admin, port: 2222}
  sudo: true
  hosts:
    - {name: "m[1:3]", address: "10.0.0.[11:13]", arch: arm64, labels: {zone: a}}
    - {name: w1, address: 10.0.0.21, ssh: {user: root}, sudo: false}
  roleGroups: {control-plane: ["m[1:3]"]}
"""


def test_every_host_has_its_way_roles_and_declared_architecture() -> None:
    hosts = {host.name: host for host in inventory(parse_cluster(_FILE))}
    assert [*hosts] == ["control-node", "m1", "m2", "m3", "w1"]
    assert hosts["m2"].address == "10.0.0.12"
    assert hosts["m2"].roles == ("control-plane",)
    assert hosts["m2"].facts == {"arch": "aarch64"}
    assert hosts["m2"].labels == {"zone": "a"}
    assert hosts["m1"].sudo
    assert not hosts["w1"].sudo
    assert hosts["m1"].ssh is not None
    assert hosts["w1"].ssh is not None
    assert (hosts["m1"].ssh.user, hosts["m1"].ssh.port) == ("admin", 2222)
    assert (hosts["w1"].ssh.user, hosts["w1"].ssh.port) == ("root", 2222)


def test_the_control_node_is_this_machine() -> None:
    host = inventory(parse_cluster(_FILE))[0]
    assert (host.name, host.connection, host.ssh) == ("control-node", "local", None)


def test_a_way_through_an_unknown_host_is_told_with_its_place() -> None:
    text = _FILE.replace("ssh: {user: root}", "ssh: {jump: gate}")
    with pytest.raises(InvalidCluster) as caught:
        parse_cluster(text)
    (problem,) = caught.value.problems
    assert "no host `gate` to jump through" in problem.message
    assert problem.where == "<text>:11:50"
