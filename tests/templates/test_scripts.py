"""Scripts that templates write do on a host what they say, and nothing beside."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from kubexm.templates import render
from kubexm.templates.contexts.etcd import EtcdBackup
from kubexm.templates.contexts.routed import RoutedRoutes

Networks = dict[str, tuple[str, ...]]
NODES: Networks = {"node1": ("10.1.1.0/24", "fd01:1::/64"), "node2": ("10.1.2.0/24", "fd01:2::/64")}
ADDRESSES: Networks = {"node1": ("192.168.7.1", "fd07::1"), "node2": ("192.168.7.2", "fd07::2")}
WIRE = """
ip link set lo up
ip link add wire type veth peer name far
ip addr add 192.168.7.1/24 dev wire
ip -6 addr add fd07::1/64 dev wire nodad
ip link set far up
ip link set wire up
"""
SHOW = """
ip route show proto 86
ip -6 route show proto 86
iptables -t nat -S POSTROUTING
ip6tables -t nat -S POSTROUTING
"""


class Member:
    """A member of etcd to copy, and where its copies go."""

    def __init__(self, directory: Path, keep: int = 2) -> None:
        self.copies = directory / "my $copies"
        self.etcdctl = self._program(
            directory / "etcdctl", 'for last; do :; done; echo db >"$last"'
        )
        self.etcdutl = self._program(directory / "etcdutl", 'test "$(cat "$3")" = db')
        context = EtcdBackup(
            directory=str(self.copies),
            keep=keep,
            etcdctl=str(self.etcdctl),
            etcdutl=str(self.etcdutl),
        )
        self.script = directory / "backup"
        self.script.write_text(render.render("etcd/backup", context.data()))

    def copy(self) -> int:
        return subprocess.run(["sh", self.script], check=False, capture_output=True).returncode

    def found(self) -> list[str]:
        return sorted(file.name for file in self.copies.iterdir())

    @staticmethod
    def _program(path: Path, line: str) -> Path:
        # What is asked first is whether the member is well.
        path.write_text(f'#!/bin/sh\ncase "$*" in *"endpoint health") exit 0 ;; esac\n{line}\n')
        path.chmod(0o755)
        return path


def test_a_copy_is_private_and_only_the_newest_are_kept(tmp_path: Path) -> None:
    member = Member(tmp_path)
    member.copies.mkdir()
    for name in ("etcd-20250101T000000Z.db", "etcd-20250102T000000Z.db", "etcd-mine.db", "notes"):
        (member.copies / name).touch()

    assert member.copy() == 0

    *kept, mine, notes = member.found()
    assert (mine, notes) == ("etcd-mine.db", "notes")
    assert len(kept) == 2
    assert kept[0] == "etcd-20250102T000000Z.db"
    assert (member.copies / kept[1]).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("program", ["etcdctl", "etcdutl"])
def test_a_copy_that_fails_leaves_nothing_and_removes_nothing(tmp_path: Path, program: str) -> None:
    member = Member(tmp_path, keep=1)
    assert member.copy() == 0
    before = member.found()
    (tmp_path / program).write_text("#!/bin/sh\nexit 1\n")

    assert member.copy() != 0
    assert member.found() == before


def test_what_an_interrupted_copy_left_is_removed(tmp_path: Path) -> None:
    member = Member(tmp_path)
    member.copies.mkdir()
    (member.copies / ".unfinished.part").touch()

    assert member.copy() == 0
    assert [name for name in member.found() if name.startswith(".")] == []


def test_routes_are_laid_again_and_removed(tmp_path: Path) -> None:
    script = routes(tmp_path, NODES)

    laid = in_namespace(f"{WIRE}\nsh {script} start\nsh {script} start\n{SHOW}")
    removed = in_namespace(f"{WIRE}\nsh {script} start\nsh {script} stop\nsh {script} stop\n{SHOW}")

    assert laid.count("10.1.2.0/24 via 192.168.7.2") == 1
    assert laid.count("fd01:2::/64 via fd07::2") == 1
    assert laid.count("-s 10.1.0.0/16 ! -d 10.1.0.0/16") == 1
    assert laid.count("-s fd01::/32 ! -d fd01::/32") == 1
    assert "10.1.1.0/24" not in laid
    assert removed.split("\n") == ["-P POSTROUTING ACCEPT", "-P POSTROUTING ACCEPT", ""]


def test_routes_of_a_node_that_is_gone_are_removed_and_those_of_others_stay(
    tmp_path: Path,
) -> None:
    before = routes(tmp_path, NODES)
    after = routes(tmp_path, {"node1": NODES["node1"]})
    other = "ip route add 10.9.0.0/16 via 192.168.7.9"

    found = in_namespace(f"{WIRE}\n{other}\nsh {before} start\nsh {after} start\nip route show")

    assert "10.1.2.0/24" not in found
    assert "10.9.0.0/16 via 192.168.7.9" in found


def test_a_node_that_is_not_in_the_cluster_file_gets_no_route(tmp_path: Path) -> None:
    script = routes(tmp_path, {**NODES, "stranger": ("10.1.3.0/24",)})

    assert "10.1.3.0/24" not in script.read_text().split("prune()")[0]


def routes(directory: Path, networks: Networks) -> Path:
    context = RoutedRoutes(
        node="node1",
        networks=networks,
        addresses=ADDRESSES,
        pod_networks=("10.1.0.0/16", "fd01::/32"),
    )
    script = directory / f"routes-{len(networks)}"
    script.write_text(render.render("routed/routes", context.data()))
    return script


def in_namespace(lines: str) -> str:
    """What commands say in a network of their own."""
    for program in ("unshare", "ip", "iptables", "ip6tables"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not here")
    if subprocess.run(["unshare", "-n", "true"], check=False, capture_output=True).returncode:
        pytest.skip("only root makes networks")
    command = ["unshare", "-n", "sh", "-euc", lines]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout
