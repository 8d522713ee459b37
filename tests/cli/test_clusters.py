"""Commands on clusters that the store knows, by their names."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from tests.cli.answers import Answer, Kubexm

FILE = """
apiVersion: kubexm.io/v1alpha1
kind: Cluster
metadata: {name: demo}
spec:
  hosts:
    - {name: control1, address: 10.0.0.11, arch: amd64}
    - {name: worker1, address: 10.0.0.21, arch: amd64}
  kubernetes: {version: v1.36.4, certificates: {algorithm: ECDSA-P256}}
  network: {plugin: routed}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "cluster.yaml"
    path.write_text(FILE)
    return path


def created(kubexm: Kubexm, file: Path) -> None:
    assert kubexm("create", "cluster", "-f", file, "--simulate").code == 0


def test_nobody_has_made_a_cluster_yet(kubexm: Kubexm) -> None:
    told = kubexm("get", "clusters")
    assert told.code == 0
    assert "there are no clusters" in told.out


def test_a_cluster_is_known_by_its_name_once_it_was_begun(kubexm: Kubexm, file: Path) -> None:
    created(kubexm, file)

    (found,) = json.loads(kubexm("get", "clusters", "-o", "json").out)["clusters"]

    assert (found["name"], found["state"], found["kubernetes"]) == ("demo", "created", "v1.36.4")
    assert found["endpoint"]["server"] == "https://10.0.0.11:6443"
    assert [host["name"] for host in found["hosts"]] == ["control1", "worker1"]
    assert "created, simulated" in kubexm("get", "clusters").out


def test_a_cluster_is_shown_with_the_labels_of_its_file(kubexm: Kubexm, file: Path) -> None:
    labelled = "{name: demo, labels: {team: shop, example.com/tier: '1'}}"
    file.write_text(FILE.replace("{name: demo}", labelled, 1))
    created(kubexm, file)

    (listed,) = json.loads(kubexm("get", "clusters", "-o", "json").out)["clusters"]
    shown = json.loads(kubexm("get", "cluster", "demo", "-o", "json").out)["cluster"]

    assert listed["labels"] == shown["labels"] == {"team": "shop", "example.com/tier": "1"}
    assert "team: shop\n" in kubexm("get", "clusters", "-o", "yaml").out
    assert "labels:      team=shop, example.com/tier=1\n" in kubexm("get", "cluster", "demo").out


def test_one_cluster_is_told_with_its_hosts(kubexm: Kubexm, file: Path) -> None:
    created(kubexm, file)

    told = kubexm("get", "cluster", "demo")

    assert "endpoint:    https://10.0.0.11:6443 (single)" in told.out
    assert "worker1   10.0.0.21  worker" in told.out
    unknown = kubexm("get", "cluster", "dmeo")
    assert unknown.code == 2
    assert "did you mean `demo`?" in unknown.err


def test_who_means_a_simulated_cluster_says_so(kubexm: Kubexm, file: Path) -> None:
    created(kubexm, file)

    refused = kubexm("delete", "cluster", "demo", "--yes")

    assert refused.code == 2
    assert "is simulated" in refused.err
    for command in ("kubeconfig", "health"):
        assert "is simulated" in kubexm(command, "demo").err


def test_a_cluster_is_deleted_by_its_name_without_its_file(kubexm: Kubexm, file: Path) -> None:
    created(kubexm, file)
    file.unlink()

    gone = kubexm("delete", "cluster", "demo", "--simulate", "-o", "json")

    assert gone.code == 0
    assert json.loads(gone.out)["task"]["status"] == "Success"
    assert json.loads(kubexm("get", "clusters", "-o", "json").out)["clusters"] == []
    again = kubexm("delete", "cluster", "demo", "--simulate")
    assert again.code == 2
    assert "no cluster `demo` is known" in again.err


def test_a_deletion_wants_a_name_or_a_file(kubexm: Kubexm, file: Path) -> None:
    for given in ((), ("demo", "-f", file)):
        refused = kubexm("delete", "cluster", *given, "--yes")
        assert refused.code == 2
        assert "want one of them" in refused.err


GROUPS = "  roleGroups: {control-plane: [control1], worker: [worker1]}\n"


@pytest.mark.parametrize(
    ("groups", "told"),
    [
        (
            "{control-plane: [worker1], worker: [control1]}",
            "11:31: spec.roleGroups.control-plane: `worker1` is to be a control plane, but is a ",
        ),
        (
            "{control-plane: [worker1], worker: [control1]}",
            "11:50: spec.roleGroups.worker: `control1` is to be a worker, but is a control plane",
        ),
        (
            "{control-plane: [control1], worker: [control1], registry: [worker1]}",
            "11:15: spec.roleGroups: `worker1` is to be no kube node, but is a worker by now",
        ),
    ],
)
def test_a_member_keeps_its_role_while_the_cluster_lives(
    kubexm: Kubexm, file: Path, groups: str, told: str
) -> None:
    file.write_text(FILE + GROUPS)
    created(kubexm, file)
    file.write_text(FILE + f"  roleGroups: {groups}\n")

    refused = kubexm("create", "cluster", "-f", file, "--simulate")

    assert refused.code == 2
    assert told in refused.err
    assert "leave its role as it was" in refused.err


def test_a_new_control_plane_comes_behind_the_one_that_the_cluster_began_with(
    kubexm: Kubexm, file: Path
) -> None:
    lasting = FILE + "  endpoint: {kind: haproxy, domain: api.demo.example}\n"
    file.write_text(lasting + GROUPS)
    created(kubexm, file)
    more = "  roleGroups: {control-plane: [control0, control1, control2], worker: [worker1]}\n"
    new = "    - {{name: {}, address: {}, arch: amd64}}\n".format
    others = new("control0", "10.0.0.10"), new("control2", "10.0.0.12")
    head, hosts, rest = lasting.partition("    - {name: control1")

    file.write_text(head + "".join(others) + hosts + rest + more)
    refused = kubexm("create", "cluster", "-f", file, "--simulate")
    behind = rest.replace("  kubernetes:", "".join(others) + "  kubernetes:")
    file.write_text(head + hosts + behind + more)
    added = kubexm("create", "cluster", "-f", file, "--simulate")

    assert refused.code == 2
    assert "`control0` comes before `control1`" in refused.err
    assert "behind that of `control1`" in refused.err
    assert "can't be what the cluster" not in added.err


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (
            "plugin: routed",
            "plugin: flannel",
            "10:21: spec.network.plugin: found `flannel`, but the cluster has `routed`",
        ),
        (
            "plugin: routed",
            "plugin: routed, podCIDR: [10.64.0.0/16]",
            "spec.network.podCIDR: found `10.64.0.0/16`, but the cluster has `10.233.64.0/18`",
        ),
        ("version: v1.36.4", "version: v1.36.3", "another version wants an upgrade"),
        (
            "network: {plugin: routed}",
            "network: {plugin: routed}\n  containerRuntime: {systemdCgroup: false}",
            "11:37: spec.containerRuntime.systemdCgroup: found `false`, but the cluster has `true`",
        ),
        (
            "    - {name: worker1, address: 10.0.0.21, arch: amd64}\n",
            "",
            "spec.hosts: `worker1` is missing, which is a host of the cluster",
        ),
        ("address: 10.0.0.21", "address: 10.0.0.22", "but the cluster knows it by `10.0.0.21`"),
    ],
)
def test_what_a_cluster_stands_on_can_not_change_while_it_lives(
    kubexm: Kubexm, file: Path, before: str, after: str, told: str
) -> None:
    created(kubexm, file)
    file.write_text(FILE.replace(before, after))

    refused = kubexm("create", "cluster", "-f", file, "--simulate")

    assert refused.code == 2
    assert told in refused.err
    file.write_text(FILE)
    assert kubexm("delete", "cluster", "-f", file, "--simulate").code == 0
    file.write_text(FILE.replace(before, after))
    assert (
        "can't be what the cluster" not in kubexm("create", "cluster", "-f", file, "--simulate").err
    )


def test_pools_of_calico_stay_as_they_were_made(kubexm: Kubexm, file: Path) -> None:
    network = "network: {plugin: calico, calico: {encapsulation: ipip, blockSize: 26}}"
    calico = FILE.replace("network: {plugin: routed}", network)
    file.write_text(calico)
    created(kubexm, file)
    file.write_text(calico.replace("ipip", "vxlan").replace("26", "24"))

    refused = kubexm("create", "cluster", "-f", file, "--simulate")

    assert refused.code == 2
    said = "spec.network.calico.{}: found `{}`, but the cluster has `{}`"
    assert said.format("encapsulation", "vxlan", "ipip") in refused.err
    assert said.format("blockSize", "24", "26") in refused.err


def test_kube_proxy_neither_comes_nor_goes(kubexm: Kubexm, file: Path) -> None:
    cilium = FILE.replace("routed", "cilium")
    file.write_text(cilium.replace("ECDSA-P256}", "ECDSA-P256}, kubeProxy: {mode: none}"))
    created(kubexm, file)
    file.write_text(cilium.replace("ECDSA-P256}", "ECDSA-P256}, kubeProxy: {mode: ipvs}"))

    refused = kubexm("create", "cluster", "-f", file, "--simulate")

    assert refused.code == 2
    said = "spec.kubernetes.kubeProxy.mode: found `ipvs`, but the cluster has `none`"
    assert f"cluster.yaml:9:{file.read_text().splitlines()[8].index('ipvs') + 1}: {said}" in (
        refused.err
    )
    assert "kubexm can neither take kube-proxy away nor bring it later" in refused.err


ENCRYPTED = "ECDSA-P256}, apiServer: {encryption: {enabled: true%s}}"


def encrypted(more: str = "", hosts: str = "") -> str:
    file = FILE.replace("ECDSA-P256}", ENCRYPTED % more)
    return file.replace("    - {name: worker1", f"{hosts}    - {{name: worker1")


def test_what_lies_encrypted_in_etcd_stays_readable(kubexm: Kubexm, file: Path) -> None:
    created(kubexm, file)
    file.write_text(encrypted())
    created(kubexm, file)
    file.write_text(encrypted().replace("true", "false"))

    refused = kubexm("create", "cluster", "-f", file, "--simulate")

    assert refused.code == 2
    said = "spec.kubernetes.apiServer.encryption.enabled: found `false`, but the cluster has `true`"
    assert said in refused.err
    assert f"cluster.yaml:9:{file.read_text().splitlines()[8].index('false') + 1}: " in refused.err
    assert "could not be read any more" in refused.err


def test_one_api_server_may_encrypt_otherwise(kubexm: Kubexm, file: Path) -> None:
    file.write_text(encrypted())
    created(kubexm, file)
    file.write_text(encrypted(", provider: aescbc, resources: [secrets, configmaps]"))
    created(kubexm, file)


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (
            ", provider: aescbc, resources: ['*.', jobs.batch]",
            "encryption.provider: found `aescbc`, but the cluster has `secretbox`",
        ),
        (
            ", resources: ['*.', '*.apps']",
            "encryption.resources: found `*.`, `*.apps`, but the cluster has `*.`, `jobs.batch`",
        ),
    ],
)
def test_no_api_server_writes_what_another_can_not_read_yet(
    kubexm: Kubexm, file: Path, more: str, told: str
) -> None:
    others = "".join(
        f"    - {{name: control{number}, address: 10.0.0.1{number}, arch: amd64}}\n"
        for number in (2, 3)
    )
    groups = "  roleGroups: {control-plane: ['control[1:3]'], worker: [worker1]}\n"
    groups += "  endpoint: {kind: haproxy, domain: api.demo.example}\n"
    file.write_text(encrypted(", resources: ['*.', jobs.batch]", others) + groups)
    created(kubexm, file)

    file.write_text(encrypted(more, others) + groups)
    refused = kubexm("create", "cluster", "-f", file, "--simulate")
    file.write_text(encrypted(", resources: [secrets]", others) + groups)
    fewer = kubexm("create", "cluster", "-f", file, "--simulate", "--check")

    assert refused.code == 2
    assert told in refused.err
    assert "can't read what the first one writes" in refused.err
    assert fewer.code == 0


def test_members_of_an_etcd_of_its_own_neither_come_nor_go(kubexm: Kubexm, file: Path) -> None:
    file.write_text(f"{FILE}  roleGroups: {{control-plane: [control1], etcd: [control1]}}\n")
    created(kubexm, file)

    file.write_text(f"{FILE}  roleGroups: {{control-plane: [control1], etcd: [worker1]}}\n")
    refused = kubexm("create", "cluster", "-f", file, "--simulate")

    assert refused.code == 2
    assert "`worker1` is to be a new member of etcd" in refused.err
    assert "`control1` is a member of etcd" in refused.err


def test_a_cluster_that_was_never_begun_may_become_another(kubexm: Kubexm, file: Path) -> None:
    file.write_text(f"{FILE}  preflight: {{controlPlaneMemoryMib: 999999}}\n")
    failed = kubexm("create", "cluster", "-f", file, "--simulate")
    assert failed.code == 1
    file.write_text(FILE.replace("plugin: routed", "plugin: flannel"))
    assert kubexm("create", "cluster", "-f", file, "--simulate", "--check").code == 0


def test_an_etcd_of_its_own_stays_while_nothing_uses_it_yet(kubexm: Kubexm, file: Path) -> None:
    file.write_text(f"{FILE}  roleGroups: {{control-plane: [control1], etcd: [control1]}}\n")
    only = ("--only", "preflight", "--only", "pki", "--only", "etcd")
    assert kubexm("create", "cluster", "-f", file, "--simulate", *only).code == 0

    file.write_text(FILE)
    refused = kubexm("create", "cluster", "-f", file, "--simulate")

    assert refused.code == 2
    assert "spec.etcd.kind: found `stacked`, but the cluster has `systemd`" in refused.err
    assert "take that away first: kubexm delete cluster demo" in refused.err


BGP = "{mode: bgp, bgp: {asn: 65000, peers: [{address: 10.0.0.1, asn: 65000}]}}"


@pytest.mark.parametrize("more", ["", f", kubeVip: {BGP}"])
def test_kube_vip_leads_to_a_control_plane_whose_etcd_is_elsewhere(
    kubexm: Kubexm, file: Path, more: str
) -> None:
    groups = "{control-plane: [control1], etcd: [worker1], worker: [worker1]}"
    endpoint = f"{{kind: kube-vip, address: 10.0.0.100{more}}}"
    file.write_text(f"{FILE}  roleGroups: {groups}\n  endpoint: {endpoint}\n")

    created(kubexm, file)


TOO_MUCH = f"{FILE}  preflight: {{controlPlaneMemoryMib: 999999}}\n"


def part(kubexm: Kubexm, file: Path, name: str = "preflight") -> int:
    """Make a part of the cluster; the exit code."""
    return kubexm("create", "cluster", "-f", file, "--simulate", "--only", name).code


def state(kubexm: Kubexm) -> str:
    (found,) = json.loads(kubexm("get", "clusters", "-o", "json").out)["clusters"]
    shown = json.loads(kubexm("get", "cluster", "demo", "-o", "json").out)["cluster"]
    assert shown["state"] == found["state"]
    return str(found["state"])


def test_a_cluster_of_which_only_parts_were_made_is_unfinished(kubexm: Kubexm, file: Path) -> None:
    assert [part(kubexm, file, name) for name in ("preflight", "system")] == [0, 0]

    assert state(kubexm) == "unfinished"


def test_a_part_does_not_finish_a_cluster_whose_creation_failed(kubexm: Kubexm, file: Path) -> None:
    file.write_text(TOO_MUCH)
    assert kubexm("create", "cluster", "-f", file, "--simulate").code == 1
    file.write_text(FILE)
    assert part(kubexm, file) == 0

    assert state(kubexm) == "unfinished"
    created(kubexm, file)
    assert state(kubexm) == "created"


def test_a_cluster_that_was_created_stays_so_whatever_becomes_of_a_part(
    kubexm: Kubexm, file: Path
) -> None:
    created(kubexm, file)

    assert part(kubexm, file) == 0
    assert state(kubexm) == "created"
    file.write_text(TOO_MUCH)
    assert part(kubexm, file) == 1
    assert state(kubexm) == "created"


JSON = ("get", "clusters", "-o", "json")


def spoil(database: Path, data: bytes = b"garbage" * 1000) -> str:
    database.parent.mkdir(parents=True, exist_ok=True)
    database.write_bytes(data)
    return str(database)


def test_nobody_says_that_there_are_no_clusters_who_can_not_know(
    kubexm: Kubexm, home: Path
) -> None:
    real = spoil(home / "state" / "kubexm.db")
    other = spoil(home / "data" / "worlds" / "other" / "kubexm.db")

    told = kubexm("get", "clusters")
    document = kubexm(*JSON)

    assert (told.code, document.code) == (1, 1)
    assert "there are no clusters" not in told.out + told.err
    assert "error: store-unusable" in told.err
    assert real in told.err
    assert other in told.err
    assert json.loads(document.out)["error"]["code"] == "store-unusable"


@pytest.mark.parametrize("kept", [0, 2 * 4096], ids=["all of it", "what comes after its schema"])
def test_what_can_be_read_is_listed_beside_a_damaged_database(
    kubexm: Kubexm, home: Path, file: Path, kept: int
) -> None:
    created(kubexm, file)
    with closing(sqlite3.connect(home / "data/worlds/demo/kubexm.db")) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        whole = connection.serialize()
    place = spoil(home / "state" / "kubexm.db", whole[:kept] + b"\x5a" * (len(whole) - kept))

    told = kubexm("get", "clusters")
    document = kubexm(*JSON)

    assert (told.code, document.code) == (1, 1)
    assert "created, simulated" in told.out
    assert place in told.err
    assert [one["name"] for one in json.loads(document.out)["clusters"]] == ["demo"]


@contextmanager
def closed(directory: Path) -> Iterator[None]:
    """Nobody may look into this directory meanwhile, but who may look into all."""
    mode = directory.stat().st_mode
    directory.chmod(0)
    yield
    directory.chmod(mode)


def asked_by_anybody(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """What is said to who may look into nothing that is closed, unlike root."""
    rights = ("setpriv", "--bounding-set", "-dac_override,-dac_read_search")
    return subprocess.run(
        [*(rights if os.geteuid() == 0 else ()), sys.executable, "-m", "kubexm", *words],
        env={**os.environ, "KUBEXM_HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("place", ["data/worlds/demo", "data/worlds", "data", "."])
def test_a_directory_that_can_not_be_looked_into_is_told_of(
    kubexm: Kubexm, home: Path, file: Path, place: str
) -> None:
    created(kubexm, file)

    with closed(home / place):
        told = asked_by_anybody(home, "get", "clusters")

    assert told.returncode == 1
    assert "there are no clusters" not in told.stdout
    assert "error: store-unusable" in told.stderr
    assert "can't be looked into (Permission denied)" in told.stderr
    assert str(home / place) in told.stderr
    assert "Traceback" not in told.stderr


def become_real(home: Path) -> None:
    """Have the cluster of the simulated world be known as a real one in place of it."""
    world = home / "data" / "worlds" / "demo"
    (home / "state").mkdir()
    with closing(sqlite3.connect(world / "kubexm.db")) as connection:
        connection.execute("UPDATE run SET world = NULL")
        connection.commit()
        connection.execute("VACUUM INTO ?", (str(home / "state" / "kubexm.db"),))
    shutil.rmtree(world)


def hint(told: Answer) -> str:
    """What is said to do about a name that is refused."""
    assert told.code == 2
    return told.err.rpartition("hint: ")[2].strip()


def test_who_misspells_a_cluster_that_is_to_be_deleted_is_told_its_name(
    kubexm: Kubexm, home: Path, file: Path
) -> None:
    assert "makes one" in hint(kubexm("delete", "cluster", "Demo", "--simulate"))
    created(kubexm, file)

    same = kubexm("delete", "cluster", "Demo", "--simulate")
    real = kubexm("delete", "cluster", "dmeo", "--yes")
    far = kubexm("delete", "cluster", "shop", "--simulate")
    become_real(home)
    simulated = kubexm("delete", "cluster", "Demo", "--simulate")

    assert hint(same) == "did you mean `demo`?"
    assert hint(real) == "did you mean `demo`? It is simulated: give `--simulate`"
    assert hint(far) == "known: `demo`"
    assert hint(simulated) == "did you mean `demo`? It is real: leave out `--simulate`"


def test_who_means_a_real_cluster_does_not_simulate(kubexm: Kubexm, home: Path, file: Path) -> None:
    created(kubexm, file)
    become_real(home)

    refused = kubexm("delete", "cluster", "demo", "--simulate")

    assert "the cluster `demo` is real" in refused.err
    assert hint(refused) == "if you mean that one, leave out `--simulate`"


def test_who_means_a_cluster_of_another_world_gives_that_one(
    kubexm: Kubexm, file: Path, tmp_path: Path
) -> None:
    world, empty = tmp_path / "there", tmp_path / "elsewhere"
    create = ("create", "cluster", "-f", file, "--simulate")
    assert kubexm(*create, "--world", world, "--only", "preflight").code == 0
    elsewhere = f"give `--simulate --world {world}`"

    for given in ((), ("--world", empty), ("--yes",)):
        simulate = () if given == ("--yes",) else ("--simulate",)
        refused = kubexm("delete", "cluster", "demo", *simulate, *given)
        assert hint(refused) == f"if you mean that one, {elsewhere}"
    misspelt = kubexm("delete", "cluster", "dmeo", "--simulate")
    assert hint(misspelt) == f"did you mean `demo`? It is in another simulated world: {elsewhere}"
    there = kubexm("delete", "cluster", "dmeo", "--simulate", "--world", world)
    assert hint(there) == "did you mean `demo`?"


def test_who_gives_another_world_than_the_usual_one_is_told_to_leave_it_out(
    kubexm: Kubexm, file: Path, tmp_path: Path
) -> None:
    assert part(kubexm, file) == 0

    refused = kubexm("delete", "cluster", "demo", "--simulate", "--world", tmp_path / "elsewhere")

    assert "is in another simulated world" in refused.err
    assert hint(refused) == "if you mean that one, leave out `--world`"
