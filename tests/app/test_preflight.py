"""Hosts of a cluster file put to every check, alone and against each other."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec.structs import replace
from tests.app.test_bundles import depot, home, stocked, wanted
from tests.resource import depot as depots
from tests.resource.depot import Depot

from kubexm.app import across, artifacts, worlds
from kubexm.app.bills import BillParams
from kubexm.app.execution import Front
from kubexm.app.params import ClusterParams
from kubexm.app.preflight import Preflight, PreflightParams, check
from kubexm.common.checks import CHECKS, Finding
from kubexm.common.paths import Home
from kubexm.config.cluster import checked
from kubexm.config.rules.rule import Declared
from kubexm.document import source
from kubexm.errors import InvalidFile, InvalidInput, Refused
from kubexm.resource.materials import BillOfMaterials
from kubexm.runner.host import Host
from kubexm.sim import Machine, Script, World, WorldSettings

__all__ = ["depot", "home", "stocked", "wanted"]
HOSTS = [
    {"name": "cp1", "address": "10.0.0.11"},
    {"name": "node[1:3]", "address": "10.0.0.[21:23]"},
]
ADDRESSES: dict[str, tuple[str, ...]] = {
    "cp1": ("10.0.0.11",),
    **{f"node{n}": (f"10.0.0.{20 + n}",) for n in (1, 2, 3)},
}


def document(**spec: Any) -> dict[str, Any]:
    body = {"kubernetes": {"version": "v1.36.3"}, "hosts": HOSTS, **spec}
    head = {"apiVersion": "kubexm.io/v1alpha1", "kind": "Cluster", "metadata": {"name": "demo"}}
    return {**head, "spec": body}


def declared(**spec: Any) -> Declared:
    return checked(source.from_data(document(**spec))).declared


@pytest.mark.parametrize(
    ("facts", "check_", "hosts", "message"),
    [
        (
            {"cp1": {"hostname": "debian"}, "node1": {"hostname": "debian"}},
            "unique-hostnames",
            ("cp1", "node1"),
            "hosts with the same name: `debian`",
        ),
        (
            {"node1": {"machine_id": "a"}, "node2": {"machine_id": "a"}, "cp1": {}},
            "unique-machine-ids",
            ("node1", "node2"),
            "hosts with the same machine id: `a`",
        ),
        (
            {"node1": {"product_uuid": "u"}, "node2": {"product_uuid": "u"}},
            "unique-product-uuids",
            ("node1", "node2"),
            "hosts with the same product uuid: `u`",
        ),
        (
            {"node1": {"network": {"mac": "m"}}, "node2": {"network": {"mac": "m"}}},
            "unique-macs",
            ("node1", "node2"),
            "hosts with the same hardware address: `m`",
        ),
        (
            {"node1": {"addresses": ["10.0.0.21"]}, "node2": {"addresses": ["10.0.0.21"]}},
            "unique-addresses",
            ("node1", "node2"),
            "an address of one host is another's too: `10.0.0.21`",
        ),
        (
            {
                "cp1": {"clock": {"offset_s": 0.0, "within_s": 0.1}},
                "node1": {"clock": {"offset_s": 0.2, "within_s": 0.1}},
                "node2": {"clock": {"offset_s": -9.0, "within_s": 0.1}},
            },
            "clock-skew",
            ("node2",),
            "clocks are more than 5 s apart: 9.2 s (node2 is 9.0 s behind this machine)",
        ),
        (
            {
                "cp1": {"network": {"mtu": 1500}},
                "node1": {"network": {"mtu": 9000}},
                "node2": {"network": {"mtu": 1500}},
            },
            "mtu",
            ("node1",),
            "hosts send packets of another size than the others: 1500 on 2, 9000 on 1",
        ),
    ],
)
def test_what_is_wrong_between_hosts_is_found(
    facts: dict[str, Any], check_: str, hosts: tuple[str, ...], message: str
) -> None:
    (one,) = across.across(facts, declared())

    assert (one.check, one.hosts, one.message) == (check_, hosts, message)
    assert one.kind == CHECKS[check_].severity
    assert one.remedy == CHECKS[check_].remedy
    assert across.across(facts, declared(preflight={"skip": [check_]})) == []


def test_every_check_between_hosts_is_made() -> None:
    between = {name for name, row in CHECKS.items() if row.across}

    assert {*across.JUDGES, artifacts.CHECK} == between


def test_a_clock_that_can_t_be_measured_well_enough_is_not_judged() -> None:
    facts = {
        "cp1": {"clock": {"offset_s": 0.0, "within_s": 3.0}},
        "node1": {"clock": {"offset_s": 8.0, "within_s": 3.0}},
    }

    assert across.across(facts, declared()) == []
    assert len(across.across(facts, declared(preflight={"clockOffset": "1s"}))) == 1


def clocks(*offsets: float) -> dict[str, Any]:
    """What hosts tell whose clocks are so far ahead of ours."""
    hosts = ("cp1", "node1", "node2", "node3")
    return {
        host: {"clock": {"offset_s": offset, "within_s": 0.1}}
        for host, offset in zip(hosts, offsets, strict=False)
    }


@pytest.mark.parametrize(
    ("offsets", "hosts", "message"),
    [
        ((86400.0,), ("cp1",), "clocks are more than 5 s apart: 86,400.0 s (cp1 is 86,400.0 s ahe"),
        ((-9.0, 300.0, 0.0), ("cp1", "node1"), "clocks are more than 5 s apart: 309.0 s (node1 is"),
        (
            (300.0, 300.2, 0.1, 300.1),
            ("cp1", "node1", "node3"),
            "clocks are more than 5 s apart: 300.2 s (node1 is 300.2 s ahead of this machine)",
        ),
        (
            (3.0, 0.0, -3.0),
            ("node2", "cp1"),
            "clocks are more than 5 s apart: 6.0 s (cp1 is 3.0 s ahead of this machine)",
        ),
        (
            (86400.0, 86401.0, 86400.0),
            ("control-node",),
            "the clock of this machine is more than 5 s away from those of all hosts: node1 is ",
        ),
        (
            (86400.0, 3600.0),
            ("cp1", "node1"),
            "clocks are more than 5 s apart: 86,400.0 s (cp1 is 86,400.0 s ahead of this machine)",
        ),
    ],
    ids=["only host", "two hosts", "most hosts", "either side", "this machine", "nobody agrees"],
)
def test_clocks_are_held_against_that_of_the_machine_that_makes_the_certificates(
    offsets: tuple[float, ...], hosts: tuple[str, ...], message: str
) -> None:
    (one,) = across.across(clocks(*offsets), declared())

    assert (one.check, one.kind, one.hosts) == ("clock-skew", "refusal", hosts)
    assert one.message.startswith(message)
    assert one.remedy.startswith("set it right" if "control-node" in hosts else "have them keep")


def test_clocks_that_agree_with_ours_are_as_they_should_be() -> None:
    assert across.across(clocks(4.9, 4.8, 5.1), declared()) == []
    assert across.across(clocks(-5.0), declared()) == []


def test_hosts_that_tell_nothing_and_strangers_are_not_judged() -> None:
    facts = {"cp1": {}, "node1": {}, "control-node": {"hostname": "x"}, "x": {"hostname": "x"}}

    assert across.across(facts, declared()) == []


def test_a_size_of_packets_that_the_file_gives_settles_it() -> None:
    facts = {"cp1": {"network": {"mtu": 1500}}, "node1": {"network": {"mtu": 9000}}}

    assert across.across(facts, declared(network={"mtu": 1400})) == []


def test_only_what_refuses_refuses() -> None:
    warning = Finding("mtu", ("a",), "x", kind="warning")
    refusal = Finding("unique-macs", ("a", "b"), "same", "`m`", "give each its own")

    across.refuse([warning])
    with pytest.raises(Refused) as caught:
        across.refuse([warning, refusal])

    assert caught.value.message.splitlines() == [
        "hosts are not fit, by `unique-macs`",
        "  unique-macs: same: `m` [a b] (hint: give each its own)",
    ]


@pytest.fixture
def made(tmp_path: Path) -> Callable[..., Preflight]:
    """What comes of the checks in a world with these settings."""

    def make(
        settings: WorldSettings | None = None,
        prepare: Callable[[World], object] = lambda world: None,
        hosts: tuple[str, ...] = (),
        arch: str = "",
        **spec: Any,
    ) -> Preflight:
        file = tmp_path / "demo.yaml"
        if arch:
            spec["hosts"] = [{**host, "arch": arch} for host in HOSTS]
        file.write_text(yaml.safe_dump(document(**spec)))
        world = World.create(tmp_path / "world", settings or WorldSettings(addresses=ADDRESSES))
        prepare(world)
        world.close()
        params = PreflightParams(
            ClusterParams(file), hosts, simulate=True, world=tmp_path / "world"
        )
        home = Home(tmp_path / "state", tmp_path / "data", tmp_path / "cache")
        return asyncio.run(check(params, Front(), home))

    return make


def kinds(found: Preflight) -> set[tuple[str, str, tuple[str, ...]]]:
    return {(each.check, each.kind, each.hosts) for each in found.findings}


def test_hosts_that_are_fit_have_nothing_wrong(made: Callable[..., Preflight]) -> None:
    found = made()

    assert found.findings == ()
    assert not found.is_refused
    assert found.hosts == ("cp1", "node1", "node2", "node3")
    assert found.made["etcd-disk"] == ("cp1",)
    assert found.made["memory"] == found.hosts
    assert found.made["unique-macs"] == found.hosts


def test_what_is_wrong_with_one_host_is_told_of_that_one(made: Callable[..., Preflight]) -> None:
    small = Machine(memory_mib=512, swap_mib=1024)
    found = made(WorldSettings(addresses=ADDRESSES, machines={"node2": small}))

    assert kinds(found) == {
        ("memory", "refusal", ("node2",)),
        ("swap", "warning", ("node2",)),
    }
    assert found.is_refused


def test_what_the_file_leaves_out_is_said_and_not_made(made: Callable[..., Preflight]) -> None:
    small = Machine(memory_mib=512)
    settings = WorldSettings(addresses=ADDRESSES, machines={"node2": small})
    found = made(settings, preflight={"skip": ["memory", "mtu"]})

    assert (found.findings, found.skipped) == ((), ("memory", "mtu"))
    assert not {"memory", "mtu"} & found.made.keys()


def test_a_worker_that_is_gone_is_missing_and_nobody_is_blamed_for_it(
    made: Callable[..., Preflight],
) -> None:
    found = made(prepare=lambda world: world.host("node2").stop())

    assert kinds(found) == {("reachable", "warning", ("node2",))}
    assert (found.missing, found.is_refused) == (("node2",), False)
    assert "node2" not in found.made["memory"]


def test_no_cluster_begins_without_its_control_plane(made: Callable[..., Preflight]) -> None:
    found = made(prepare=lambda world: world.host("cp1").stop())

    assert kinds(found) == {("reachable", "refusal", ("cp1",))}
    assert found.is_refused


def test_a_host_where_nobody_becomes_root_is_refused(made: Callable[..., Preflight]) -> None:
    no = Script(("true",), hosts="node1", exit=1, stderr="sudo: no")
    found = made(WorldSettings(addresses=ADDRESSES, scripts=(no,)), sudo=True)

    assert kinds(found) == {("root", "refusal", ("node1",))}
    assert "node1" not in found.made["memory"]
    assert found.findings[0].message == "commands can't run as root: sudo: no"


_CA, _MARKER = "/etc/kubernetes/pki/ca.crt", "/var/lib/kubexm/records/kubeadm.json"


def member_of(cluster: str) -> Callable[[World], None]:
    """Have a host be a control plane of a cluster that kubexm has made."""
    state = {"state": "done", "role": "init", "part": "control-plane", "cluster": cluster}
    marker = json.dumps(state).encode()

    def prepare(world: World) -> None:
        async def scenario() -> None:
            connector = world.connector("cp1")
            await connector.open()
            for path in (_CA, _MARKER):
                await Host("cp1", connector).run("mkdir", "-p", path.rpartition("/")[0])
            await connector.put(_CA, b"{}")
            await connector.put(_MARKER, marker)

        asyncio.run(scenario())

    return prepare


def test_a_cluster_that_is_there_finds_itself_no_trouble(made: Callable[..., Preflight]) -> None:
    found = made(prepare=member_of("demo"))

    assert not found.is_refused
    assert {kind for _, kind, _ in kinds(found)} == {"held"}
    assert ("leftovers", "held", ("cp1",)) in kinds(found)


@pytest.mark.parametrize("cluster", ["staging", ""])
def test_a_member_of_another_cluster_is_refused_whatever_is_left_out(
    made: Callable[..., Preflight], cluster: str
) -> None:
    found = made(prepare=member_of(cluster), preflight={"skip": ["leftovers"]})

    # Nobody writes to the disk that another cluster is on.
    assert kinds(found) == {
        ("other-cluster", "refusal", ("cp1",)),
        ("etcd-disk", "unknown", ("cp1",)),
    }
    (said,) = (each.message for each in found.findings if each.check == "other-cluster")
    assert said.startswith("a member of another cluster that kubexm has made")
    assert f"`{cluster}`" in said or not cluster


def test_the_clock_of_a_single_host_is_held_against_ours(made: Callable[..., Preflight]) -> None:
    found = made(hosts=("node2",))

    assert found.made["clock-skew"] == ("node2",)
    assert "unique-macs" not in found.made


def test_some_hosts_can_be_asked_alone(made: Callable[..., Preflight]) -> None:
    found = made(hosts=("node*",))

    assert found.hosts == ("node1", "node2", "node3")
    assert "etcd-disk" not in found.made


def test_a_simulation_asks_nobody_real_for_things_and_says_so(
    made: Callable[..., Preflight],
) -> None:
    found = made()

    assert "artifacts" not in found.made
    assert found.notes == (
        "the check `artifacts` is left out of a simulation: nobody real is asked",
    )


@pytest.fixture
def real(depot: Depot, wanted: BillParams) -> PreflightParams:
    """The checks of a host that can't be asked, with things that all come from the depot."""
    assert wanted.file is not None
    text = wanted.file.read_text().replace(
        "10.0.0.1}", "127.0.0.1, internalAddresses: [10.0.0.1], ssh: {port: 1}}"
    )
    wanted.file.write_text(text)
    return PreflightParams(ClusterParams(wanted.file, catalogs=wanted.catalogs))


def test_things_that_can_be_had_are_a_check_that_was_made_on_the_control_node(
    real: PreflightParams, home: Home
) -> None:
    found = asyncio.run(check(real, Front(), home))

    assert (found.made["artifacts"], found.notes) == (("control-node",), ())
    assert {each.check for each in found.findings} == {"reachable"}


def test_things_that_can_t_be_had_refuse_unless_the_file_leaves_that_out(
    real: PreflightParams, depot: Depot, stocked: BillOfMaterials, home: Home
) -> None:
    depot.refused.add(depots.path_of(stocked.binaries[0]))
    refused = asyncio.run(check(real, Front(), home))
    file = real.cluster.file
    file.write_text(f"{file.read_text()}  preflight: {{skip: [artifacts]}}\n")
    skipped = asyncio.run(check(real, Front(), home))

    assert ("artifacts", "refusal", ("control-node",)) in kinds(refused)
    assert {each.check for each in skipped.findings} == {"reachable"}
    assert (skipped.skipped, "artifacts" in skipped.made) == (("artifacts",), False)


def test_what_is_no_bundle_is_refused_before_a_host_is_asked(
    real: PreflightParams, home: Home, tmp_path: Path
) -> None:
    for simulate in (True, False):
        params = replace(real, bundle=tmp_path / "nofile", simulate=simulate)
        with pytest.raises(InvalidFile, match="nofile"):
            asyncio.run(check(params, Front(), home))


@pytest.mark.parametrize(
    "settings",
    [
        WorldSettings(addresses={"cp1": ("10.0.0.11",)}),
        WorldSettings(addresses={**ADDRESSES, "node1": ("10.0.0.99",)}),
        WorldSettings(addresses=ADDRESSES, machine=Machine(arch="aarch64")),
    ],
    ids=["fewer hosts", "other addresses", "other machines"],
)
def test_a_world_of_other_hosts_is_refused_as_a_creation_refuses_it(
    made: Callable[..., Preflight], settings: WorldSettings
) -> None:
    with pytest.raises(InvalidInput) as caught:
        made(settings, arch="amd64")

    assert "was made with other settings" in caught.value.message
    assert caught.value.hint == worlds.ANOTHER


def test_nothing_is_changed(made: Callable[..., Preflight], tmp_path: Path) -> None:
    made()

    world = World.open(tmp_path / "world")
    assert world.snapshot() == {}
    world.close()
    assert not (tmp_path / "data").exists()
    assert not (tmp_path / "state").exists()
